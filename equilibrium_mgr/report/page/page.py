"""`report`: one HTML file for those who decide about a plan: no script, nothing fetched."""
from __future__ import annotations

from typing import Any, Dict, List

from ...observation.states import OFF
from ...planner.planner import CONVERGED
from ...runtime.formatting import format_duration, format_time
from ...runtime.time_slice import give_way
from ...version import VERSION
from ..command_answer import CommandAnswer
from .last_episode import history_section
from .limits import limits_section
from .markup import Html, element, joined
from .picture import picture
from .plan_moves import moves_section
from .pools import pools_section
from .rollback import rollback_commands, rollback_section
from .facts.sources import PageFacts, PageSources, gather
from .staying import staying_section
from .styles import STYLES
from .utilization import fill_section, utilization_section
from .verdict import verdict, verdict_block, warnings


def report_page(sources: PageSources) -> CommandAnswer:
    """The page; in JSON it stands beside its verdict and all commands of the rollback."""
    facts = gather(sources)
    page = _page(facts)
    standing, identity = facts.standing, sources.identity
    data: Dict[str, Any] = {
        "plan": standing.name if standing is not None else None,
        "plan_osdmap_epoch": standing.plan.epoch if standing is not None else None,
        "outdated": standing.is_older if standing is not None else None,
        "osdmap_epoch": identity.epoch, "fsid": identity.fsid,
        "ceph_version": identity.ceph_version, "version": VERSION, "created_at": identity.now,
        "verdict": verdict(facts), "warnings": warnings(facts),
        "rollback": (rollback_commands(standing, facts.view.snapshot)
                     if standing is not None else []),
        "picture": picture(facts), "html": page}
    return CommandAnswer(data, page)


def _page(facts: PageFacts) -> str:
    title = _title(facts)
    head = element(
        "head", element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title), element("style", Html(STYLES)))
    body = element("body", element("main", *_body(facts, title)))
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en")


def _title(facts: PageFacts) -> str:
    if facts.standing is not None:
        return f"Equilibrium: plan {facts.standing.name}"
    return "Equilibrium: the cluster's state"


def _body(facts: PageFacts, title: str) -> List[Html]:
    parts = [element("h1", title), _identity(facts)]
    for part in (verdict_block, utilization_section, pools_section, fill_section, moves_section,
                 limits_section, staying_section, history_section, rollback_section):
        parts.append(part(facts))
        give_way()
    return parts


def _identity(facts: PageFacts) -> Html:
    identity, snapshot = facts.sources.identity, facts.view.snapshot
    age = max(0.0, identity.now - snapshot.taken_at)
    rows = [("fsid", identity.fsid or "unknown"),
            ("made", f"{format_time(identity.now)} UTC, osdmap epoch {identity.epoch}; the cluster"
             f" was read {format_duration(age)} before, at epoch {snapshot.epoch}")]
    if facts.standing is not None:
        plan = facts.standing.plan
        cut = "" if plan.stop_reason == CONVERGED else f", cut short: {plan.stop_reason}"
        rows.append(("plan", f"{facts.standing.name}, aim {plan.aim}, made at osdmap epoch"
                     f" {plan.epoch}{cut}"))
    status = facts.sources.status
    active = "on" if facts.sources.settings.active else "off"
    rows.append(("automatic", f"{active}; {status.state}: {status.reason}"
                 if status.state != OFF else active))
    rows.append(("versions", f"{identity.ceph_version or 'Ceph'}; equilibrium {VERSION}"))
    return element("dl", joined([part for name, value in rows for part in (
        element("dt", name), element("dd", value))]))
