"""Measurements on real daemons, run by hand."""
