"""`report`: one HTML page about the cluster or a plan.

May import control and what is below it, and the files of report/ itself.
"""
