"""What operators, clients and failures do to a simulation, one function an event.

May import simulation and what is below it.
"""
