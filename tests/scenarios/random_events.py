"""Random streams of events: a day or two of trouble for a random cluster, then all of it healed.

The same seed gives the same stream. What an event breaks is put right at the end, so that the
cluster can come to rest.
"""
from __future__ import annotations

import random
from typing import Callable, Dict, List, Sequence, Tuple

from tests.benchmark.made.shapes import Layout

from . import clusters
from .scenario import Event, Scenario

Options = Tuple[Tuple[str, str], ...]

CLUSTER = "random"
MINUTE, HOUR = 60.0, 3600.0
#: After the last event it has so long to come to rest, and then as long with noise alone.
REST_SECONDS, NOISE_SECONDS = 10 * HOUR, 24 * HOUR
#: Of the module's rounds, in seconds; many rounds in which it is blocked take most of the time.
_INTERVALS = (60, 300, 300, 600, 600, 600, 900, 900)
#: Mostly slow: events are to find a plan under way.
_RATES = ("1M", "2M", "4M", "8M", "100M")
_USUAL_RATE = "sim backfill rate 100M"
_FIRST, _LAST = 5 * MINUTE, 16 * HOUR
_OUT = "config set mgr mgr/equilibrium/"
_POINTS = [when + "-" + what for what in ("get", "map", "send", "store")
           for when in ("before", "after")]
_FLAGS = ("norebalance", "nobackfill", "norecover", "pause", "noout", "noscrub")
_OPTIONS: Tuple[Tuple[str, Sequence[str]], ...] = (
    ("max_misplaced_ratio", ("0.01", "0.03", "0.1")), ("max_backfills_per_osd", ("1", "2", "0")),
    ("max_transit_ratio", ("0.02", "0")), ("max_moves_per_round", ("1", "5")),
    ("pg_cooldown", ("0", "600", "7200")), ("aim", ("even", "least-motion", "space")),
    ("min_gain", ("0", "0.02")), ("fill_limit", ("0.75",)), ("start_delay", ("0", "600")),
    ("sleep_interval", ("10", "300")), ("relieve_while_degraded", ("false",)),
    ("begin_time", ("0800", "2200")), ("end_time", ("0500",)))
_DEFAULTS = {"begin_time": "0000", "end_time": "2400", "sleep_interval": "600", "fill_limit": "0"}


class Stream:
    """What has happened so far, and what it takes to heal it."""

    def __init__(self, rng: random.Random, layout: Layout) -> None:
        self.rng = rng
        self.osds = sorted(layout.tib)
        self.hosts = _hosts(layout)
        self.racks = [name[5:] for name in layout.tree["root default"] if name.startswith("rack")]
        self.pools = [pool.name for pool in layout.pools]
        self.first_pool = self.pools[0]
        self.pg_nums = {pool.name: pool.pg_num for pool in layout.pools}
        self.pool_bytes = {pool.name: _stored(layout, pool.share) for pool in layout.pools}
        self.lost = False
        self.made = 0
        self.heals: Dict[str, None] = {}   # in the order of the events

    def heal(self, *lines: str) -> None:
        self.heals.update(dict.fromkeys(lines))


Kind = Callable[[Stream], List[str]]


def scenario(seed: int) -> Scenario:
    """The stream of a seed, with its healing, as a scenario."""
    return stream_of("event", seed, KINDS)


def steered(seed: int) -> Scenario:
    """The same where shards that are copied anyway get other targets."""
    played = scenario(seed)
    return played._replace(
        name=f"steered {played.name}",
        options=(*played.options, ("steer_recovery", "true"), ("hold_placement", "true")))


