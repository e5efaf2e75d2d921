"""Compares the growth of OSDs with what was predicted, and corrects the sizes of shards.

May import snapshot, plan and runtime.
"""
