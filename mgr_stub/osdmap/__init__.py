"""One epoch of the osdmap and its CRUSH map: entries, upmap items, primaries, and what changes.

May import crush, errors and clock; knows no PG's data.
"""
