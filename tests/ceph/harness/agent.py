"""Runs under a release's own Python, connected to a test cluster: commands without the CLI's start.

    python3 agent.py CEPH_CONF

One request per line on stdin, `[target, {"prefix": ...}, input]` with target "mon" or "mgr"; one
answer per line on stdout, `{"rc": errno or 0, "out": str, "err": str, "seconds": float}`.
Copied into the cluster's folder and run there, hence self-contained.
"""

from __future__ import annotations

import json
import sys
import time

import rados


def main() -> None:
    cluster = rados.Rados(conffile=sys.argv[1], name="client.admin")
    cluster.connect(timeout=30)
    for line in sys.stdin:
        target, command, data = json.loads(line)
        send = cluster.mgr_command if target == "mgr" else cluster.mon_command
        started = time.monotonic()
        try:
            rc, out, err = send(json.dumps(command), data.encode())
        except rados.Error as error:
            rc, out, err = -abs(error.errno or 5), b"", str(error)
        seconds = time.monotonic() - started
        text = out.decode("utf-8", "replace") if isinstance(out, bytes) else str(out)
        print(json.dumps({"rc": rc, "out": text, "err": err or "", "seconds": seconds}),
              flush=True)


if __name__ == "__main__":
    main()
