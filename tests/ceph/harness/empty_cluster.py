"""A small empty cluster for tests that fill pools of their own.

RocksDB's log, 282 MiB on Ceph 16, and the files that it writes as it compacts, 70 MiB each in
BlueFS however little is in them, are a ten-thousandth of an OSD in service and a quarter of one of
2 GiB. So they are made smaller here in the same proportion; nothing else of RocksDB is changed.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Tuple

import pytest

from ..cluster import DaemonCluster
from ..conftest import PACKAGE, SLEEP_INTERVAL
from ..release import RELEASES

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


def _rocksdb(major: int) -> Dict[str, str]:
    """The release's own options of RocksDB, but for sizes of files and buffers."""
    return {"bluestore rocksdb options": _ROCKSDB_16 if major < 18 else _ROCKSDB_18}


def empty_cluster(request: pytest.FixtureRequest, hosts: Mapping[str, Tuple[float, ...]],
                  osd_options: Mapping[str, str], options: Mapping[str, Any],
                  ) -> Iterator[DaemonCluster]:
    """The module enabled and off, with these `options`, without scrubs; `hosts` and `osd_options`
    as DaemonCluster has them."""
    release = RELEASES[request.param]
    with DaemonCluster(release, PACKAGE, request.config.getoption("--ceph-keep"), hosts,
                       {**_rocksdb(release.major), **osd_options}) as made:
        made.mgr("balancer off")
        for flag in ("noscrub", "nodeep-scrub"):
            made.mon("osd set", key=flag)
        made.mon("config set", who="mon", name="mon_allow_pool_delete", value="true")
        made.enable("equilibrium")
        made.set_option("sleep_interval", SLEEP_INTERVAL)
        made.set_option("max_misplaced_ratio", 1.0)
        for name, value in options.items():
            made.set_option(name, value)
        made.hurry()
        yield made
        failures = made.module_failures()
    assert not failures, f"the module raised exceptions on Ceph {release.version}:\n{failures}"
