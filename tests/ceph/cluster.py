"""A Ceph cluster of real daemons on loopback: one mon, an mgr or two, BlueStore OSDs on files.

    with DaemonCluster(RELEASES[16], package) as cluster:
        cluster.make_pools(); cluster.write(); cluster.ceph("equilibrium status")

Everything lies in one temporary folder, removed at the end; every daemon is a child, ended by pid.
"""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import tempfile
import uuid
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Tuple

from .daemons import Agent, Answer, ClusterError, Processes, wait_for
from .harness.ceph_conf import CONF
from .release import Release

HERE = Path(__file__).resolve().parent
GIB = 1 << 30

HOSTS: Dict[str, Tuple[float, ...]] = {
    "h0": (2.0, 1.5), "h1": (3.0, 2.0), "h2": (2.0, 2.0), "h3": (4.0, 1.5), "h4": (2.0, 3.0)}
"""OSD sizes in GiB by CRUSH host; OSDs are numbered in this order, weights are their sizes."""

BRAKES = ("start_delay", "pg_cooldown", "max_transit_ratio", "max_backfills_per_osd")
"""Options of the module that hold moves back for longer than tests can wait, or by shares of OSDs
that are as small as theirs."""

ASYNC_IO = Path("/proc/sys/fs/aio-max-nr")
ASYNC_IO_REQUESTS = 1 << 20
"""As Ceph's own packages set it elsewhere: an OSD takes 2,048, by default there are 65,536."""

MODULES = (
    "balancer", "crash", "devicehealth", "iostat", "orchestrator", "pg_autoscaler", "progress",
    "rbd_support", "selftest", "status", "telemetry", "volumes")
"""Ceph's own that an mgr loads here: those that are always on, or by default, and the one that
tests others. At each start it
imports whatever lies in the folder: for all of them a busy machine needs half a minute."""


