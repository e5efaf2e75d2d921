"""Tests of read balance; they import the module and tests/support."""
