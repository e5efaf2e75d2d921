"""Predicted against real used bytes, on OSDs that differ in min_alloc_size or compress."""
