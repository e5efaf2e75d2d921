"""Events of a simulation: commands of operators, actions of clients, failures; a function each.

May import simulation and the layers below it.
"""