def stream_of(name: str, seed: int, kinds: Sequence[Kind], *heals: str,
              cluster: str = CLUSTER) -> Scenario:
    """A stream of events of these kinds. `heals`: lines that belong to the healing in any case."""
    rng = random.Random(f"{name}s/{seed}")
    interval = rng.choice(_INTERVALS)
    layout = clusters.layout_of(cluster, seed)
    stream = Stream(rng, layout)
    events = [Event(0.0, _OUT + f"sleep_interval {interval}"),
              Event(0.0, "sim backfill rate " + rng.choice(_RATES)),
              Event(0.0, "equilibrium on")]
    stream.heal(_USUAL_RATE, *heals)
    moments = [rng.uniform(_FIRST, HOUR)]   # the first plan is under way
    moments += sorted(rng.uniform(HOUR, _LAST) for _ in range(rng.randint(2, 7)))
    for moment in moments:
        at = max(float(int(moment)), events[-1].at + MINUTE)
        if len(events) > 3 and rng.random() < 0.3:   # in the middle of what the last one has begun
            at = events[-1].at + rng.choice((20.0, 2 * MINUTE, 11 * MINUTE))
        events += [Event(at + 10.0 * n, line) for n, line in enumerate(rng.choice(kinds)(stream))]
    healed = events[-1].at + rng.choice((20 * MINUTE, 2 * HOUR))
    events += [Event(healed + 10.0 * n, line) for n, line in enumerate(
        list(stream.heals) + [_OUT + "sleep_interval 600", "try equilibrium on"])]
    return _ended(f"{name} stream {seed}", seed, events, _tight_limits(rng, layout), cluster)


def quiet(seed: int) -> Scenario:
    """The cluster of a seed, and nothing happens to it."""
    return _ended(f"random cluster {seed}", seed, [Event(0.0, "equilibrium on")])


def _tight_limits(rng: random.Random, layout: Layout) -> Options:
    """Limits of which now one, now the other is the one that binds."""
    limits = [("max_misplaced_ratio", rng.choice(("0.01", "0.02", "0.05", "0.3")))]
    if rng.random() < 0.5:
        limits.append(("max_backfills_per_osd", rng.choice(("1", "2", "3"))))
    if rng.random() < 0.4:
        limits.append(("max_transit_ratio", "0"))
    if rng.random() < 0.3:
        limits.append(("fill_limit", f"{layout.highest_fill * rng.uniform(0.75, 0.9):.2f}"))
    return tuple(limits)


def _ended(name: str, seed: int, events: List[Event], options: Options = (),
           cluster: str = CLUSTER) -> Scenario:
    noisy = events[-1].at + REST_SECONDS
    return Scenario(name=name, description=name, cluster=cluster, seed=seed, options=options,
                    events=tuple(events + [
                        Event(noisy - 10.0, _OUT + "sleep_interval 3600"),
                        Event(noisy, "sim stats noise 0.01")]),
                    seconds=noisy + NOISE_SECONDS, expected=())


# -- OSDs and hosts -------------------------------------------------------------------------------

def _osd_out(stream: Stream) -> List[str]:
    osd = stream.rng.choice(stream.osds)
    stream.heal(f"sim osd in {osd}")
    return [f"sim osd out {osd}"]


def _osd_in(stream: Stream) -> List[str]:
    return [f"sim osd in {stream.rng.choice(stream.osds)}"]


def _osd_down(stream: Stream) -> List[str]:
    osd = stream.rng.choice(stream.osds)
    stream.heal(f"sim osd up {osd}", f"sim osd in {osd}")
    return [f"sim osd down {osd}"]


def _osd_up(stream: Stream) -> List[str]:
    return [f"sim osd up {stream.rng.choice(stream.osds)}"]


def _flapping(stream: Stream) -> List[str]:
    osd = stream.rng.choice(stream.osds)
    return [f"sim osd down {osd}", f"sim osd up {osd}"]


def _osd_reweight(stream: Stream) -> List[str]:
    osd = stream.rng.choice(stream.osds)
    return [f"sim osd reweight {osd} {stream.rng.choice(('0.7', '0.9', '1'))}"]


def _crush_reweight(stream: Stream) -> List[str]:
    osd = stream.rng.choice(stream.osds)
    return [f"sim osd crush-reweight {osd} {stream.rng.choice(('0.2', '0.4'))}"]


def _osd_lose(stream: Stream) -> List[str]:
    if stream.lost:
        return _osd_reweight(stream)   # two of them may be too much for a pool's size
    stream.lost = True
    osd = stream.rng.choice(stream.osds)
    stream.heal(f"sim osd up {osd}", f"sim osd in {osd}")
    return [f"sim osd lose {osd}"]


