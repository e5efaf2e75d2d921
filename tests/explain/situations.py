"""The situations of tests/explain/followed.py."""
from __future__ import annotations

from tests.explain.followed import OPTION, Situation

_SLOW = "sim backfill rate 8M"
_RUN = ("equilibrium on", "sim run 20m")
_NO_LIMITS = ("option max_backfills_per_osd 0", "option max_transit_ratio 0",
              "option max_misplaced_ratio 0.5", "sim osd full-ratios 0.95 0.96 0.97")

SITUATIONS = (
    Situation("never switched on", "off", ("sim run 1m",), "2m"),
    Situation("a new mgr", "start_delay", ("equilibrium on", "sim failover", "sim run 5s"), "2m"),
    Situation("outside the window", "window", (
        "option begin_time 0300", "option end_time 0500", "equilibrium on", "sim run 1m"), "190m"),
    Situation("norebalance", "flag", ("osd set norebalance", "equilibrium on", "sim run 2m"), "2m"),
    Situation("the built-in balancer is on", "conflict", (
        "equilibrium on", "sim balancer on", "sim run 2m"), "20m"),
    Situation("clients before luminous", "old_clients", (
        "equilibrium on", "osd set-require-min-compat-client jewel", "sim run 2m"), "3m"),
    Situation("no monitor", "no_monitor", ("equilibrium on", "sim mon down", "sim run 2m"), "3m",
              follow=("sim mon up",)),
    Situation("nothing is reported", "stale_statistics", (
        "equilibrium on", "sim run 10h", "sim stats freeze 3h", "sim run 100m"), "3h"),
    Situation("an OSD is lost", "degraded", (
        "equilibrium on", "sim run 10h", _SLOW, "sim osd lose 9", "sim run 15m"), "12h"),
    Situation("pg_num grows", "pg_num_changing", (
        _SLOW, "sim run 1m", "sim pool pg_num fs 16", "equilibrium on", "sim run 15m"), "20h"),
    Situation("CRUSH has just changed", "settling", (
        "equilibrium on", "sim run 10h", "sim host add spare 1 500G", "sim run 61s"), "10m"),
    Situation("a PG was moved a short while ago", "cooldown", (
        "option min_gain 0", "equilibrium on", "sim run 30m"), "3h", what="MOVED"),
    Situation("a PG is moving", "in_flight", (
        _SLOW, "equilibrium on", "sim run 5m"), "12h", what="MOVING"),
    Situation("one backfill per OSD", "max_backfills", (
        _SLOW, *_NO_LIMITS, "option max_backfills_per_osd 1", *_RUN), "12h"),
    Situation("little transit", "max_transit", (
        _SLOW, *_NO_LIMITS, "option max_transit_ratio 0.01",
        "equilibrium on", "sim run 5m"), "12h"),
    Situation("misplaced limit", "misplaced_limit", (
        _SLOW, *_NO_LIMITS, "option max_misplaced_ratio 0.02", *_RUN), "12h"),
    Situation("misplaced limit below one PG", "misplaced_one_pg", (
        _SLOW, *_NO_LIMITS, "option max_misplaced_ratio 0.0001", *_RUN), "20h"),
    Situation("OSDs above nearfull", "nearfull_first", (
        _SLOW, "sim osd full-ratios 0.75 0.9 0.95", "option max_backfills_per_osd 1",
        "equilibrium on", "sim run 25m"), "20h"),
    Situation("most OSDs are nearfull", "nearfull", (
        "option max_misplaced_ratio 0.05", "sim osd full-ratios 0.62 0.88 0.95",
        "equilibrium on", "sim run 8h"), "3h", cluster=("small", 9)),
    Situation("a low fill limit", "fill_limit", (
        "option fill_limit 0.4", "equilibrium on", "sim run 6h"), "6h"),
    Situation("ten pairs of upmap items", "max_upmap_items", (
        "option max_misplaced_ratio 0.3", "option max_upmap_items 10", "equilibrium on",
        "sim run 6h"), "6h", cluster=("random", 6)),
    Situation("OSDs may have 23 PGs", "pg_count", (
        "option max_misplaced_ratio 0.3", "config set global mon_max_pg_per_osd 23",
        "config set global osd_max_pg_per_osd_hard_ratio 1.25",
        "equilibrium on", "sim run 6h"), "6h"),
    Situation("OSDs withhold PGs from fewer on than the mgr has it", "pg_count", (
        "option max_misplaced_ratio 0.3", "config set osd mon_max_pg_per_osd 23",
        "config set osd osd_max_pg_per_osd_hard_ratio 1", "equilibrium on", "sim run 4h"), "6h",
        follow=("config set osd mon_max_pg_per_osd 250",
                "config set osd osd_max_pg_per_osd_hard_ratio 4",
                "config set global osd_max_pg_per_osd_hard_ratio 4")),
    Situation("a PG that was withheld", "pg_count", (
        "option max_misplaced_ratio 0.3", "config set osd mon_max_pg_per_osd 23",
        "config set osd osd_max_pg_per_osd_hard_ratio 1", "equilibrium on", "sim run 4h"), "6h",
        what="REJECTED", follow=(
            "config set osd mon_max_pg_per_osd 250",
            "config set osd osd_max_pg_per_osd_hard_ratio 4",
            "config set global osd_max_pg_per_osd_hard_ratio 4")),
    Situation("one small pool is balanced", "pool_excluded", (
        "option pool_ids 3", "equilibrium on", "sim run 2h"), "6h"),
    Situation("all OSDs are spared", "osd_excluded", (
        "option not_buckets default", "equilibrium on", "sim run 2h"), "6h"),
    Situation("two of three racks are drained", "cannot_leave", (
        "option max_misplaced_ratio 0.3", "equilibrium drain add r0 r1", "sim run 12h"), "12h",
        cluster=("random", 16), follow=("equilibrium drain rm r0 r1",)),
    Situation("a class that no OSD has", "bad_option", (
        "option device_classes nvme", "equilibrium on", "sim run 10m"), "10m"),
    Situation("reweights leave half of most OSDs", "reweight", (
        "sim osd reweight 3 0.5", "sim osd reweight 7 0.5", "equilibrium on", "sim run 12h"),
        "12h", what="osd.0", screens=2),
    Situation("a pinned PG", "immovable", (
        "osd pg-upmap 1.11 0 7 10", "equilibrium on", "sim run 2m"), "2m", what="1.11"),
    Situation("the monitor drops upmap items", "rejected", (
        "sim mon drop 1", "equilibrium on", "sim run 10m"), "20m", what="REJECTED",
        follow=("sim mon drop 0", "equilibrium on")),
    Situation("the monitor refuses every command", "monitor_backoff", (
        "sim mon reject 1", "equilibrium on", "sim run 30m"), "2h",
        follow=("sim mon reject 0",)),
    Situation("shards take more than predicted", "mispredicted", (
        "sim swell rbd 2", "sim backfill rate 100M", "equilibrium on", "sim run 40m"), "12h",
        cluster=("random", 6)),
    Situation("one pool of few PGs", "granularity", (
        "option min_gain 0", "equilibrium on", "sim run 6h"), "1d", cluster=("few", 1)),
    Situation("a high min_gain", "min_gain", (
        "option min_gain 0.5", "sim osd full-ratios 0.95 0.96 0.97", "equilibrium on",
        "sim run 1h"), "6h", follow=(OPTION + "min_gain 0",)),
    Situation("an OSD has become fuller by less than a point", "drift", (
        "equilibrium on", "sim run 6h", "sim osd allocation 1.008 6", "sim run 1h"), "6h",
        follow=("equilibrium off", "equilibrium on")),
    Situation("balanced", "bound_capacity", (
        "equilibrium on", "sim run 6h"), "1d",
        cluster=("random", 5), follow=("sim host add spare 4 500G",)),
    Situation("one host is too large", "bound_domain", (
        "option max_misplaced_ratio 0.5", "equilibrium on", "sim run 8h"), "1d",
        cluster=("giant", 1), follow=tuple(f"sim host add spare{n} 4 6T" for n in range(5))),
    Situation("an OSD that is down", "target_unavailable", (
        "sim osd down 3", "sim run 2m"), "5m", what="osd.3", follow=("sim osd up 3",)),
    Situation("two hosts are down under noout", "degraded", (
        "equilibrium on", "sim run 5m", "osd set noout", "sim host down h0", "sim host down h1",
        "sim run 5m"), "2h", begins="start all of host h0, all of host h1", is_outage=True),
    Situation("an OSD is down, and nothing recovers", "flag", (
        "equilibrium on", "osd set noout", "osd set norecover", "sim osd down 5", "sim run 5m"),
        "2h", begins="start osd.5 of h2", is_outage=True),
    Situation("an OSD is lost, and nothing recovers", "flag", (
        "sim osd lose 9", "osd set norecover", "equilibrium on", "sim run 15m"), "6h",
        begins="'ceph osd unset norecover'"),
    Situation("what an OSD held finds no room", "too_full", (
        "sim osd full-ratios 0.75 0.8 0.95", "sim osd out 9", "equilibrium on", "sim run 30m"),
        "6h", begins="'ceph osd in 9' brings back room"),
    Situation("what an OSD held finds no room, so near to full", "too_full", (
        "sim osd full-ratios 0.75 0.8 0.87", "sim osd lose 9", "equilibrium on", "sim run 30m"),
        "12h", begins="start osd.9 of h3", is_outage=True),
    Situation("what a down OSD held finds no room", "too_full", (
        "sim osd full-ratios 0.75 0.8 0.95", "sim osd down 9", "equilibrium on", "sim run 30m"),
        "6h", begins="start osd.9 of h3", is_outage=True),
    Situation("clients are stopped", "flag", ("equilibrium on", "osd set pause", "sim run 2m"),
              "5m", begins="'ceph osd unset pause'", is_outage=True),
    Situation("a host beside the racks", "degraded", (
        "equilibrium on", "sim run 6h", "sim host add spare 4 1T under=default", "sim run 30m"),
        "12h", cluster=("nested", 1), begins="move host spare from default to the rack",
        is_outage=True),
    Situation("OSDs are above full, nothing is balanced", "off", (
        "sim osd full-ratios 0.72 0.78 0.79", "sim run 1m"), "8h",
        begins="'ceph equilibrium on'", is_outage=True),
    Situation("OSDs are above full", "nearfull_first", (
        "sim osd full-ratios 0.75 0.8 0.82", "equilibrium on", "sim run 5m"), "20h",
        cluster=("small", 9), begins="nothing; it ends by itself as data leaves"
        " osd.17, osd.24; 'ceph osd set-full-ratio 0.88' lets", is_outage=True),
    Situation("an OSD is above full", "too_full", (
        "sim osd full-ratios 0.75 0.8 0.82", "equilibrium on", "sim run 5m"), "20h",
        what="osd.24", cluster=("small", 9), is_outage=True,
        begins="nothing; it ends by itself as data leaves osd.24"),
    Situation("what moves off a full OSD waits for it", "too_full", (
        "sim osd full-ratios 0.72 0.78 0.79", "equilibrium on", "sim run 4m"), "8h",
        begins="'ceph osd set-full-ratio 0.88'", is_outage=True),
    Situation("a fuller OSD stops writes too", "too_full", (
        "sim osd full-ratios 0.72 0.78 0.79", "equilibrium on", "sim run 4m"), "8h", what="osd.7",
        begins="'ceph osd set-full-ratio 0.88'", is_outage=True),
    Situation("OSDs are above full, and nothing may move", "flag", (
        "sim osd full-ratios 0.72 0.78 0.79", "osd set norebalance", "equilibrium on",
        "sim run 4m"), "8h", begins="'ceph osd unset norebalance'", is_outage=True),
    Situation("most OSDs are above full", "too_full", (
        "sim osd full-ratios 0.6 0.62 0.65", "equilibrium on", "sim run 4m"), "5m",
        begins="'ceph osd set-full-ratio 0.85'", is_outage=True),
    Situation("a host beside the racks, and norebalance", "flag", (
        "equilibrium on", "sim run 6h", "osd set norebalance",
        "sim host add spare 4 1T under=default", "sim run 30m"), "12h", cluster=("nested", 1),
        begins="move host spare from default to the rack",
        follow=("osd crush move spare rack=r0", "osd unset norebalance")),
    Situation("power was lost, and clients are stopped", "flag", (
        "equilibrium on", "sim run 5m", "osd set noout", "osd set pause", "sim host down h0",
        "sim run 5m"), "2h", begins="start all of host h0",
        follow=("sim host up h0", "osd unset pause", "osd unset noout")),
    Situation("balanced, and larger shards than the difference", "granularity", (
        "equilibrium on", "sim run 12h"), "1d", begins="nothing; ",
        follow=("osd pool set rbd pg_num 256",), cluster=("random", 21)),
    Situation("an expansion beside full OSDs", "in_flight", (
        "sim log-recovery off", "sim backfill rate 2M", "sim osd full-ratios 0.7 0.78 0.95",
        "equilibrium on", "sim host add s1 4 500G", "sim host add s2 4 500G", "sim run 30m"), "3h",
        begins="'ceph osd set norebalance', 'ceph equilibrium freeze'", is_better=True,
        follow=("PASTE",)),
    Situation("only one OSD may be relieved", "osd_excluded", (
        "option from_buckets osd.3", "equilibrium on", "sim run 2h"), "6h",
        begins="'ceph config rm mgr mgr/equilibrium/from_buckets'"),
    Situation("an OSD is down", "degraded", ("equilibrium on", "sim osd down 3", "sim run 5m"),
              "1h", begins="start osd.3 of h1", is_outage=True),
    Situation("noup keeps an OSD down", "degraded", (
        "equilibrium on", "osd set noup", "sim osd down 3", "sim run 5m"), "1h",
        begins="'ceph osd unset noup'", is_outage=True),
    Situation("noup of an OSD and of its class keeps it down", "degraded", (
        "equilibrium on", "osd set-group noup osd.3 hdd", "sim osd down 3", "sim run 5m"), "1h",
        begins="'ceph osd unset-group noup osd.3 hdd'", is_outage=True),
    Situation("noup of a host keeps its OSD down", "degraded", (
        "equilibrium on", "osd set-group noup h1", "sim osd down 3", "sim run 5m"), "1h",
        begins="'ceph osd unset-group noup h1'", is_outage=True),
    Situation("three hosts are down, nothing is balanced", "off", (
        "sim host down h0", "sim host down h1", "sim host down h2", "sim run 20m"), "2h",
        begins="start all of host h0, all of host h1, all of host h2;", is_outage=True),
    Situation("an OSD is lost, and nothing is backfilled", "flag", (
        "sim osd lose 9", "osd set nobackfill", "equilibrium on", "sim run 15m"), "6h",
        begins="'ceph osd unset nobackfill'"),
    Situation("a pool's rule takes a root without OSDs", "off", (
        "osd crush add-bucket empty root", "osd crush rule create-replicated nowhere empty host",
        "osd pool set fs crush_rule nowhere", "sim run 10m"), "2h",
        begins="'ceph osd pool set fs crush_rule ", is_outage=True),
    Situation("a class is fuller than any OSD may be", "fill_limit", (
        "sim osd full-ratios 0.3 0.35 0.9", "equilibrium on", "sim run 2h"), "6h",
        begins="add capacity to class hdd, or delete data",
        follow=("sim host add spare 8 1T", "sim host add spare2 8 1T")),
)
