"""Tables of the cluster: `eval`, `df`, `osds` and `moves`.

May import control and the folders below it, and the files of report/ itself.
"""
