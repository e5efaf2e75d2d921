"""`history --limit`; what episodes tell is in the stories of the golden screens."""
from __future__ import annotations

from equilibrium_mgr.report.history import report_history


def test_limit_shows_the_newest() -> None:
    entries = [{"plan": f"p{i}", "started_at": 1e9 + i, "ended_at": 1e9 + i + 1,
                "outcome": "completed"} for i in range(30)]
    for limit, earlier in ((None, "... 10 earlier episodes;"), (2, "... 28 earlier episodes;"),
                           (29, "... 1 earlier episode;")):
        answer = report_history(entries, None, 2e9, limit)
        assert answer.data["total"] == 30
        assert [e["plan"] for e in answer.data["episodes"]] == [
            f"p{i}" for i in range(int(earlier.split()[1]), 30)]
        assert earlier in answer.plain
