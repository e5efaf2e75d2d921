"""Freezing after a change of the CRUSH map, against the real osdmaptool."""
