"""The reasons for which a PG cannot be moved, as operators read them."""
from __future__ import annotations

NO_OSD_FOR_SHARD = "a shard has no OSD"
NO_STATISTICS = "no statistics of the PG"
OSD_NOT_REPORTED = "one of its OSDs has not reported its statistics"
OMAP_UNMEASURED = "its omap has not been measured; a deep scrub tells"
INCONSISTENT = "its copies differ, and nobody knows which are good; 'ceph pg repair' is for that"
STALE = "nobody has reported it for too long"
OMAP_ON_SMALL_OSD = ("its omap cannot be told from RocksDB's own files on OSDs smaller than"
                     " min_omap_osd_size")
PG_NUM_CHANGING = "pg_num of the pool is changing"
DEGRADED_STRETCH = "the cluster is in degraded stretch mode"
CACHE_TIER = "the pool is a cache tier"
NO_DATA_SHARDS = "the pool's erasure-code profile has no k"
NO_RULE = "the pool's CRUSH rule does not exist"
RULE_NOT_SUPPORTED = "CRUSH rule not supported"
FULL_UPMAP = "placed by a full pg-upmap"
UPMAP_PRIMARY = "its primary is set by pg-upmap-primary"
RAW_UNKNOWN = "its CRUSH mapping cannot be recovered from its upmap items"
MONITOR_REJECTS = "the monitor would reject its present placement"
BREAKS_RULE = "its present placement breaks its CRUSH rule"

#: Reasons that forbid copying a PG's shards and say nothing against its placement: they do not
#: bind a change that copies none.
OF_MOTION = frozenset((OSD_NOT_REPORTED, OMAP_UNMEASURED, INCONSISTENT, OMAP_ON_SMALL_OSD,
                       CACHE_TIER))

#: Reasons that a plan of kind REPAIR or FREEZE ends: it leads to a legal placement.
OF_RULE = frozenset((MONITOR_REJECTS, BREAKS_RULE))

#: Reasons for which the size of a PG, or the use of its OSDs, is not known.
UNKNOWN = (NO_STATISTICS, OSD_NOT_REPORTED, OMAP_UNMEASURED)

#: Reasons that an operator may end for single PGs, by a repair, a command or an option: then a new
#: plan may gain something.
LIFTED = (INCONSISTENT, FULL_UPMAP, UPMAP_PRIMARY, OMAP_ON_SMALL_OSD)

#: Reasons that are likely to pass soon: a move waits for these, and is dropped for the others.
TRANSIENT = frozenset((NO_OSD_FOR_SHARD, NO_STATISTICS, OSD_NOT_REPORTED, OMAP_UNMEASURED,
                       INCONSISTENT, STALE, PG_NUM_CHANGING, DEGRADED_STRETCH))
