"""The Ceph releases that the real-daemon tests run on: 16 from the system, 18 and 20 in folders.

Ceph 16 comes from the packages installed on this machine (Debian 12). Ceph 18 (Debian 13) and 20
(Debian forky) are bootstrapped once into folders of a cache outside the repository:
`$EQUILIBRIUM_CEPH_CACHE`, by default `${XDG_CACHE_HOME:-~/.cache}/equilibrium-ceph`.
A later run uses the same folders again.

    python3 tests/ceph/release.py 16 18 20      makes them and prints the exact versions

The mirror and its signing keys are those that apt on this machine already uses. Commands inside a
folder run in a mount namespace of their own, so that no mount outlives them.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

EXIT_UNAVAILABLE = 69
"""Exit code of a run for which a release cannot be had here (sysexits' EX_UNAVAILABLE)."""

PACKAGES = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-base", "ceph-common")
BOOTSTRAP_SECONDS = 1200
MARKER = "equilibrium-ready"

# $1 the folder, $2 the folder of the cluster's files ("" for none), then the command to run in it.
# A tmpfs on /tmp keeps the mount point of the cluster's files out of the cached folder.
ENTER = """set -e
root=$1 work=$2; shift 2
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t tmpfs tmpfs "$root/tmp"
if [ -n "$work" ]; then mkdir -p "$root$work"; mount --bind "$work" "$root$work"; fi
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec chroot "$root" "$@"
"""


class ReleaseUnavailable(Exception):
    """A release that cannot be had on this machine; the text is one sentence."""


class Release:
    """One major version of Ceph and how to run its programs.

    `suite` is the Debian suite it is bootstrapped from, None for the system's own packages;
    `script` is the debootstrap script to fall back on where the suite has none yet.
    """

    def __init__(self, major: int, suite: Optional[str] = None, script: str = "") -> None:
        self.major = major
        self.suite = suite
        self.script = script
        self.version = ""

    @property
    def root(self) -> Optional[Path]:
        """The bootstrapped folder, None when the programs are the system's."""
        return cache_folder() / f"ceph-{self.major}-{self.suite}" if self.suite else None

    @property
    def module_path(self) -> Path:
        """Where the release keeps its own mgr modules, as seen from its programs."""
        return Path("/usr/share/ceph/mgr")

    @property
    def modules_outside(self) -> Path:
        """The folder of `module_path` as seen from outside."""
        return Path(f"{self.root or ''}{self.module_path}")

    def command(self, argv: Sequence[str], work: Optional[Path] = None) -> List[str]:
        """The argv that runs `argv` with this release's files and sees `work` at its own path."""
        if self.root is None:
            return list(argv)
        return enter(self.root, argv, work)

    def prepare(self) -> str:
        """Make the release usable, once; its exact version. Raises ReleaseUnavailable."""
        if self.version:
            return self.version
        if os.geteuid() != 0:
            raise ReleaseUnavailable(
                f"Ceph {self.major}: the tests on real daemons need root for ceph-osd and chroot.")
        if self.root is not None:
            bootstrap(self)
        self.version = self._read_version()
        return self.version

    def _read_version(self) -> str:
        try:
            done = subprocess.run(
                self.command(["ceph-mon", "--version"]), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
            said = done.stdout.strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)
        found = re.search(r"ceph version (\S+)", said)
        if not found or found.group(1).split(".")[0] != str(self.major):
            where, cure = "here", f"; apt-get install --no-install-recommends {' '.join(PACKAGES)}"
            if self.root:
                where, cure = f"in {self.root}", ""
            raise ReleaseUnavailable(f"Ceph {self.major} is expected {where}, but `ceph-mon "
                                     f"--version` says: {said or 'nothing'}{cure}.")
        return found.group(1).split("+")[0]


RELEASES: Dict[int, Release] = {
    16: Release(16),
    18: Release(18, "trixie"),
    20: Release(20, "forky", script="sid"),
}


def cache_folder() -> Path:
    """The folder that holds the bootstrapped releases; outside the repository."""
    named = os.environ.get("EQUILIBRIUM_CEPH_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base).absolute() / "equilibrium-ceph"


def enter(root: Path, argv: Sequence[str], work: Optional[Path] = None) -> List[str]:
    """argv that runs `argv` chrooted into `root`, with mounts that end with the process."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh",
            str(root), str(work or ""), *argv]


def bootstrap(release: Release) -> None:
    """Make the folder of a release unless a finished one is there. Raises ReleaseUnavailable."""
    root = release.root
    assert root is not None
    with _only_one(root.parent / f"{root.name}.lock"):
        if (root / MARKER).exists():
            return
        _throw_away(root)
        started = time.monotonic()
        mirror = Mirror.of_this_machine()
        mirror.check(str(release.suite))
        _log(f"bootstrapping Ceph {release.major} from Debian {release.suite} into {root}")
        _debootstrap(release, root, mirror)
        _install(release, root, mirror)
        (root / MARKER).write_text(f"{release.suite}\n")
        _log(f"Ceph {release.major} ready after {time.monotonic() - started:.0f} s")


class Mirror:
    """The Debian mirror that apt on this machine uses: its address, keyring and proxy."""

    def __init__(self, address: str, keyring: str, proxies: Dict[str, str]) -> None:
        self.address = address
        self.keyring = keyring
        self.environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C", **proxies)
        self.proxies = proxies

    @classmethod
    def of_this_machine(cls) -> Mirror:
        """Read apt's own index list. Raises ReleaseUnavailable when it knows no Debian."""
        try:
            listed = _output(["apt-get", "indextargets", "--format",
                              "$(ORIGIN)|$(LABEL)|$(REPO_URI)|$(SOURCESENTRY)",
                              "Created-By: Packages"])
        except OSError:
            listed = ""
        for line in listed.splitlines():
            origin, label, address, entry = (line.split("|") + [""] * 4)[:4]
            if (origin, label) == ("Debian", "Debian"):
                return cls(address, _signed_by(entry), _proxies(address))
        raise ReleaseUnavailable(
            "apt on this machine knows no Debian mirror to bootstrap from (apt-get update first).")

    def check(self, suite: str) -> None:
        """Raise ReleaseUnavailable unless the mirror answers for that suite."""
        for tool in ("debootstrap", "wget", "unshare"):
            if not shutil.which(tool):
                raise ReleaseUnavailable(f"{tool} is not installed, which bootstrapping needs.")
        url = f"{self.address.rstrip('/')}/dists/{suite}/Release"
        done = subprocess.run(
            ["wget", "--quiet", "--spider", "--tries=2", "--timeout=20", url],
            env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode:
            raise ReleaseUnavailable(f"The mirror {self.address} does not answer for {suite}.")


def _signed_by(entry: str) -> str:
    """The keyring that apt's source entry `file:line` names, "" for debootstrap's own choice."""
    try:
        text = Path(entry.rpartition(":")[0]).read_text()
    except OSError:
        return ""
    found = re.search(r"signed-by\s*[:=]\s*(/[^\s\],]+)", text, re.IGNORECASE)
    return found.group(1) if found else ""


def _proxies(address: str) -> Dict[str, str]:
    """apt's proxy as the environment variable that wget and debootstrap obey."""
    scheme = address.split(":", 1)[0]
    said = _output(["apt-config", "shell", "PROXY", f"Acquire::{scheme}::Proxy"])
    words = shlex.split(said)
    value = words[0].partition("=")[2] if words else ""
    return {f"{scheme}_proxy": value} if value and value != "DIRECT" else {}


def _debootstrap(release: Release, root: Path, mirror: Mirror) -> None:
    argv = ["unshare", "--mount", "--propagation", "private", "debootstrap", "--variant=minbase",
            "--include=ca-certificates"]
    if mirror.keyring:
        argv.append(f"--keyring={mirror.keyring}")
    argv += [str(release.suite), str(root), mirror.address]
    scripts = Path("/usr/share/debootstrap/scripts")
    if release.script and not (scripts / str(release.suite)).exists():
        argv.append(str(scripts / release.script))
    _step(f"debootstrap of {release.suite} from {mirror.address}", argv, mirror)


def _install(release: Release, root: Path, mirror: Mirror) -> None:
    """Install Ceph inside the folder; without /proc the packages stay unconfigured."""
    conf = ['Acquire::Check-Valid-Until "false";', 'Acquire::Languages "none";',
            'APT::Install-Recommends "false";']
    conf += [f'Acquire::{name[:-6]}::Proxy "{value}";' for name, value in mirror.proxies.items()]
    (root / "etc/apt/apt.conf.d/90equilibrium").write_text("\n".join(conf) + "\n")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")  # no service of the packages starts in the folder
    policy.chmod(0o755)
    script = ("apt-get update -q && apt-get install -q -y " + " ".join(PACKAGES)
              + " && apt-get clean")
    _step(f"installing Ceph from {release.suite}", enter(root, ["sh", "-c", script]), mirror)


def _step(what: str, argv: Sequence[str], mirror: Mirror) -> None:
    """Run one step of a bootstrap, with a time limit; its last output line is the reason."""
    process = subprocess.Popen(
        argv, env=mirror.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        said, _ = process.communicate(timeout=BOOTSTRAP_SECONDS)
    except BaseException as error:
        os.killpg(process.pid, 9)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ReleaseUnavailable(f"{what}: no end after {BOOTSTRAP_SECONDS} s.") from None
        raise
    if process.returncode:
        lines = said.strip().splitlines() or ["no output"]
        _log("\n".join(lines[-15:]))
        raise ReleaseUnavailable(f"{what} failed: {lines[-1]}")


def _throw_away(root: Path) -> None:
    """Remove a half-made folder; never cross into anything that is mounted in it."""
    if root.exists():
        _log(f"throwing the half-made {root} away")
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)
    root.parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two runs never make the same folder at once; the second waits for the first."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _output(argv: Sequence[str]) -> str:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, timeout=60).stdout


def _log(text: str) -> None:
    print(f"ceph releases: {text}", file=sys.stderr, flush=True)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Prepare the named releases; EXIT_UNAVAILABLE and one sentence when one cannot be had."""
    parser = argparse.ArgumentParser(description="Prepare Ceph releases for tests/ceph.")
    parser.add_argument("majors", nargs="+", type=int, choices=sorted(RELEASES))
    for major in parser.parse_args(argv).majors:
        try:
            print(f"Ceph {major}: {RELEASES[major].prepare()}", flush=True)
        except ReleaseUnavailable as error:
            print(f"ceph releases: {error}", file=sys.stderr)
            return EXIT_UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
