"""`explain`: why the cluster is not better balanced, in sentences and as JSON."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ...control.status import BalancerStatus
from ...execution.guards import blocked_pool_reasons
from ...execution.size_check.size_corrections import sentence
from ...observation.cluster_view import ClusterView
from ...observation.states import STUCK
from ...observation.too_full import sentences as too_full_sentences
from ...runtime.formatting import format_ratio
from ...settings import Settings
from .bound_text import describe_bound
from ..command_answer import CommandAnswer
from .explain_osd import SAME, Facts, explain_osd, set_json
from .explain_pool import explain_pg, explain_pool
from ..cluster.held_osds import held_json, held_sentences
from .target_refusals import refusal_sentences, refusals

#: Device classes and pools that a sentence names; it counts the rest.
_NAMES_SHOWN = 10


class ExplainContext(NamedTuple):
    """The sources of an explanation; nothing is read from the cluster for it."""

    view: ClusterView
    status: BalancerStatus
    settings: Settings


def explain(what: Optional[str], view: ClusterView, status: BalancerStatus, settings: Settings,
            age_seconds: float) -> Optional[CommandAnswer]:
    """Explains the cluster, or the OSD, pool or PG named `what`; None where there is none."""
    facts = _explain(what, ExplainContext(view, status, settings))
    if facts is None:
        return None
    data, sentences = facts
    data.update({"osdmap_epoch": view.snapshot.epoch, "snapshot_age_seconds": age_seconds,
                 "sentences": sentences})
    return CommandAnswer(data, "\n".join(sentences))


def _explain(what: Optional[str], context: ExplainContext) -> Optional[Facts]:
    """A pool may have a number as its name; `osd.` in front names the OSD."""
    view, snapshot = context.view, context.view.snapshot
    if not what:
        return _explain_cluster(context)
    if what.startswith("osd."):
        osd = _osd_number(what[len("osd."):], view)
        if osd is not None:
            return explain_osd(osd, view)
    for pool in snapshot.pools.values():
        if pool.name == what:
            return explain_pool(pool, view, context.settings.pool_ids,
                                _stopped(context).get(pool.id))
    osd = _osd_number(what, view)
    if osd is not None:
        return explain_osd(osd, view)
    pg = snapshot.pgs.get(what.lower())
    return explain_pg(pg, view, context.status.rejected) if pg is not None else None


def _osd_number(text: str, view: ClusterView) -> Optional[int]:
    # Python refuses to read thousands of digits
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return number if number in view.snapshot.osds else None


def _explain_cluster(context: ExplainContext) -> Facts:
    view, snapshot = context.view, context.view.snapshot
    sets, sentences = _sets(view)
    unusable = Counter(reason for reason in (
        osd.unusable_reason() for osd in snapshot.osds.values()) if reason)
    troubled = sorted(set(blocked_pool_reasons(snapshot).values()))
    sentences.append(f"equilibrium is {context.status.state}: {context.status.reason}")
    sentences += too_full_sentences(snapshot, view.too_full)
    refused = None
    if context.status.state == STUCK and sets:
        worst = max(sets, key=lambda found: float(found["above_bound"]))
        refused = refusals(worst["fullest_osd"], snapshot, context.settings,
                           context.status.rejected)
        sentences += refusal_sentences(refused)
    sentences += _limited(context)
    stopped = _stopped(context)
    sentences += [reason for _, reason in sorted(stopped.items())]
    sentences += [f"pools wait: {reason}" for reason in troubled]
    sentences += [f"{count} PGs cannot be moved: {reason}"
                  for reason, count in sorted(snapshot.skipped.items())]
    sentences += held_sentences(snapshot)
    sentences += [f"{count} OSDs can take no shards: {reason}"
                  for reason, count in sorted(unusable.items())]
    if context.status.rejected:
        sentences.append(f"{len(context.status.rejected)} PGs stay where they are because the"
                         " monitor did not keep their upmaps")
    if view.in_flight_moves:
        sentences.append(f"{view.in_flight_moves} moves are under way; all figures take them as"
                         " arrived")
    return {"state": context.status.state, "reason": context.status.reason, "sets": sets,
            "skipped_pgs": dict(snapshot.skipped), "unusable_osds": dict(unusable),
            "held_osds": held_json(snapshot), "refusals": refused,
            "mispredicted": [stopped[pool] for pool in sorted(stopped)],
            "troubled": troubled, "rejected_upmaps": len(context.status.rejected),
            "in_flight_moves": view.in_flight_moves,
            "too_full": [entry.to_json(snapshot.full_ratio) for entry in view.too_full]}, sentences


def _stopped(context: ExplainContext) -> Dict[int, str]:
    """Pool id → why its moves were stopped, with the command that allows them again."""
    pools = context.view.snapshot.pools
    return {pool: sentence(found, pools[pool].name)
            for pool, found in context.status.mispredicted.items() if pool in pools}


def _sets(view: ClusterView) -> Tuple[List[Dict[str, Any]], List[str]]:
    """Facts and sentences about each set of OSDs between which data can move."""
    snapshot = view.snapshot
    if view.utilization_bounds is None:
        return [], ["how even the cluster could be is not known; the mgr log tells why"]
    if not view.utilization_bounds.sets:
        return [], ["no pool has data that could be placed otherwise"]
    found: List[Dict[str, Any]] = []
    sentences: List[str] = []
    for osd_set in view.utilization_bounds.sets:
        utilizations = {osd: snapshot.osds[osd].target_utilization or 0.0 for osd in osd_set.osds}
        fullest = max(utilizations, key=lambda osd: (utilizations[osd], -osd))
        above = utilizations[fullest] - osd_set.bound
        found.append(dict(set_json(osd_set, snapshot), fullest_osd=fullest,
                          max=utilizations[fullest], above_bound=above))
        distance = (f"{100.0 * above:.1f} points above that" if above >= SAME
                    else "as low as can be")
        sentences += [describe_bound(osd_set, snapshot),
                      f"osd.{fullest}, the fullest there, is at"
                      f" {format_ratio(utilizations[fullest])}, {distance}"]
    return found, sentences


def _limited(context: ExplainContext) -> List[str]:
    """The options that limit balancing."""
    sentences: List[str] = []
    if context.settings.pool_ids is not None:
        pools = context.view.snapshot.pools
        names = _named(
            pools[pool].name for pool in sorted(context.settings.pool_ids) if pool in pools)
        sentences.append(f"balancing is limited to pools: {names}")
    if context.settings.device_classes is not None:
        sentences.append("balancing is limited to device classes:"
                         f" {_named(sorted(context.settings.device_classes))}")
    return sentences


def _named(names: Iterable[str]) -> str:
    known = list(names)
    more = len(known) - _NAMES_SHOWN
    shown = ", ".join(known[:_NAMES_SHOWN]) or "none that is there"
    return f"{shown} and {more} more" if more > 0 else shown
