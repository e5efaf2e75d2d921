"""An operator switches the built-in balancer off by hand, then equilibrium on a few seconds later:
the last batch of the one may still come. Nobody asks meanwhile: answers look at the balancer, too.
"""
from __future__ import annotations

from pathlib import Path

from . import clusters
from .drive import command
from .rules.judge import Judge

_LINES = ("config set mgr mgr/equilibrium/start_delay 0", "sim backfill rate 20M",
          "sim balancer on", "sim run 10m", "sim balancer off", "sim run 5s", "equilibrium on",
          "sim run 1h")


def test_nothing_is_sent_before_its_last_batch_must_have_come(tmp_path: Path) -> None:
    session = clusters.session_of("random", 20, tmp_path)
    judge = Judge(session, lambda move: None)
    for line in _LINES:
        judge.answers.before(line)
        command(session, line)
    session.close()
    assert judge.sent and not judge.broken
