"""Tests of undo, cancel and the clean-up of upmap items; they import the module and
tests/support."""
