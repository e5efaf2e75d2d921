"""`explain`: the counted reasons why the cluster is not better balanced, and the actions.

May import control and the layers below it, and the files of report/ itself.
"""
