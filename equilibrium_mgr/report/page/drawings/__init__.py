"""Drawings as SVG: utilizations as strips, and OSDs sorted by fill.

May import the files of report/ itself, and what is below it.
"""
