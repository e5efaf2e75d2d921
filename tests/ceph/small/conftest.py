"""A small cluster for pools whose sizes Ceph tells late or not at all: one OSD a host.

RocksDB's log, 282 MiB on Ceph 16, and the files that it writes as it compacts, 70 MiB each in
BlueFS however little is in them, are a ten-thousandth of an OSD in service and a quarter of one of
2 GiB. So they are made smaller here in the same proportion; nothing else of RocksDB is changed.
"""

from __future__ import annotations

from typing import Dict, Iterator

import pytest

from ..cluster import DaemonCluster
from ..conftest import PACKAGE, SLEEP_INTERVAL
from ..release import RELEASES

HOSTS = {"h0": (2.0,), "h1": (2.0,), "h2": (2.0,), "h3": (3.0,), "h4": (2.0,)}

_ROCKSDB_16 = (
    "compression=kNoCompression,max_write_buffer_number=4,min_write_buffer_number_to_merge=1,"
    "recycle_log_file_num=4,write_buffer_size=1048576,writable_file_max_buffer_size=0,"
    "compaction_readahead_size=2097152,max_background_compactions=2,max_total_wal_size=4194304,"
    "target_file_size_base=524288,max_bytes_for_level_base=4194304")
_ROCKSDB_18 = (
    "compression=kLZ4Compression,max_write_buffer_number=64,min_write_buffer_number_to_merge=6,"
    "compaction_style=kCompactionStyleLevel,write_buffer_size=131072,max_background_jobs=4,"
    "level0_file_num_compaction_trigger=8,max_bytes_for_level_base=8388608,"
    "max_bytes_for_level_multiplier=8,compaction_readahead_size=2MB,max_total_wal_size=8388608,"
    "writable_file_max_buffer_size=0,target_file_size_base=524288")


def rocksdb(major: int) -> Dict[str, str]:
    """The release's own options of RocksDB, but for sizes of files and buffers."""
    return {"bluestore rocksdb options": _ROCKSDB_16 if major < 18 else _ROCKSDB_18}


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """Empty, the module enabled and off, without scrubs."""
    release = RELEASES[request.param]
    with DaemonCluster(release, PACKAGE, request.config.getoption("--ceph-keep"), HOSTS,
                 rocksdb(release.major)) as made:
        made.mgr("balancer off")
        for flag in ("noscrub", "nodeep-scrub"):
            made.mon("osd set", key=flag)
        made.mon("config set", who="mon", name="mon_allow_pool_delete", value="true")
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.set_option("max_misplaced_ratio", 1.0)
        made.set_option("min_omap_osd_size", 0)
        made.hurry()
        yield made
        failures = made.module_failures()
    assert not failures, f"the module raised exceptions on Ceph {release.version}:\n{failures}"
