"""Clusters for tests: hand-made, made by rule shapes, and random ones."""
