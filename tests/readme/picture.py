"""The README's picture of the demo cluster before and after: `python3 -m tests.readme.picture`."""

from __future__ import annotations

import json

from mgr_stub.console.session import Session

from .blocks import README, RELEASE

PICTURE = README.parent / "mgr_stub" / "demo" / "before_after.svg"
#: Name of the plan: it stands in the picture.
_PLAN = "equilibrium"


def drawn() -> str:
    """The picture as the program draws it now."""
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


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
