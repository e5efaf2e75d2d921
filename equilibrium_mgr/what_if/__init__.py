"""What a failure would lead to: which OSDs fail, where CRUSH places their shards then, the figures.

Pure: snapshot, changes and the up sets after the failure in, figures out. May import plan and what
is below it.
"""
