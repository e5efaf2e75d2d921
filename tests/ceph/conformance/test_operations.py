"""Counters of client operations: real daemons and mgr_stub count the same.

One object in each PG of a pool gets the same operations, so that all PGs are equally loaded, as the
simulator has it; compared are all PGs' counters and the sums of their pool.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List

import pytest

from mgr_stub.simulation.statistics import pg_dump

from ..release import RELEASES
from .events import Event
from .sides import Sides, both_sides

COUNTERS = ("num_read", "num_read_kb", "num_write", "num_write_kb")
POOLS = ("small", "ec")
LEADER = 2
"""An OSD that leads PGs of both pools."""
LOADS = {"write": "0 {} 8 8", "read": "{} 0 8 8", "compound": "0 {} 8 17 parts=5"}
"""By kind of operation the load in the simulator, with a place for the rate; omap has overhead."""
MGR_POOL = "1"
"""The mgr writes to it when it likes."""
SECONDS = 100
"""Of a load in the simulator."""
REPORTED_SECONDS = 7.0
"""After so long the mgr has what was done."""
ATTEMPTS = 10
"""So often the real counters are read, until they are the simulator's: scrubs take their time."""

CLIENT = """
import rados, sys
cluster = rados.Rados(conffile=sys.argv[1], name='client.admin')
cluster.connect()
io = cluster.open_ioctx(sys.argv[2])
kind, times = sys.argv[3], int(sys.argv[4])
for name in sys.argv[5:] * times:
    if kind == 'write':
        io.write_full(name, b'x' * 8192)
    elif kind == 'read':
        io.read(name, 8192)
    else:
        with rados.WriteOpCtx() as parts:
            parts.write(b'x' * 8192, 0)
            for key in 'abc':
                io.set_omap(parts, (key,), (b'v' * 2048,))
            parts.set_xattr('q', b'1')
            io.operate_write_op(parts, name)
"""

Counts = Dict[str, List[Any]]
"""Of PGs and pools COUNTERS, and of a PG its version's number."""


def test_the_same_operations_are_counted(major: int, request: pytest.FixtureRequest) -> None:
    with both_sides(RELEASES[major], request.config.getoption("--ceph-keep")) as sides:
        game = _Game(sides)
        game.operate("small", "compound", 3)
        for kind, times in (("write", 5), ("read", 7)):
            game.operate_on_all(kind, times)
        game.compare("written and read")
        for weight in (0.0, 1.0):
            sides.do(Event("affinity", (LEADER, weight)))
            game.compare(f"osd.{LEADER} has a primary affinity of {weight}")
            game.operate_on_all("read", 4)
            game.operate("ec", "write", 1)  # else the next primary may know them, or not
            # a primary that returns sometimes knows its reads again, and sometimes not
            game.compares_reads = False
        for number in (12, 10):
            for pool in POOLS:
                sides.do(Event("pg_num", (pool, number)))
            game.compare(f"pg_num is {number}")


class _Game:
    """Both sides, and an object of each PG."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        (sides.real.work / "client.py").write_text(CLIENT)
        self.objects = {pool: self._object_of_each_pg(pool) for pool in POOLS}
        self.compares_reads = True
        sides.stub.settle()

    def _object_of_each_pg(self, pool: str) -> Dict[str, str]:
        found: Dict[str, str] = {}
        for number in range(200):
            name = f"one{number}"
            there = self.sides.real.mon_json("osd map", pool=pool, object=name)
            found[there["pgid"]] = name
        return found

    def operate_on_all(self, kind: str, times: int) -> None:
        for pool in POOLS:
            self.operate(pool, kind, times)

    def operate(self, pool: str, kind: str, times: int) -> None:
        """Does an operation so often to each PG, on both sides."""
        real, stub = self.sides.real, self.sides.stub
        words = ["python3", str(real.work / "client.py"), str(real.conf), pool, kind, str(times)]
        names = self.objects[pool].values()
        real.processes.check([*words, *names], 60)
        rate = (len(names) * times + 0.5) / SECONDS
        for load in (LOADS[kind].format(rate), "0 0"):
            assert stub.session.command(f"sim load {pool} {load}") == (0, "", "")
            stub.session.host.run_for(SECONDS)

    def compare(self, what: str) -> None:
        self.sides.settle()
        stub = self._counts(pg_dump(self.sides.stub.simulation.cluster))
        real: Counts = {}
        for _ in range(ATTEMPTS):
            time.sleep(REPORTED_SECONDS)
            dump = self.sides.real.mgr_json("pg dump", dumpcontents=["all"])
            real = self._counts(dump["pg_map"])
            if real == stub:
                break
        assert real == stub, what

    def _counts(self, dump: Dict[str, Any]) -> Counts:
        found: Counts = {}
        for record in [*dump["pg_stats"], *dump["pool_stats"]]:
            key = str(record.get("pgid", record.get("poolid")))
            if key.partition(".")[0] != MGR_POOL:
                sums = [record["stat_sum"][name] for name in COUNTERS]
                if not self.compares_reads:
                    sums[:2] = []
                found[key] = [*sums, record.get("version", "").partition("'")[2]]
        return found
