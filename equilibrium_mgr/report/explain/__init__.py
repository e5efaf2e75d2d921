"""`explain`: the reasons for which the cluster is not better balanced, counted, and what helps.

May import control and what is below it, and the files of report/ itself.
"""
