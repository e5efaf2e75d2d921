"""Tests of what failures lead to."""
