"""Tests of how fast data grows."""
