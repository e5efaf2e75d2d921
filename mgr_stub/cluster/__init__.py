"""The simulated cluster: osdmap, PGs, the shards on the OSDs and the bytes that they take.

May import osdmap and the layers below it; nothing here lets time pass.
"""
