"""How fast the data grows: sparse samples that survive a failover, robust trends, days left.

Pure but for the store that the recorder is given. May import plan and what is below it.
"""
