"""Rounds of the loop on a fake gateway."""
