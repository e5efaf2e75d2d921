"""Codes of the reasons for which data is not moved: stable, for programs, one for each cause.

`status`, `explain`, `metrics` and health checks name reasons by these codes alone; what each means
for an operator, and what helps, is in report/explain/.
"""
from __future__ import annotations

# Nothing lower is possible.
BOUND_CAPACITY = "bound_capacity"       # every OSD of the set is equally full
BOUND_DOMAIN = "bound_domain"           # a failure domain is too small for its share of the shards

# What a plan may not do, or is not worth.
FILL_LIMIT = "fill_limit"               # the target would pass the option fill_limit
FAILURE_DOMAIN = "failure_domain"       # the CRUSH rule could not place it so
HOLDS_SHARD = "holds_shard"             # the target holds a shard of the PG
GRANULARITY = "granularity"             # a whole shard is larger than the difference
MIN_GAIN = "min_gain"                   # what is left gains less than the option min_gain
UPMAP_ITEMS = "max_upmap_items"         # the osdmap must not have more pairs of upmap items
PG_COUNT = "pg_count"                   # mon_max_pg_per_osd, or the hard limit of an OSD
REWEIGHT = "reweight"                   # weights that an operator lowered hold OSDs to a share
POOL_EXCLUDED = "pool_excluded"         # pool_ids or device_classes leave it out
OSD_EXCLUDED = "osd_excluded"           # filters leave the OSD out, or spare it
RULE_UNKNOWN = "rule_unknown"           # the CRUSH rule is not understood
EXCHANGE = "exchange"                   # upmap items cannot exchange OSDs within a PG
IMMOVABLE = "immovable"                 # the PG is pinned, being moved, or cannot be moved at all
GIVEN_UP = "given_up"                   # its move has waited for longer than max_wait
REJECTED = "rejected"                   # the monitor did not keep the upmap items
MISPREDICTED = "mispredicted"           # shards of the pool took more space than predicted
TARGET_UNAVAILABLE = "target_unavailable"   # down, out, drained, destroyed, without statistics
CANNOT_LEAVE = "cannot_leave"           # shards of an OSD that is being drained have no other place

# What has to end first.
SWITCHED_OFF = "off"                    # automatic balancing is off
START_DELAY = "start_delay"             # the mgr has just become active
WINDOW = "window"                       # outside begin_time … end_time
FLAG = "flag"                           # the osdmap has a flag such as norebalance
CONFLICT = "conflict"                   # the built-in balancer is active, or may be finishing
OLD_CLIENTS = "old_clients"             # require_min_compat_client is below luminous
NO_MONITOR = "no_monitor"               # the mgr has no connection to a monitor
NOT_READY = "not_ready"                 # the mgr lacks maps or statistics
STALE_STATISTICS = "stale_statistics"   # OSDs have stopped reporting
DEGRADED = "degraded"                   # PGs are degraded or inactive
PG_NUM_CHANGING = "pg_num_changing"     # the mgr changes a pool's pg_num
SETTLING = "settling"                   # the cluster has just changed
COOLDOWN = "cooldown"                   # the PG was moved less than pg_cooldown ago
BUSY = "busy"                           # the PG is scrubbed, repaired or snap-trimmed
IN_FLIGHT = "in_flight"                 # an earlier move of the PG is under way
NEARFULL = "nearfull"                   # the target is nearfull
TOO_FULL = "too_full"                   # backfill or recovery waits for an OSD that is too full
BAD_OPTION = "bad_option"               # an option has a value that cannot be used

# The throttle.
NEARFULL_FIRST = "nearfull_first"       # relief of an OSD above nearfull goes first
SOURCE_FULL = "source_full"             # the target would be the fullest before what leaves is gone
MAX_BACKFILLS = "max_backfills"
MAX_TRANSIT = "max_transit"
MAX_MOVES = "max_moves"
MISPLACED_LIMIT = "misplaced_limit"
MISPLACED_ONE_PG = "misplaced_one_pg"   # the limit is below one PG: they go one at a time
MONITOR_BACKOFF = "monitor_backoff"     # the monitor took nothing of the last batch
NEXT_BATCH = "next_batch"               # nothing is in the way: batches are sleep_interval apart

# Nothing is wrong.
BALANCED = "balanced"
PLANNING = "planning"
MOVING = "moving"