class DaemonCluster:
    """One cluster of a release. `package` is copied in as mgr module `equilibrium`.

    `keep`: leave the files behind at the end. `hosts`: as HOSTS has them. `osd_options`: more of
    Ceph's options for the OSDs.
    """

    #: OSDs of 1 GiB that run from the start and are not in the CRUSH map.
    spares = 0

    def __init__(self, release: Release, package: Path, keep: bool = False,
                 hosts: Mapping[str, Tuple[float, ...]] = HOSTS,
                 osd_options: Mapping[str, str] = {}) -> None:
        self.release = release
        self.hosts = hosts
        self.osd_options = osd_options
        self.package = package
        self.keep = keep
        self.work = Path(tempfile.mkdtemp(prefix=f"eq-ceph{release.major}-")).resolve()
        self.work.chmod(0o755)
        self.conf = self.work / "ceph.conf"
        self.processes = Processes(release, self.work)
        self.agent = Agent(self.processes, self.conf)
        self.osds: List[float] = []
        #: CRUSH host by OSD, without the spares.
        self.osd_hosts = [host for host, sizes in hosts.items() for _ in sizes]

    def __enter__(self) -> DaemonCluster:
        try:
            self.start()
        except BaseException as error:
            if isinstance(error, ClusterError):
                print(f"{error}\n{self.module_log()}")
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start mon, mgr and OSDs; returns when the mgr answers and every OSD is up."""
        self._write_files()
        allow_many_osds()
        self._start_mon()
        self.start_mgr("x")
        self._start_osds()
        self.wait_mgr()

    def close(self) -> None:
        """End every daemon; remove the files unless they shall stay."""
        self.agent.close()
        self.processes.end_all()
        if self.keep:
            print(f"files of the Ceph {self.release.major} cluster: {self.work}")
        else:
            shutil.rmtree(self.work, ignore_errors=True)

    # -- daemons --------------------------------------------------------------------------------

    def _write_files(self) -> None:
        self.fsid = str(uuid.uuid4())
        self.port = free_port()
        conf = CONF.format(fsid=self.fsid, port=self.port, work=self.work, block=GIB)
        for name, value in self.osd_options.items():
            conf += f"{name} = {value}\n"
        self.conf.write_text(conf)
        (self.work / "crash").mkdir()
        shutil.copy(HERE / "harness" / "agent.py", self.work)
        self._fill_module_folder(self.work / "modules")

    def _fill_module_folder(self, folder: Path) -> None:
        """Links to some of the release's own modules, and a compiled copy of ours."""
        folder.mkdir()
        for entry in sorted(self.release.modules_outside.iterdir()):
            if entry.name in MODULES or entry.suffix == ".py":
                (folder / entry.name).symlink_to(self.release.module_path / entry.name)
        if self.release.major == 18:
            shutil.copy(HERE / "stand_in" / "bcrypt.py", folder)
        copy_package(self.package, folder / "equilibrium")
        self.processes.check(["python3", "-m", "compileall", "-q", str(folder / "equilibrium")])

    def _start_mon(self) -> None:
        keyring, monmap = str(self.work / "keyring"), str(self.work / "monmap")
        check = self.processes.check
        check(["ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.",
               "--cap", "mon", "allow *"])
        self._make_key(keyring, "client.admin", "allow *")
        for name in "xy":
            self._make_key(keyring, f"mgr.{name}", "allow profile mgr")
        for number in range(len(self.osd_hosts) + self.spares):
            self._make_key(keyring, f"osd.{number}", "allow profile osd")
        check(["monmaptool", "--create", "--fsid", self.fsid, "--addv", "a",
               f"[v2:127.0.0.1:{self.port}]", monmap])
        (self.work / "mon.a").mkdir()
        check(["ceph-mon", "-c", str(self.conf), "-i", "a", "--mkfs", "--monmap", monmap,
               "--keyring", keyring])
        self._start_daemon("mon", "a")
        wait_for("the monitor", self._mon_answers, 60)

    def _make_key(self, keyring: str, name: str, of_mon: str) -> None:
        self.processes.check(["ceph-authtool", keyring, "--gen-key", "-n", name, "--cap", "mon",
                              of_mon, "--cap", "mgr", "allow *", "--cap", "osd", "allow *"])

    def _start_daemon(self, kind: str, name: object) -> None:
        self.processes.start(
            f"{kind}.{name}", [f"ceph-{kind}", "-c", str(self.conf), "-i", str(name), "-f"])

    def _mon_answers(self) -> bool:
        self._assert_alive("mon.a")
        try:
            return self.agent.ask("mon", {"prefix": "mon stat"}, seconds=20).rc == 0
        except (ClusterError, OSError):
            self.agent.close()
            return False

    def _assert_alive(self, name: str) -> None:
        if not self.processes.alive(name):
            raise ClusterError(f"{name} ended by itself:\n{self.log_tail(name)}")

    def start_mgr(self, name: str) -> None:
        """Start mgr.NAME; the first becomes active, others stand by."""
        (self.work / f"mgr.{name}").mkdir(exist_ok=True)
        self._start_daemon("mgr", name)

    def _start_osds(self) -> None:
        for sizes in self.hosts.values():
            self.osds += sizes
        self.osds += [1.0] * self.spares
        for number, size in enumerate(self.osds):
            unique = str(uuid.uuid4())
            assert self.mon_json("osd new", uuid=unique)["osdid"] == number
            if number < len(self.osd_hosts):
                self.place(number, size, self.osd_hosts[number])
            (self.work / f"osd.{number}").mkdir()
            self.processes.start(f"mkfs.{number}", [
                "ceph-osd", "-c", str(self.conf), "-i", str(number), "--mkfs", "--osd-uuid", unique,
                f"--bluestore_block_size={int(size * GIB)}"])
        for number in range(len(self.osds)):
            name = f"mkfs.{number}"
            wait_for(name, partial(self.processes.has_ended, name), 180, 0.1)
            if self.processes.running.pop(name).returncode:
                raise ClusterError(f"{name} failed:\n{self.log_tail(name)}")
            self.start_osd(number)
        self.wait_osds()

    def place(self, osd: int, weight: float, host: str) -> None:
        """Into the CRUSH map."""
        self.mon("osd crush add", id=osd, weight=weight, args=["root=default", f"host={host}"])
        hdd: Dict[str, Any] = {"class": "hdd", "ids": [str(osd)]}
        self.mon("osd crush set-device-class", **hdd)

    def start_osd(self, number: int) -> None:
        """Start an OSD whose files are there; does not wait."""
        self._start_daemon("osd", number)

    def wait_osds(self) -> None:
        """Wait until every OSD is up."""
        wait_for("all OSDs up", self._osds_up, 180)

    def _osds_up(self) -> bool:
        for number in range(len(self.osds)):
            self._assert_alive(f"osd.{number}")
        return self.mon_json("osd stat").get("num_up_osds") == len(self.osds)

    # -- commands -------------------------------------------------------------------------------

    def ceph(self, line: str, seconds: float = 60.0) -> Answer:
        """`ceph LINE` as an operator types it; slow to start, use it where the CLI matters."""
        return self.processes.run(
            ["ceph", "-c", str(self.conf), "--connect-timeout", "30", *shlex.split(line)], seconds)

    def mon(self, prefix: str, data: str = "", **arguments: Any) -> Answer:
        """A monitor command over the open connection; ClusterError when it fails."""
        return _succeeded(f"{prefix} {arguments}",
                          self.agent.ask("mon", {"prefix": prefix, **arguments}, data))

    def mon_json(self, prefix: str, **arguments: Any) -> Any:
        """A monitor command's JSON output."""
        return self.mon(prefix, format="json", **arguments).json()

    def mgr(self, prefix: str, seconds: float = 60.0, **arguments: Any) -> Answer:
        """An mgr command over the open connection, whatever its rc."""
        return self.agent.ask("mgr", {"prefix": prefix, **arguments}, seconds=seconds)

    def mgr_json(self, prefix: str, **arguments: Any) -> Any:
        """An mgr command's JSON output; ClusterError when it fails."""
        return _succeeded(f"{prefix} {arguments}",
                          self.mgr(prefix, format="json", **arguments)).json()

    def set_config(self, who: str, name: str, value: Any) -> None:
        """`ceph config set WHO NAME VALUE`."""
        self.mon("config set", who=who, name=name, value=str(value))

    def remove_config(self, who: str, name: str) -> None:
        """`ceph config rm WHO NAME`."""
        self.mon("config rm", who=who, name=name)

    def set_option(self, name: str, value: Any) -> None:
        """Set an option of the module."""
        self.set_config("mgr", f"mgr/equilibrium/{name}", value)

    def remove_option(self, name: str) -> None:
        """Back to an option's default."""
        self.remove_config("mgr", f"mgr/equilibrium/{name}")

    def hurry(self) -> None:
        """Take the module's brakes off."""
        for name in BRAKES:
            self.set_option(name, 0)

    # -- what Ceph tells ------------------------------------------------------------------------

    def osd_dump(self, **arguments: Any) -> Any:
        """`ceph osd dump`."""
        return self.mon_json("osd dump", **arguments)

    def osd_nodes(self) -> List[Dict[str, Any]]:
        """The OSDs as `ceph osd df` tells them."""
        return self.mgr_json("osd df")["nodes"]

    def pg_stats(self, contents: str = "pgs") -> List[Dict[str, Any]]:
        """The PGs of `ceph pg dump CONTENTS`, which may be pgs_brief."""
        return self.mgr_json("pg dump", dumpcontents=[contents])["pg_stats"]

    def health_checks(self) -> Dict[str, Any]:
        """Code → check, of `ceph health detail`."""
        return self.mon_json("health", detail="detail")["checks"]

    # -- the mgr --------------------------------------------------------------------------------

    def active_mgr(self) -> str:
        """Name of the available active mgr, "" while there is none."""
        stat = self.mon_json("mgr stat")
        return stat["active_name"] if stat.get("available") else ""

    def wait_mgr(self, seconds: float = 90.0) -> str:
        """Wait until the active mgr answers a command with fresh statistics of every OSD that is
        in."""
        def answers() -> str:
            name = self.active_mgr()
            if not name or self.mgr("pg stat", seconds=30).rc:
                return ""
            nodes = self.osd_nodes()
            are_known = [node["kb"] > 0 for node in nodes if node["reweight"] > 0]
            tree = self.mon_json("osd tree")["nodes"]
            placed = sum(node["type"] == "osd" for node in tree)
            has_all = all(are_known) and len(nodes) >= placed
            return name if has_all else ""
        return wait_for("an active mgr with statistics", answers, seconds)

    def enable(self, module: str) -> None:
        """Enable an mgr module; the mgr respawns, so wait until the module answers."""
        self.mon("mgr module enable", module=module)
        wait_for(f"module {module} listed as enabled",
                 lambda: module in self.mon_json("mgr module ls")["enabled_modules"], 30)
        self.wait_module(module)

    def wait_module(self, module: str = "equilibrium", seconds: float = 300.0) -> None:
        """Wait until the active mgr knows and answers `MODULE status`, with patience: an mgr that
        starts takes long on a busy machine, and a command to the last one is lost."""
        def answers() -> bool:
            try:
                return bool(self.active_mgr()) and self.mgr(f"{module} status", 60).rc == 0
            except ClusterError:
                return False
        wait_for(f"{module} status answers", answers, seconds)

    def install_hook(self, hook: Path) -> None:
        """Restart the mgrs with a copy of the package that imports `hook` last of all."""
        folder = self.work / "modules" / "equilibrium"
        shutil.copy(hook, folder)
        with open(folder / "__init__.py", "a") as package:
            package.write(f"\n\nfrom . import {hook.stem}  # noqa\n")
        names = [name for name in self.processes.running if name.startswith("mgr.")]
        for name in names:
            self.processes.end(name, hard=True)
        gid = self.mgr_dump()["active_gid"]
        for name in names:
            self.start_mgr(name[len("mgr."):])
        self.mon("mgr fail", who=self.mgr_dump()["active_name"])
        self.wait_other_mgr(gid)
        self.wait_mgr()
        self.wait_module()

    def mgr_dump(self) -> Dict[str, Any]:
        """`ceph mgr dump`."""
        return self.mon_json("mgr dump")

    def wait_other_mgr(self, gid: int, seconds: float = 60.0) -> None:
        """Wait until an mgr is active that is not that one."""
        wait_for("another active mgr", lambda: self.mgr_dump()["active_gid"] not in (0, gid),
                 seconds)

    def fail_mgr(self) -> str:
        """`ceph mgr fail`; returns the name of the next active mgr once it answers."""
        before = self.mgr_dump()
        self.mon("mgr fail", who=before["active_name"])
        self.wait_other_mgr(before["active_gid"], 90)
        return self.wait_mgr()

    def kill_mgr(self) -> str:
        """`kill -9` of the active mgr, which then stands by; the next one's name once it answers.

        The monitor gives up on a silent mgr after `mon_mgr_beacon_grace`.
        """
        before = self.mgr_dump()
        self.processes.end(f"mgr.{before['active_name']}", hard=True)
        self.wait_other_mgr(before["active_gid"], 90)
        name = self.wait_mgr()
        self.start_mgr(before["active_name"])
        return name

    # -- failures -------------------------------------------------------------------------------

    def log_tail(self, name: str, lines: int = 25) -> str:
        """The end of a daemon's log and output."""
        text = ""
        for path in (self.work / f"{name}.out", self.work / f"{name}.log"):
            if path.exists():
                text += "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) + "\n"
        return text

    def module_failures(self) -> str:
        """What shows that the module raised an exception: a health error, a logged traceback."""
        error = self.health_checks().get("MGR_MODULE_ERROR")
        found = [str(error)] if error else []
        for said in self._logged(_is_of_traceback).values():
            found += said
        return "\n".join(found[-20:])

    def mispredictions(self) -> List[str]:
        """What the module logged of shards that took more than it had predicted."""
        return sum(self._logged(_is_misprediction).values(), [])

    def module_log(self, lines: int = 60) -> str:
        """What the mgrs logged about the module or about any failure, last lines."""
        found: List[str] = []
        for name, said in self._logged(_worth_showing).items():
            found += [f"-- {name}", *said[-lines:]]
        return "\n".join(found)

    def _logged(self, is_wanted: Callable[[str], bool]) -> Dict[str, List[str]]:
        """Those lines of each mgr's log."""
        found = {}
        for path in sorted(self.work.glob("mgr.*.log")):
            with open(path, errors="replace") as log:
                found[path.name] = [line.rstrip() for line in log if is_wanted(line)]
        return found


def allow_many_osds() -> None:
    """As many asynchronous requests as the OSDs of some clusters at once need, where it may be
    set."""
    try:
        if int(ASYNC_IO.read_text()) < ASYNC_IO_REQUESTS:
            ASYNC_IO.write_text(str(ASYNC_IO_REQUESTS))
    except OSError:
        pass   # enough for one cluster


def copy_package(source: Path, target: Path) -> None:
    """Copy a package without its compiled files."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def _succeeded(command: str, answer: Answer) -> Answer:
    if answer.rc:
        raise ClusterError(f"{command}: rc {answer.rc}: {answer.err}")
    return answer


def _is_of_traceback(line: str) -> bool:
    return 'File "' in line and "/equilibrium/" in line


def _is_misprediction(line: str) -> bool:
    return "were predicted" in line


def _worth_showing(line: str) -> bool:
    if re.search(r"libqatzip|NOTIFY_TYPES|log_channel\(audit\)|Loading ", line):
        return False
    return re.search(r"equilibrium|Traceback|  File |Error|ERROR", line) is not None


def free_port() -> int:
    """A port of the loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
