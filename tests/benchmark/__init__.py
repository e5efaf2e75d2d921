"""The benchmark: what equilibrium makes of clusters of many shapes, and what others make of them.

    python3 -m tests.benchmark --help

Nothing is installed and pytest collects nothing here. Every cluster is measured in a process of
its own, one after the other, so that neither time nor memory of one shows in another. Figures of
placements come from `scoring`, never from a planner's own prediction.
"""
