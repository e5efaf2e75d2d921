"""Records tests/support/clusters/msr_golden.json with the crushtool on the PATH, of Ceph 19 on.

python3 -m tests.ceph.operations.record_msr_golden
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import List

from tests.oracle.ceph_tools import compile_crush, crush_mappings
from tests.support.clusters import msr_maps


def main() -> None:
    """Writes the file."""
    recorded: List[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in msr_maps.GOLDEN_SEEDS:
            made = msr_maps.make(seed)
            found = crush_mappings(compile_crush(made.text(), Path(folder)), 0, made.size,
                                   msr_maps.GOLDEN_INPUTS, made.reweights)
            recorded.append(json.dumps([list(found[x]) for x in sorted(found)]))
    msr_maps.GOLDEN.write_text("[" + ",\n ".join(recorded) + "]\n")


if __name__ == "__main__":
    main()
