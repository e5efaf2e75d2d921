"""The module's version, the one that metrics, reports and packages tell.

A package that is built from a checkout says more: `packaging/stage.sh` appends the commit.
"""
VERSION = "0.1.0"
