"""Tables of the cluster: `eval`, `df`, `osds` and `moves`.

May import control and what is below it, and the files of report/ itself.
"""
