"""Nets held around the loop from outside: it stays awake, whoever asks and whatever changes."""
