"""A Ceph cluster of real daemons on loopback: one mon, an mgr or two, BlueStore OSDs on files.

    with DaemonCluster(RELEASES[16], package) as cluster:
        cluster.make_pools(); cluster.write(); cluster.ceph("equilibrium status")

Everything lies in one temporary folder, removed at the end; every daemon is a child, ended by pid.
"""

from __future__ import annotations

import shlex
import shutil
import socket
import tempfile
import uuid
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

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
        self.conf.write_text(CONF.format(
            fsid=self.fsid, port=self.port, work=self.work, block=GIB)
            + "".join(f"{name} = {value}\n" for name, value in self.osd_options.items()))
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
        check(["ceph-authtool", keyring, "--gen-key", "-n", "client.admin", "--cap", "mon",
               "allow *", "--cap", "mgr", "allow *", "--cap", "osd", "allow *"])
        count = sum(len(sizes) for sizes in self.hosts.values()) + self.spares
        for name, kind in [("mgr.x", "mgr"), ("mgr.y", "mgr"),
                           *((f"osd.{number}", "osd") for number in range(count))]:
            check(["ceph-authtool", keyring, "--gen-key", "-n", name, "--cap", "mon",
                   f"allow profile {kind}", "--cap", "mgr", "allow *", "--cap", "osd", "allow *"])
        check(["monmaptool", "--create", "--fsid", self.fsid, "--addv", "a",
               f"[v2:127.0.0.1:{self.port}]", monmap])
        (self.work / "mon.a").mkdir()
        conf = ["-c", str(self.conf)]
        check(["ceph-mon", *conf, "-i", "a", "--mkfs", "--monmap", monmap, "--keyring",
               keyring])
        self.processes.start("mon.a", ["ceph-mon", *conf, "-i", "a", "-f"])
        wait_for("the monitor", lambda: self._alive("mon.a") and self._mon_answers(), 60)

    def _mon_answers(self) -> bool:
        try:
            return self.agent.ask("mon", {"prefix": "mon stat"}, seconds=20).rc == 0
        except (ClusterError, OSError):
            self.agent.close()
            return False

    def _alive(self, name: str) -> bool:
        if not self.processes.alive(name):
            raise ClusterError(f"{name} ended by itself:\n{self.log_tail(name)}")
        return True

    def start_mgr(self, name: str) -> None:
        """Start mgr.NAME; the first becomes active, others stand by."""
        (self.work / f"mgr.{name}").mkdir(exist_ok=True)
        self.processes.start(
            f"mgr.{name}", ["ceph-mgr", "-c", str(self.conf), "-i", name, "-f"])

    def _start_osds(self) -> None:
        hosts = [host for host, sizes in self.hosts.items() for _ in sizes] + [""] * self.spares
        self.osds = [size for sizes in self.hosts.values() for size in sizes] + [1.0] * self.spares
        for number, (size, host) in enumerate(zip(self.osds, hosts)):
            unique = str(uuid.uuid4())
            assert self.mon_json("osd new", uuid=unique)["osdid"] == number
            if host:
                self._place(number, size, host)
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

    def _place(self, osd: int, weight: float, host: str) -> None:
        """Into the CRUSH map."""
        self.mon("osd crush add", id=osd, weight=weight, args=["root=default", f"host={host}"])
        hdd: Dict[str, Any] = {"class": "hdd", "ids": [str(osd)]}
        self.mon("osd crush set-device-class", **hdd)

    def start_osd(self, number: int) -> None:
        """Start an OSD whose files are there; does not wait."""
        self.processes.start(
            f"osd.{number}", ["ceph-osd", "-c", str(self.conf), "-i", str(number), "-f"])

    def wait_osds(self) -> None:
        """Wait until every OSD is up."""
        wait_for("all OSDs up", self._osds_up, 180)

    def _osds_up(self) -> bool:
        for number in range(len(self.osds)):
            self._alive(f"osd.{number}")
        stat = self.mon_json("osd stat")
        return stat.get("num_up_osds", 0) == len(self.osds)

    # -- commands -------------------------------------------------------------------------------

    def ceph(self, line: str, seconds: float = 60.0) -> Answer:
        """`ceph LINE` as an operator types it; slow to start, use it where the CLI matters."""
        return self.processes.run(
            ["ceph", "-c", str(self.conf), "--connect-timeout", "30", *shlex.split(line)], seconds)

    def mon(self, prefix: str, data: str = "", **arguments: Any) -> Answer:
        """A monitor command over the open connection; ClusterError when it fails."""
        answer = self.agent.ask("mon", {"prefix": prefix, **arguments}, data)
        if answer.rc:
            raise ClusterError(f"{prefix} {arguments}: rc {answer.rc}: {answer.err}")
        return answer

    def mon_json(self, prefix: str, **arguments: Any) -> Any:
        """A monitor command's JSON output."""
        return self.mon(prefix, format="json", **arguments).json()

    def mgr(self, prefix: str, seconds: float = 60.0, **arguments: Any) -> Answer:
        """An mgr command over the open connection, whatever its rc."""
        return self.agent.ask("mgr", {"prefix": prefix, **arguments}, seconds=seconds)

    def mgr_json(self, prefix: str, **arguments: Any) -> Any:
        """An mgr command's JSON output; ClusterError when it fails."""
        answer = self.mgr(prefix, format="json", **arguments)
        if answer.rc:
            raise ClusterError(f"{prefix} {arguments}: rc {answer.rc}: {answer.err}")
        return answer.json()

    def set_option(self, name: str, value: Any) -> None:
        """Set an option of the module, as `ceph config set mgr mgr/equilibrium/NAME` does."""
        self.mon("config set", who="mgr", name=f"mgr/equilibrium/{name}", value=str(value))

    def hurry(self) -> None:
        """Take the module's brakes off."""
        for name in BRAKES:
            self.set_option(name, 0)

    # -- the mgr --------------------------------------------------------------------------------

    def active_mgr(self) -> str:
        """Name of the available active mgr, "" while there is none."""
        stat = self.mon_json("mgr stat")
        return stat["active_name"] if stat.get("available") else ""

    def wait_mgr(self, seconds: float = 90.0) -> str:
        """Wait until the active mgr answers a command with fresh statistics of every OSD."""
        def answers() -> str:
            name = self.active_mgr()
            if not name or self.mgr("pg stat", seconds=30).rc:
                return ""
            nodes = self.mgr_json("osd df")["nodes"]
            return name if all(node["kb"] for node in nodes) and len(nodes) >= len(
                self.osds) - self.spares else ""
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
        gid = self.mon_json("mgr dump")["active_gid"]
        for name in names:
            self.start_mgr(name[len("mgr."):])
        self.mon("mgr fail", who=self.mon_json("mgr dump")["active_name"])
        wait_for("a new active mgr",
                 lambda: self.mon_json("mgr dump")["active_gid"] not in (0, gid), 60)
        self.wait_mgr()
        self.wait_module()

    def fail_mgr(self) -> str:
        """`ceph mgr fail`; returns the name of the next active mgr once it answers."""
        before = self.mon_json("mgr dump")
        self.mon("mgr fail", who=before["active_name"])
        return self._wait_other_mgr(before["active_gid"])

    def kill_mgr(self) -> str:
        """`kill -9` of the active mgr, which then stands by; the next one's name once it answers.

        The monitor gives up on a silent mgr after `mon_mgr_beacon_grace`.
        """
        before = self.mon_json("mgr dump")
        self.processes.end(f"mgr.{before['active_name']}", hard=True)
        name = self._wait_other_mgr(before["active_gid"])
        self.start_mgr(before["active_name"])
        return name

    def _wait_other_mgr(self, gid: int) -> str:
        wait_for("another active mgr",
                 lambda: self.mon_json("mgr dump")["active_gid"] not in (0, gid), 90)
        return self.wait_mgr()

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
        checks = self.mon_json("health", detail="detail")["checks"]
        found = [str(check) for name, check in checks.items() if name == "MGR_MODULE_ERROR"]
        for path in sorted(self.work.glob("mgr.*.log")):
            with open(path, errors="replace") as log:
                found += [line.strip() for line in log
                          if 'File "' in line and "/equilibrium/" in line]
        return "\n".join(found[-20:])

    def mispredictions(self) -> List[str]:
        """What the module logged of shards that took more than it had predicted."""
        found: List[str] = []
        for path in sorted(self.work.glob("mgr.*.log")):
            with open(path, errors="replace") as log:
                found += [line.strip() for line in log if "were predicted" in line]
        return found

    def module_log(self, lines: int = 60) -> str:
        """What the mgrs logged about the module or about any failure, last lines."""
        found: List[str] = []
        for path in sorted(self.work.glob("mgr.*.log")):
            with open(path, errors="replace") as log:
                said = [line.rstrip() for line in log if _worth_showing(line)]
            found += [f"-- {path.name}", *said[-lines:]]
        return "\n".join(found)


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


def _worth_showing(line: str) -> bool:
    words = ("equilibrium", "Traceback", "  File ", "Error", "ERROR")
    noise = ("libqatzip", "NOTIFY_TYPES", "log_channel(audit)", "Loading ")
    return any(word in line for word in words) and not any(word in line for word in noise)


def free_port() -> int:
    """A port of the loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