def _full_ratios(stream: Stream) -> List[str]:
    stream.heal("sim osd full-ratios 0.85 0.9 0.95")
    return ["sim osd full-ratios " + stream.rng.choice(("0.6 0.7 0.95", "0.8 0.82 0.95"))]


def _host_add(stream: Stream) -> List[str]:
    rng = stream.rng
    stream.made += 1
    where = f" under={rng.choice(stream.racks)}" if stream.racks else ""
    osds = rng.randint(1, 2)
    return [f"sim host add new{stream.made} {osds} {rng.choice(('256G', '512G'))}{where}"]


def _host_down(stream: Stream) -> List[str]:
    name = stream.rng.choice(sorted(stream.hosts))
    stream.heal("sim host up " + name, "sim osd in " + " ".join(map(str, stream.hosts[name])))
    return ["sim host down " + name]


def _host_up(stream: Stream) -> List[str]:
    return ["sim host up " + stream.rng.choice(sorted(stream.hosts))]


# -- pools and data -------------------------------------------------------------------------------

def _pool_create(stream: Stream) -> List[str]:
    stream.made += 1
    name, pg_num = f"new{stream.made}", stream.rng.choice((8, 16))
    stream.pools.append(name)
    stream.pg_nums[name], stream.pool_bytes[name] = pg_num, 0
    return [f"sim pool create {name} pg_num={pg_num} size=3", f"sim write {name} 20G"]


def _pool_rm(stream: Stream) -> List[str]:
    if len(stream.pools) < 2:
        return _delete(stream)
    name = stream.rng.choice(stream.pools)
    stream.pools.remove(name)
    for line in [line for line in stream.heals if line.startswith(f"sim grow {name} ")]:
        del stream.heals[line]
    return ["sim pool rm " + name]


