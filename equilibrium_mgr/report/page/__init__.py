"""`report`: one HTML page about the cluster or a plan, for those who decide about it.

May import control and what is below it, and the files of report/ itself.
"""
