"""Commands to the simulation: `sim run`, `sim save`, `sim help`, and those of the other modules"""

from __future__ import annotations

import errno
from typing import Callable, Dict, List, Optional

from ..clock import format_span, parse_span
from ..errors import Answer, StubError, invalid
from ..host.module_host import ModuleHost
from ..state.state_file import save_state, write_file
from . import sim_cluster_commands, sim_mgr_commands
from .picture import picture

#: Virtual seconds after which `sim run idle` fails.
IDLE_LIMIT = 60 * 86400.0

#: Virtual seconds without any change after which the simulation counts as idle: two rounds.
_QUIET_SECONDS = 100.0

#: All commands with their arguments, as shown by `sim help`.
HELP = """\
sim run SPAN|idle                 lets time pass: 2h, or until nothing moves for 100s
sim save FILE                     writes the cluster as a state file
sim picture FILE                  draws each OSD's utilization since the start, as SVG
sim osd out|in|down|up N...       down ones are marked out after mon_osd_down_out_interval,
                                  and in again when they are up
sim osd reweight N WEIGHT         0 to 1
sim osd crush-reweight N WEIGHT   a TiB is 1 by custom
sim osd primary-affinity N WEIGHT 0 to 1
sim osd lose N                    down, out, and its data gone
sim osd full-ratios NEARFULL BACKFILLFULL FULL
sim host add NAME COUNT SIZE [class=hdd] [under=BUCKET]
sim host down|up NAME             all its OSDs
sim pool create NAME pg_num=N size=S [k=K] [rule=NAME]
sim pool rm NAME
sim pool pg_num NAME N            the mgr goes there step by step
sim pool tier NAME BASE           the pool becomes a cache tier; of - it is none any more
sim stretch off|healthy|degraded|recovering
                                  what the osdmap says of a cluster of two sites
sim write|delete POOL SIZE        by clients, at once
sim grow POOL SIZE/SPAN           by clients, all the time: 10G/1h; 0 stops
sim load POOL READS/s WRITES/s [READ_KB WRITE_KB] [parts=N] [day=HH-HH:FACTOR]
         [backup=HH-HH:FACTOR] [weekend=FACTOR]
                                  operations of clients all the time, 4 KiB each if not said; 0 0
                                  stops. They are counted and change no bytes. From HH to HH h UTC
                                  `day` multiplies the rates, `backup` those of reads; `weekend`
                                  does on Saturday and Sunday. A write is N of num_write
sim osd allocation RATIO N... [pool=NAME]
                                  OSDs allocate so many bytes for each that they store
sim pool optimize NAME CHUNK      allow_ec_optimizations: shards differ in size by position
sim swell POOL RATIO              copies take so much more where they arrive than where they were
sim flag set|unset NAME           flags of the osdmap, such as noout
sim backfill rate SIZE [N...]     bytes per second of these OSDs, or of every OSD
sim peering SPAN                  how long PGs peer
sim scrub PGID SPAN               the PG shows a scrub
sim inconsistent PGID on|off      a scrub has found copies that differ; they are repaired
sim write-omap POOL SIZE          by clients, at once
sim deep-scrub POOL               has ended: its PGs tell their omap
sim compact N...                  their stores: what omap has left is free, Ceph 16 tells the rest
sim compaction SPAN               stores are compacted so long after omap has left
sim deletion SPAN                 OSDs delete a shard that has left them over so long; 0s: at once
sim log-recovery on|off           PGs with a whole log are recovered, not backfilled, as in Ceph
sim failover                      the mgr hands over in good order
sim mgr fail [at POINT [COUNT]] [takeover=SPAN]
                                  the mgr dies, at once or at the COUNT-th call of the API:
                                  before- or after- send, store, map, get
sim meanwhile POINT COUNT COMMAND  a command at that call, in the middle of a round
sim mon delay SPAN                epochs come so much after the mgr's commands
sim mon reject RATIO              commands of the mgr that are refused
sim mon lose RATIO                commands of the mgr that are done but answered wrongly or never
sim mon drop RATIO                PGs whose upmap items it drops, answering 0 all the same
sim mon down|up                   the mgr's connection to the monitors
sim stats freeze SPAN             nothing is reported
sim stats lag SPAN                reports are that old
sim stats gap SPAN N...           these OSDs have not reported yet, as after a failover
sim stats hang SPAN N...          these OSDs are up and report nothing new
sim stats noise RATIO [SPAN]      reported bytes are off by up to that, anew after each SPAN (5s)
sim clock jump SPAN               the wall clock, forward or (-1h) back
sim balancer on|off|disable       the built-in one; without its module altogether (Ceph 20)"""


