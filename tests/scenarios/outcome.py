"""A run's outcome as lines of text, coarse enough to stay the same unless something changed."""
from __future__ import annotations

from typing import List

from tests.support.units import TIB

from mgr_stub.console.session import Session

from .watch import cluster_view
from .watch.watch import Watch


def lines(session: Session, watch: Watch, limit: float) -> List[str]:
    """`limit` is the misplaced ratio that was allowed."""
    balancer, figures = session.module.balancer, watch.figures
    found: List[str] = []
    view = balancer.status.view
    for name, by_osd in session.cluster.utilizations().items():
        bound = None if view is None else view.bounds.get(name or "none")
        was = figures.first.get(name, (0.0, 0.0))
        found.append(f"{name or 'none'}: highest {was[0]:.3f} -> {max(by_osd.values()):.3f}, "
                     f"lowest {was[1]:.3f} -> {min(by_osd.values()):.3f}"
                     + ("" if bound is None else f", bound {bound:.3f}"))
    found.append(f"moved: {figures.moved_bytes / TIB:.2f} TiB in {figures.moved_shards} shards by "
                 f"{figures.commands} commands, the last after "
                 f"{figures.last_command_at / 3600.0:.1f} h")
    found.append(f"misplaced by us: at most {figures.highest_misplaced:.4f} of {limit:.4f}")
    found.append(f"fill: at most {figures.highest_fill:.3f} of "
                 f"{cluster_view.fill_limit(session.cluster):.3f}")
    found.append(f"thrashing: at most {100.0 * figures.thrashing():.1f} %")
    found.append(f"upmap items: {sum(len(i) for i in session.cluster.map.upmap_items.values())}")
    if session.cluster.map.chosen_primaries:
        found.append(f"primaries set: {len(session.cluster.map.chosen_primaries)}")
    found.append(f"ends {balancer.state}: {balancer.reason}")
    return found + [f"BROKEN {text}" for text in watch.broken]
