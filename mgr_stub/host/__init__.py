"""Runs a module on a mgr: serve rounds, jobs, failovers and the passing of virtual time.

May import mgr and the layers below it; knows no command lines.
"""
