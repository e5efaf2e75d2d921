"""Tests of the HTTP endpoint, on real sockets of the loopback."""
