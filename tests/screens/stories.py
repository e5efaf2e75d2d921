"""What happens on the demo cluster, line by line; the answers are recorded."""
from __future__ import annotations

from typing import Dict, Tuple

_OPTION = "config set mgr mgr/equilibrium/"
_SLOW = "sim backfill rate 4M"
_PAIR = "equilibrium explain 2.1f 14"

_STEERS = (f"{_OPTION}steer_recovery true", f"{_OPTION}hold_placement true",
           "sim backfill rate 1T", "equilibrium on", "sim run 75m", "sim backfill rate 100M")
#: Asked at each moment of an outage.
_OUTAGE = ("equilibrium status", "equilibrium moves --limit 12", "health detail")

#: Name → lines, after a first look; `golden/stories/NAME.txt` has what equilibrium answers.
STORIES: Dict[str, Tuple[str, ...]] = {
    "pool-list": (
        "equilibrium pool ls", "equilibrium pool add fast vms", "equilibrium pool add vms",
        "config get mgr mgr/equilibrium/pool_ids", "equilibrium pool ls", "equilibrium optimize p",
        "equilibrium show p", "equilibrium pool rm vms", "equilibrium optimize p --replace",
        "equilibrium show p", "equilibrium optimize p vms --replace", "equilibrium show p",
        "equilibrium pool rm vms", "equilibrium pool rm fast", "equilibrium pool ls",
        "sim failover", "equilibrium pool ls", "sim pool rm fast", "sim run 2m",
        "equilibrium pool ls", "equilibrium pool add backup",
        "config rm mgr mgr/equilibrium/pool_ids", "sim run 1s", "equilibrium pool rm vms",
        "equilibrium optimize p --replace", "equilibrium show p"),
    "plan-executed": (
        "equilibrium optimize p", "equilibrium ls", "equilibrium execute p", "sim run 2m",
        "equilibrium ls", "equilibrium history", "sim run idle", "sim run 5m", "equilibrium ls",
        "equilibrium status", "equilibrium history", "sim failover", "sim run 5m",
        "equilibrium ls", "equilibrium history", "equilibrium execute p",
        "equilibrium optimize p --replace", "equilibrium ls"),
    "plan-removed": (
        f"{_OPTION}max_moves_per_round 3", "equilibrium optimize p", "equilibrium execute p",
        "sim run 2m", "equilibrium rm p", "equilibrium status", "equilibrium ls", "sim run 10m",
        "sim failover", "sim run 10m", "equilibrium history", "equilibrium rm p",
        "equilibrium optimize p", "equilibrium on", "equilibrium execute p", "sim run 2m",
        "equilibrium rm p", "equilibrium status", "sim run 5m", "equilibrium history"),
    "plan-outdated": (
        "equilibrium optimize p", "sim osd out 3", "sim run 1s", "equilibrium ls",
        "equilibrium eval p", "equilibrium execute p", "equilibrium rm p",
        "equilibrium optimize q", "sim pool rm vms", "equilibrium ls", "equilibrium execute q"),
    "plan-limited": (
        "equilibrium optimize p --from osd.6", "equilibrium eval p",
        "equilibrium optimize q --device-class ssd", "equilibrium eval q",
        "equilibrium optimize r --device-class ssd --to osd.5", "equilibrium eval r",
        "equilibrium optimize s --max-bytes 1", "equilibrium execute s",
        "equilibrium optimize t --from hots", "equilibrium optimize t --to osd.4711",
        "equilibrium optimize t --not ,", "equilibrium optimize t --not osd.0,x"),
    "plan-for-a-rule": (
        "equilibrium optimize p --rule replicated_hdd", "equilibrium optimize p vms --rule nobody",
        "equilibrium optimize p vms --rule erasure_hdd",
        "equilibrium optimize p vms --rule replicated_ssd",
        "equilibrium optimize p vms --rule replicated_hdd", "equilibrium show p", "equilibrium on",
        "equilibrium optimize p vms --rule replicated_hdd --replace"),
    "off-while-data-moves": (
        "equilibrium on", "sim run 6m", "sim flag set nobackfill", "equilibrium off",
        "equilibrium history", "sim failover", "sim run 5m", "equilibrium history"),
    "drains-paused": (
        "equilibrium drain add 3", "equilibrium off", "equilibrium drain ls", "equilibrium on",
        "equilibrium off", "equilibrium drain add osd.6", "sim run 3m", "equilibrium off",
        "sim run 2m", "equilibrium status", "equilibrium drain ls", "equilibrium on",
        "equilibrium on"),
    "drains-held-up": (
        "sim run 3m", "equilibrium drain add 3", "osd set norebalance", "sim run 3m",
        "equilibrium drain ls", "equilibrium status", "equilibrium explain osd.3",
        "osd unset norebalance", "balancer on", "sim run 3m", "equilibrium drain ls",
        "equilibrium status", "equilibrium explain osd.3"),
    "drains-too-many": (
        "equilibrium drain add host3 host4 host5", "equilibrium drain ls",
        "equilibrium drain add host3 host4 host5 --dry-run", "equilibrium drain ls",
        "equilibrium drain add host3 host4 host5 --force", "equilibrium drain ls", "sim run 5m",
        "equilibrium explain", "equilibrium drain rm host3 host4 host5", "sim run 3m",
        "equilibrium drain add 3 7 11 15 19", "equilibrium drain add 23", "equilibrium drain ls"),
    "drains-stuck": (
        f"{_OPTION}fill_limit 0.5", "equilibrium drain add host5", "sim run 2h",
        "equilibrium drain ls", "equilibrium explain osd.20", "equilibrium explain osd.6"),
    "drains-done": (
        "equilibrium drain ls", "equilibrium drain add 3", "sim run 3m", "equilibrium drain ls",
        "sim run 2h", "equilibrium drain ls", "equilibrium status", "equilibrium explain osd.3"),
    "left-out": (
        f"{_OPTION}not_buckets osd.3", "equilibrium status", "equilibrium drain add osd.3",
        "sim run 2m", "equilibrium status", "equilibrium drain rm osd.3",
        f"{_OPTION}to_buckets host0", f"{_OPTION}not_buckets osd.6", "equilibrium status"),
    "bad-options": (
        f"{_OPTION}pool_ids 4711", "equilibrium on", "sim run 1h", "equilibrium status",
        "equilibrium explain", "health detail", f"{_OPTION}pool_ids 1,4711",
        f"{_OPTION}device_classes hdd,SSD", "sim run 4m", "health detail",
        "equilibrium pool rm 4711", f"{_OPTION}device_classes hdd", "sim run 4m",
        "equilibrium pool ls", "equilibrium status", "health detail"),
    "pairs": (
        "sim osd out 14", "sim run 1m", "equilibrium explain", "sim run 2s", _PAIR,
        "sim osd in 14", "equilibrium drain add 14", "sim run 1m", "equilibrium explain",
        "sim run 2s", _PAIR, "equilibrium drain rm 14", f"{_OPTION}to_buckets host1", "sim run 1m",
        "equilibrium explain", "sim run 2s", _PAIR, "config rm mgr mgr/equilibrium/to_buckets",
        "equilibrium pool add backup", "sim run 1m", "equilibrium explain", "sim run 2s", _PAIR,
        "config rm mgr mgr/equilibrium/pool_ids", f"{_OPTION}fill_limit 0.7", "sim run 1m",
        "equilibrium explain", "sim run 2s", _PAIR),
    "unused": (
        "sim host add new 2 2T class=nvme", "sim host add other 2 2T class=nvme",
        "sim host add far 2 2T", "sim osd crush-reweight 28 0", "sim osd out 29", "sim run 1m",
        "equilibrium status", "sim run 1m", "equilibrium status", "equilibrium explain osd.24",
        "equilibrium explain osd.28", "equilibrium explain osd.29"),
    "urgent": (
        f"{_OPTION}urgent_misplaced_ratio 0.3", _SLOW, "equilibrium on", "sim run 3m",
        "equilibrium status", "sim osd full-ratios 0.75 0.84 0.95", "sim run 6m",
        "equilibrium status", f"{_OPTION}urgent_misplaced_ratio 0.01", "sim run 3m",
        "equilibrium status"),
    "not-reported": (
        "equilibrium on", "sim run 3m", "sim failover", "sim stats gap 10m 4 6", "sim run 1m",
        "equilibrium status", "equilibrium explain", "sim run 2m", "equilibrium status",
        "equilibrium explain", "equilibrium explain osd.4", "sim run 10m", "equilibrium status"),
    "no-monitor": (
        "equilibrium on", "sim run 5m", "sim mon down", "sim run 61s", "equilibrium status"),
    "next-batch": (
        f"{_OPTION}max_misplaced_ratio 0.01", "sim backfill rate 10G", "equilibrium optimize p",
        "equilibrium execute p", "sim run 65s", "equilibrium status", "sim run 40s",
        "equilibrium status", "equilibrium explain"),
    "older-figures": (
        "sim run 1h", "sim write vms 2T", "sim run 1m", "equilibrium eval", "sim run 1m",
        "equilibrium eval", "sim run 1h", "sim write vms 200G", "sim run 1m", "equilibrium status",
        "sim run 1m", "equilibrium status", "sim run 5h", "equilibrium status"),
    "frozen": (
        "sim flag set norebalance", "sim osd out 3", "sim run 1m", "equilibrium freeze",
        "sim run 20s", "equilibrium freeze", "equilibrium ls"),
    "frozen-beside-a-drain": (
        "sim backfill rate 5M", "equilibrium drain add 6", "sim run 4m", "equilibrium eval",
        "sim run 20s", "equilibrium freeze --dry-run", "equilibrium off",
        "equilibrium freeze --dry-run"),
    "osds-come-back": (
        "equilibrium on", "sim run 3h", "sim osd out 16 20 8", "sim run 5m", "equilibrium status",
        "health detail", "sim osd in 16 20 8", "sim run 5m", "equilibrium status",
        "health detail"),
    "options": (
        f"{_OPTION}max_moves_per_round 7", f"{_OPTION}min_gain 0.002", "equilibrium status"),
    "bad-source": (
        f"{_OPTION}from_buckets hots1", "equilibrium on", "sim run 1h", "equilibrium status",
        "equilibrium explain", "health detail"),
    "bad-spared": (
        f"{_OPTION}not_buckets ,", "equilibrium on", "sim run 1h", "equilibrium status",
        "equilibrium explain", "health detail"),
    "window": (
        f"{_OPTION}begin_time noon", "equilibrium on", "sim run 2m", "equilibrium status",
        "equilibrium explain", f"{_OPTION}begin_time 0000", "sim run 2m", "equilibrium status"),
    "flags": (
        "osd set noout", "osd set norebalance", "sim run 1m", "equilibrium status", "sim run 1m",
        "equilibrium status", "osd unset noout", "osd unset norebalance", "sim run 1m",
        "equilibrium status"),
    "one-at-a-time": (
        "equilibrium optimize p", "equilibrium optimize q", "equilibrium execute p",
        "equilibrium eval p", "equilibrium execute q", "equilibrium execute p",
        "equilibrium optimize p", "equilibrium ls", "equilibrium reset", "equilibrium ls"),
    "newer-map": (
        "equilibrium optimize p", "sim osd primary-affinity 0 0.5", "sim run 1s",
        "equilibrium eval p", "equilibrium ls"),
    "new-pool": (
        "sim pool create fresh pg_num=8 size=3", "equilibrium explain fresh",
        "equilibrium eval fresh", "sim run 20s", "equilibrium explain fresh",
        "equilibrium eval fresh"),
    "drained-while-off": (
        "equilibrium drain add 3 7 11 15 --force", "sim run 2h", "equilibrium status",
        "equilibrium explain osd.6", "equilibrium explain"),
    "page-options": (
        f"{_OPTION}pool_ids 2", f"{_OPTION}begin_time 2200", f"{_OPTION}end_time 0600",
        f"{_OPTION}begin_weekday 1", f"{_OPTION}end_weekday 6",
        f"{_OPTION}max_backfills_per_osd 0", "osd set noout", "sim osd down 5", "sim osd out 5",
        "sim run 2m", "equilibrium optimize p", "equilibrium eval p", "sim run 5s",
        "equilibrium report p", "equilibrium report"),
    "page-failures": (
        "equilibrium optimize p", "sim run 2m", "equilibrium eval p --worst-failure",
        "equilibrium report p", "equilibrium eval --worst-failure", "equilibrium report p"),
    "page-executed": (
        "equilibrium optimize p", "equilibrium execute p", "sim run 5m", "equilibrium eval",
        "sim run 5s", "equilibrium report p"),
    "page-sent": (
        "equilibrium optimize p --max-moves 5", "sim backfill rate 20M", "equilibrium execute p",
        "sim run 2m", "equilibrium eval", "sim run 5s", "equilibrium status",
        "equilibrium report p", "equilibrium rm p", "equilibrium freeze", "sim run 10s",
        "equilibrium report freeze-1"),
    "one-name": (
        "equilibrium optimize vms", "equilibrium eval vms", "equilibrium eval plan/vms",
        "equilibrium eval pool/vms", "equilibrium eval plan/nope"),
    "aims": (
        "equilibrium optimize p", f"{_OPTION}aim even", "equilibrium optimize q",
        "equilibrium optimize r --aim least-motion", "config rm mgr mgr/equilibrium/aim",
        "sim failover", "sim run 2s", "equilibrium eval", "sim run 2s", "equilibrium optimize s",
        "equilibrium ls"),
    "asked-before": (
        "sim run 10s", "equilibrium eval --remove host1,host2", "sim pool rm backup",
        "sim run 10s", "equilibrium eval", "sim run 25s", "equilibrium eval",
        "equilibrium eval --remove host1,host2", "equilibrium eval --remove host3,host4"),
    "too-full": (
        _SLOW, "equilibrium on", "sim run 10m", "osd set-nearfull-ratio 0.3",
        "osd set-backfillfull-ratio 0.31", "sim run 5m", "equilibrium status",
        "equilibrium metrics"),
    "plan-lacks-osds": (
        "equilibrium optimize p", "sim flag set noout", "sim host down host5", "sim run 30s",
        "equilibrium execute p", "sim run 2m", "sim host up host5", "sim run idle",
        "equilibrium history"),
    "plan-made-in-part": (
        "equilibrium optimize p", "osd pg-upmap-items 2.2e 6 21", "osd pg-upmap-items 5.a 19 11",
        "sim run idle", "equilibrium execute p", "sim run 1m", "sim run idle",
        "equilibrium history", "equilibrium execute p", "equilibrium status",
        "osd rm-pg-upmap-items 2.2e", "equilibrium execute p"),
    "host-lost": (
        *_STEERS, "sim host down host3", "sim run 5s", *_OUTAGE, "sim run 9m55s", "sim run 10s",
        *_OUTAGE, "equilibrium explain 2.3", "sim run 30s", *_OUTAGE, "equilibrium explain 2.3",
        "equilibrium explain 2.6", "equilibrium explain 2.5", "sim run 1h", *_OUTAGE,
        "equilibrium explain", "equilibrium history", "sim run 90m", *_OUTAGE, "sim run 3h",
        *_OUTAGE, "equilibrium explain 2.3", "equilibrium explain 2.6", "equilibrium history"),
    "weight-taken-away": (
        *_STEERS, "sim osd crush-reweight 9 0", "sim run 20s", *_OUTAGE, "sim run 40s", *_OUTAGE,
        "sim failover", "sim run 1m", *_OUTAGE, "sim run 15m", *_OUTAGE, "equilibrium history"),
}
