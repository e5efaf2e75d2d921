"""The benchmark: what equilibrium makes of clusters of many shapes, and what it costs.

    python3 -m tests.benchmark --help

pytest collects nothing here. Figures of placements come from `scoring`, never from a planner's own
prediction.
"""
