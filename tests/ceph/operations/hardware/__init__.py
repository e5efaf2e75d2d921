"""Predicted against real used bytes, on OSDs that are all alike."""
