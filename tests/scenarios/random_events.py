"""Random streams of events: a day or two of trouble for a random cluster, then all of it healed.

The same seed gives the same stream. What an event breaks is put right at the end, so that the
cluster can come to rest.
"""
from __future__ import annotations

import random
import re
from typing import Callable, Dict, List, Match, NamedTuple, Sequence, Tuple

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
#: How a line of the tables of kinds is read: what is drawn, from the left to the right. `{osd}` is
#: the same in all of the line, `{osd=}` is drawn and not said, `[a|b]` is one of these.
_DRAWN = re.compile(r"\{(\w+)(=?)\}|\[([^]]*)\]")
_EITHER, _HEALED, _NEXT = " / ", " ~ ", "; "


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

    def lines(self, text: str) -> List[str]:
        """The lines of an event, as text with what is to be drawn; those behind ~ heal it."""
        names: Dict[str, str] = {}

        def drawn(found: Match[str]) -> str:
            name, is_silent, values = found.groups()
            if name is None:
                names["same"] = self.rng.choice(values.split("|"))
                return names["same"]
            if name not in names:
                names[name] = getattr(self, f"draw_{name}")(names)
            if is_silent:
                return ""
            return names[name]
        alternatives = text.split(_EITHER)
        if len(alternatives) > 1:
            text = self.rng.choice(alternatives)
        lines, _, heals = _DRAWN.sub(drawn, text).partition(_HEALED)
        if heals:
            self.heal(*heals.split(_NEXT))
        return lines.split(_NEXT)

    def draw_osd(self, names: Dict[str, str]) -> str:
        return str(self.rng.choice(self.osds))

    def draw_host(self, names: Dict[str, str]) -> str:
        host = self.rng.choice(sorted(self.hosts))
        names["osds"] = " ".join(map(str, self.hosts[host]))
        return host

    def draw_under(self, names: Dict[str, str]) -> str:
        if self.racks:
            return f" under={self.rng.choice(self.racks)}"
        return ""

    def draw_pool(self, names: Dict[str, str]) -> str:
        return self.rng.choice(self.pools)

    def draw_pool_id(self, names: Dict[str, str]) -> str:
        return str(self.rng.randint(1, len(self.pools)))

    def draw_part(self, names: Dict[str, str]) -> str:
        """Of what the pool holds, in GiB."""
        part = self.rng.choice((0.1, 0.4))
        return str(max(1, int(self.pool_bytes[names["pool"]] * part) >> 30))

    def draw_pg_num(self, names: Dict[str, str]) -> str:
        now = self.pg_nums[names["pool"]]
        is_split = now <= 64 and self.rng.random() < 0.6
        wanted = now * 2 if is_split else max(4, 3 * now // 4)
        self.pg_nums[names["pool"]] = wanted
        return str(wanted)

    def draw_n(self, names: Dict[str, str]) -> str:
        """Of something new."""
        self.made += 1
        return str(self.made)


class Kind(NamedTuple):
    """Of events."""

    name: str
    text: str   # see Stream.lines; empty for one of _WITH_MEMORY

    def lines(self, stream: Stream) -> List[str]:
        if self.text:
            return stream.lines(self.text)
        return _WITH_MEMORY[self.name](stream)


def kinds(table: str) -> List[Kind]:
    """Lines of how often a kind comes among others, its name, and its text."""
    found: List[Kind] = []
    whole = table.replace("\n  |", "|").replace("\n  ", " ").replace("{option}", _OUT)
    for line in whole.strip().splitlines():
        count, _, described = line.partition(" ")
        name, _, text = described.partition(":")
        found += int(count) * [Kind(name, text.strip())]
    return found


def scenario(seed: int) -> Scenario:
    """The stream of a seed, with its healing, as a scenario."""
    return stream_of("event", seed, KINDS)


def steered(seed: int) -> Scenario:
    """The same where shards that are copied anyway get other targets."""
    played = scenario(seed)
    return played._replace(
        name=f"steered {played.name}",
        options=(*played.options, ("steer_recovery", "true"), ("hold_placement", "true")))


def stream_of(name: str, seed: int, among: Sequence[Kind], *heals: str, cluster: str = CLUSTER,
              made: Callable[[random.Random, Layout], Stream] = Stream) -> Scenario:
    """A stream of events of these kinds. `heals`: lines that belong to the healing in any case."""
    rng = random.Random(f"{name}s/{seed}")
    interval = rng.choice(_INTERVALS)
    layout = clusters.layout_of(cluster, seed)
    stream = made(rng, layout)
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
        events += _at(at, rng.choice(among).lines(stream))
    healed = events[-1].at + rng.choice((20 * MINUTE, 2 * HOUR))
    events += _at(healed, [
        *stream.heals, _OUT + "sleep_interval 600", "try equilibrium on"])
    return _ended(f"{name} stream {seed}", seed, events, _tight_limits(rng, layout), cluster)


def _at(moment: float, lines: Sequence[str]) -> List[Event]:
    """One after the other."""
    return [Event(moment + 10.0 * number, line) for number, line in enumerate(lines)]


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


# -- what has a memory ----------------------------------------------------------------------------

def _osd_lose(stream: Stream) -> List[str]:
    if stream.lost:   # two of them may be too much for a pool's size
        return stream.lines(_REWEIGHT)
    stream.lost = True
    return stream.lines("sim osd lose {osd} ~ sim osd up {osd}; sim osd in {osd}")


def _pool_create(stream: Stream) -> List[str]:
    stream.made += 1
    name, pg_num = f"new{stream.made}", stream.rng.choice((8, 16))
    stream.pools.append(name)
    stream.pg_nums[name], stream.pool_bytes[name] = pg_num, 0
    return [f"sim pool create {name} pg_num={pg_num} size=3", f"sim write {name} 20G"]


def _pool_rm(stream: Stream) -> List[str]:
    if len(stream.pools) < 2:
        return stream.lines(_DELETE)
    name = stream.rng.choice(stream.pools)
    stream.pools.remove(name)
    stream.heals.pop(f"sim grow {name} 0", None)
    return ["sim pool rm " + name]


def _scrub(stream: Stream) -> List[str]:
    if stream.first_pool not in stream.pools:
        return ["sim failover"]
    numbers = stream.rng.sample(range(4), 2)
    return [stream.lines(f"sim scrub 1.{number:x} [10m|3h]")[0] for number in numbers]


_WITH_MEMORY: Dict[str, Callable[[Stream], List[str]]] = {
    "osd lose": _osd_lose, "pool create": _pool_create, "pool rm": _pool_rm, "scrub": _scrub}

# -- the others, in the order of the seeds --------------------------------------------------------

_REWEIGHT = "sim osd reweight {osd} [0.7|0.9|1]"
_DELETE = "sim delete {pool} {part}G"
#: The noise is not the 0.01 of the end.
KINDS = kinds("""
2 osd out: sim osd out {osd} ~ sim osd in {osd}
1 osd in: sim osd in {osd}
2 osd down: sim osd down {osd} ~ sim osd up {osd}; sim osd in {osd}
1 osd up: sim osd up {osd}
1 flapping: sim osd down {osd}; sim osd up {osd}
1 osd reweight: sim osd reweight {osd} [0.7|0.9|1]
1 crush reweight: sim osd crush-reweight {osd} [0.2|0.4]
1 osd lose:
1 full ratios: sim osd full-ratios [0.6 0.7 0.95|0.8 0.82 0.95]
  ~ sim osd full-ratios 0.85 0.9 0.95
2 host add: {under=}sim host add new{n} [1|2] [256G|512G]{under}
1 host down: sim host down {host} ~ sim host up {host}; sim osd in {osds}
1 host up: sim host up {host}
1 pool create:
1 pool rm:
2 pg_num: sim pool pg_num {pool} {pg_num}
1 write: sim write {pool} [5|20|60]G
1 delete: sim delete {pool} {part}G
1 grow: sim grow {pool} [1G/1h|8G/1h] ~ sim grow {pool} 0
2 flag set: sim flag set [norebalance|nobackfill|norecover|pause|noout|noscrub]
  ~ sim flag unset {same}
1 flag unset: sim flag unset [norebalance|nobackfill|norecover|pause|noout|noscrub]
1 backfill rate: sim backfill rate [0|2M|20M|400M] ~ sim backfill rate 100M
1 peering: sim peering [20s|90s] ~ sim peering 1s
1 scrub:
1 failover: sim failover
1 mgr fail: sim mgr fail[| takeover=90s]
2 mgr fail at: sim mgr fail at [before-get|after-get|before-map|after-map|before-send|after-send
  |before-store|after-store] [1|2|4|7|20]
2 mon trouble: sim mon delay 10s ~ sim mon delay 0s / sim mon delay 45s ~ sim mon delay 0s
  / sim mon reject 0.3 ~ sim mon reject 0 / sim mon lose 0.3 ~ sim mon lose 0
  / sim mon down ~ sim mon up
1 mon up: sim mon up
2 statistics: sim stats freeze 10m ~ sim stats freeze 0s
  / sim stats freeze 2h ~ sim stats freeze 0s
  / sim stats lag 5m ~ sim stats lag 0s / sim stats lag 20m ~ sim stats lag 0s
  / sim stats noise 0.009 ~ sim stats noise 0
1 clock: sim clock jump [1h|-1h|10m|-10m]
1 builtin: sim balancer on ~ sim balancer off
3 option: {option}max_misplaced_ratio [0.01|0.03|0.1] / {option}max_backfills_per_osd [1|2|0]
  / {option}max_transit_ratio [0.02|0] / {option}max_moves_per_round [1|5]
  / {option}pg_cooldown [0|600|7200] / {option}aim [even|least-motion|space]
  / {option}min_gain [0|0.02] / {option}fill_limit [0.75] ~ {option}fill_limit 0
  / {option}start_delay [0|600] / {option}sleep_interval [10|300] ~ {option}sleep_interval 600
  / {option}relieve_while_degraded [false]
  / {option}begin_time [0800|2200] ~ {option}begin_time 0000
  / {option}end_time [0500] ~ {option}end_time 2400
1 pool_ids: {option}pool_ids {pool_id} ~ {option}pool_ids ''
1 classes: {option}device_classes [hdd|ssd] ~ {option}device_classes ''
1 off: try equilibrium off
1 on: try equilibrium on
1 read: try equilibrium status; try equilibrium eval; try equilibrium optimize look{n};
  try equilibrium show look{n}; try equilibrium eval look{n}; try equilibrium explain;
  try equilibrium ls
1 execute: try equilibrium off; try equilibrium optimize plan{n}; try equilibrium execute plan{n}
""")


def _hosts(layout: Layout) -> Dict[str, List[int]]:
    """Host → its OSDs."""
    found: Dict[str, List[int]] = {}
    for name, branch in layout.tree["root default"].items():
        hosts = branch if name.startswith("rack") else {name: branch}
        found.update((host[5:], list(osds)) for host, osds in hosts.items())
    return found


def _stored(layout: Layout, share: float) -> int:
    """Roughly the bytes of a pool with such a share, for deletes that are felt."""
    whole = sum(pool.share for pool in layout.pools)
    raw = sum(layout.tib.values()) * (1 << 40) * layout.highest_fill
    return int(share / whole * raw / 4)