def run(host: ModuleHost, words: List[str], run_line: Callable[[str], None]) -> Answer:
    """Runs `sim WORDS`; StubError for an unknown command.

    `run_line` runs the line of an interrupting command when its call comes.
    """
    name = "".join(words[:1])
    if name == _MEANWHILE:
        return 0, sim_mgr_commands.interrupt_call(host, words[1:], run_line), ""
    if name in _HANDLERS:
        return _HANDLERS[name](host, words[1:])
    for length in (2, 1):
        command = _COMMANDS.get(" ".join(words[:length]))
        if command is not None:
            return 0, command(host, words[length:]), ""
    longer = sorted(known for known in _COMMANDS if known.startswith(f"{name} "))
    if longer:
        raise invalid(f"sim {name} knows only: {', '.join(f'sim {known}' for known in longer)}")
    known = sorted({_MEANWHILE, *_HANDLERS,
                    *(command.partition(" ")[0] for command in _COMMANDS)})
    raise invalid(f"'sim {' '.join(words)}' is not known; there are {', '.join(known)}")


def _help(host: ModuleHost, words: List[str]) -> Answer:
    if words:
        raise invalid("sim help takes no arguments")
    return 0, HELP, ""


def _run_time(host: ModuleHost, words: List[str]) -> Answer:
    if len(words) != 1:
        raise invalid("sim run needs a time span such as 2h, or idle")
    if words[0] == "idle":
        run_idle(host)
    else:
        host.run_until(host.clock.now + parse_span(words[0]))
    return 0, "", ""


def run_idle(host: ModuleHost, report: Optional[Callable[[], None]] = None,
             limit: float = IDLE_LIMIT) -> None:
    """Runs rounds until the host is idle for _QUIET_SECONDS, and no epoch is made meanwhile.

    `report` is called after every round. StubError (ETIMEDOUT) after `limit` virtual seconds.
    """
    end = host.clock.now + limit
    quiet_end = host.clock.now + _QUIET_SECONDS
    while host.clock.now < quiet_end:
        if host.clock.now >= end:
            raise StubError(errno.ETIMEDOUT,
                            f"the simulation is not idle after {format_span(limit)}")
        epoch = host.cluster.map.epoch
        was_busy = host.busy()
        host.run_next_round()
        if report is not None:
            report()
        if was_busy or host.busy() or epoch != host.cluster.map.epoch:
            quiet_end = host.clock.now + _QUIET_SECONDS


def _into_file(name: str, write: Callable[[ModuleHost, str], None]
               ) -> Callable[[ModuleHost, List[str]], Answer]:
    def run_it(host: ModuleHost, words: List[str]) -> Answer:
        if len(words) != 1:
            raise invalid(f"sim {name} needs one file name")
        write(host, words[0])
        return 0, "", ""
    return run_it


_HANDLERS: Dict[str, Callable[[ModuleHost, List[str]], Answer]] = {
    "run": _run_time,
    "save": _into_file("save", lambda host, path: save_state(host.cluster, path)),
    "picture": _into_file("picture", lambda host, path: write_file(path, picture(host).encode())),
    "help": _help,
}

_MEANWHILE = "meanwhile"


_COMMANDS: Dict[str, sim_mgr_commands.Command] = {
    **{name: lambda host, words, run=command: run(host.simulation, words)  # type: ignore[misc]
       for name, command in sim_cluster_commands.COMMANDS.items()},
    **sim_mgr_commands.COMMANDS,
}

#: Of all commands, without `sim`.
NAMES = (_MEANWHILE, *_HANDLERS, *_COMMANDS)