def _pg_num(stream: Stream) -> List[str]:
    name = stream.rng.choice(stream.pools)
    now = stream.pg_nums[name]
    wanted = now * 2 if now <= 64 and stream.rng.random() < 0.6 else max(4, 3 * now // 4)
    stream.pg_nums[name] = wanted
    return [f"sim pool pg_num {name} {wanted}"]


def _write(stream: Stream) -> List[str]:
    name = stream.rng.choice(stream.pools)
    return [f"sim write {name} {stream.rng.choice((5, 20, 60))}G"]


def _delete(stream: Stream) -> List[str]:
    name = stream.rng.choice(stream.pools)
    part = int(stream.pool_bytes[name] * stream.rng.choice((0.1, 0.4))) >> 30
    return [f"sim delete {name} {max(1, part)}G"]


def _grow(stream: Stream) -> List[str]:
    name = stream.rng.choice(stream.pools)
    stream.heal(f"sim grow {name} 0")
    return [f"sim grow {name} {stream.rng.choice(('1G/1h', '8G/1h'))}"]


# -- flags and speeds -----------------------------------------------------------------------------

def _flag_set(stream: Stream) -> List[str]:
    flag = stream.rng.choice(_FLAGS)
    stream.heal("sim flag unset " + flag)
    return ["sim flag set " + flag]


def _flag_unset(stream: Stream) -> List[str]:
    return ["sim flag unset " + stream.rng.choice(_FLAGS)]


def _backfill_rate(stream: Stream) -> List[str]:
    stream.heal(_USUAL_RATE)
    return ["sim backfill rate " + stream.rng.choice(("0", "2M", "20M", "400M"))]


def _peering(stream: Stream) -> List[str]:
    stream.heal("sim peering 1s")
    return ["sim peering " + stream.rng.choice(("20s", "90s"))]


def _scrub(stream: Stream) -> List[str]:
    if stream.first_pool not in stream.pools:
        return _failover(stream)
    return [f"sim scrub 1.{number:x} {stream.rng.choice(('10m', '3h'))}"
            for number in stream.rng.sample(range(4), 2)]


# -- the mgr and the monitor ----------------------------------------------------------------------

def _failover(stream: Stream) -> List[str]:
    return ["sim failover"]


def _mgr_fail(stream: Stream) -> List[str]:
    return ["sim mgr fail" + stream.rng.choice(("", " takeover=90s"))]


def _mgr_fail_at(stream: Stream) -> List[str]:
    point = stream.rng.choice(_POINTS)
    return [f"sim mgr fail at {point} {stream.rng.choice((1, 2, 4, 7, 20))}"]


def _mon_trouble(stream: Stream) -> List[str]:
    line, cure = stream.rng.choice((
        ("delay 10s", "delay 0s"), ("delay 45s", "delay 0s"), ("reject 0.3", "reject 0"),
        ("lose 0.3", "lose 0"), ("down", "up")))
    stream.heal("sim mon " + cure)
    return ["sim mon " + line]


def _mon_up(stream: Stream) -> List[str]:
    return ["sim mon up"]


def _statistics(stream: Stream) -> List[str]:
    line, cure = stream.rng.choice((
        ("freeze 10m", "freeze 0s"), ("freeze 2h", "freeze 0s"), ("lag 5m", "lag 0s"),
        ("lag 20m", "lag 0s"), ("noise 0.009", "noise 0")))   # not the 0.01 of the end
    stream.heal("sim stats " + cure)
    return ["sim stats " + line]


def _clock(stream: Stream) -> List[str]:
    return ["sim clock jump " + stream.rng.choice(("1h", "-1h", "10m", "-10m"))]


def _builtin(stream: Stream) -> List[str]:
    stream.heal("sim balancer off")
    return ["sim balancer on"]


# -- the operator ---------------------------------------------------------------------------------

def _option(stream: Stream) -> List[str]:
    name, values = stream.rng.choice(_OPTIONS)
    if name in _DEFAULTS:
        stream.heal(f"{_OUT}{name} {_DEFAULTS[name]}")
    return [f"{_OUT}{name} {stream.rng.choice(values)}"]


def _pool_ids(stream: Stream) -> List[str]:
    stream.heal(f"{_OUT}pool_ids ''")
    return [f"{_OUT}pool_ids {stream.rng.randint(1, len(stream.pools))}"]


def _classes(stream: Stream) -> List[str]:
    stream.heal(f"{_OUT}device_classes ''")
    return [_OUT + "device_classes " + stream.rng.choice(("hdd", "ssd"))]


def _off(stream: Stream) -> List[str]:
    return ["try equilibrium off"]


def _on(stream: Stream) -> List[str]:
    return ["try equilibrium on"]


def _read(stream: Stream) -> List[str]:
    stream.made += 1
    plan = f"look{stream.made}"
    return ["try equilibrium " + line for line in (
        "status", "eval", "optimize " + plan, "show " + plan, "eval " + plan, "explain", "ls")]


def _execute(stream: Stream) -> List[str]:
    stream.made += 1
    plan = f"plan{stream.made}"
    return ["try equilibrium off", "try equilibrium optimize " + plan,
            "try equilibrium execute " + plan]


KINDS: Sequence[Kind] = (
    _osd_out, _osd_out, _osd_in, _osd_down, _osd_down, _osd_up, _flapping, _osd_reweight,
    _crush_reweight, _osd_lose, _full_ratios, _host_add, _host_add, _host_down, _host_up,
    _pool_create, _pool_rm, _pg_num, _pg_num, _write, _delete, _grow, _flag_set, _flag_set,
    _flag_unset, _backfill_rate, _peering, _scrub, _failover, _mgr_fail, _mgr_fail_at,
    _mgr_fail_at, _mon_trouble, _mon_trouble, _mon_up, _statistics, _statistics, _clock, _builtin,
    _option, _option, _option, _pool_ids, _classes, _off, _on, _read, _execute)


def _hosts(layout: Layout) -> Dict[str, List[int]]:
    """Host → its OSDs."""
    found: Dict[str, List[int]] = {}
    for name, branch in layout.tree["root default"].items():
        for host, osds in branch.items() if name.startswith("rack") else [(name, branch)]:
            found[host[5:]] = list(osds)
    return found


def _stored(layout: Layout, share: float) -> int:
    """Roughly the bytes of a pool with such a share, for deletes that are felt."""
    whole = sum(pool.share for pool in layout.pools)
    return int(share / whole * sum(layout.tib.values()) * (1 << 40) * layout.highest_fill / 4)
