"""Published figures are those that `python3 -m tests.benchmark --publish` has made."""
from __future__ import annotations

from tests.benchmark.__main__ import measure_cluster
from tests.benchmark.published import PAGES, cell, recorded, rendered

_HOW = "'python3 -m tests.benchmark --publish --clusters DIR... --only demo given' makes them anew"


def test_pages_have_what_is_recorded() -> None:
    record = recorded()
    told = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert rendered(text, record) == text, _HOW
    for name, entry in record.items():
        assert name == "demo" or f"| {name}: {entry['title']} |" in told and entry["cell"] in told


def test_another_figure_is_noticed() -> None:
    """Of each row that stands in a page."""
    for name, entry in recorded().items():
        other = {name: {**entry, "cell": "1.0 % (1.0), +1 TiB for 1"}}
        changed = [rendered(page.read_text(encoding="utf-8"), other) != page.read_text(
            encoding="utf-8") for page in PAGES]
        assert any(changed) == (name != "demo"), name


def test_the_recorded_figures_are_those_of_this_planner() -> None:
    """Of the demo; where its plan is another one, those of the large clusters may be, too."""
    assert cell(measure_cluster("demo", "", "space", 0.0)) == recorded()["demo"]["cell"], _HOW
