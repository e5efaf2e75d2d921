"""Tests of undo and cancel; they import the module and
tests/support."""
