"""Pictures of the demo cluster, before and after, and over time.

`python3 -m tests.readme.picture` draws them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Dict

from mgr_stub.console.session import Session

from .blocks import README, RELEASE

PICTURE = README.parent / "mgr_stub" / "demo" / "before_after.svg"
#: Name of the plan: it stands in the picture.
_PLAN = "equilibrium"


#: From `equilibrium on` until it is balanced, and a little longer.
_SPAN = "2h"


def drawn() -> str:
    """The picture before and after, as the program draws it now."""
    session = Session.from_state(None, release=RELEASE, frozen=False)
    try:
        session.command("equilibrium status")  # an inactive module looks for a command only
        session.command(f"equilibrium optimize {_PLAN}")
        rc, out, err = session.command(f"equilibrium report {_PLAN} --format json")
        if rc:
            raise RuntimeError(err)
        return str(json.loads(out)["picture"]) + "\n"
    finally:
        session.close()


def drawn_over_time() -> str:
    """The picture over time, the same."""
    session = Session.from_state(None, release=RELEASE, frozen=False)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "over_time.svg"
        try:
            for line in ("equilibrium status", "equilibrium on", f"sim run {_SPAN}",
                         f"sim picture {path}"):
                rc, _, err = session.command(line)
                if rc:
                    raise RuntimeError(err)
        finally:
            session.close()
        return path.read_text(encoding="utf-8")


PICTURES: Dict[Path, Callable[[], str]] = {
    PICTURE: drawn, PICTURE.with_name("over_time.svg"): drawn_over_time}

if __name__ == "__main__":
    for place, draw in PICTURES.items():
        place.write_text(draw(), encoding="utf-8")
