"""The plan's moves: from host to host, and the largest ones."""
from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from ...plan.model import Move
from ...runtime.formatting import format_bytes, plural
from ...snapshot.model import Osd, Snapshot, pool_of
from .facts.fill import NO_HOST
from .markup import LEFT, RIGHT, Html, element, paragraph, scrolling, section, table
from .facts.sources import PageFacts

_LARGEST = 20
#: Hosts that have a row or a column of their own; the others share one.
_MOST_HOSTS = 10

#: (host that loses, host that gains) → bytes
_Flows = Mapping[Tuple[str, str], int]


def moves_section(facts: PageFacts) -> Html:
    """Empty where there is no plan, or none of it is still to be moved."""
    if facts.standing is None or not facts.standing.moves:
        return Html("")
    snapshot, moves = facts.view.snapshot, facts.standing.moves
    flows = _flows(moves, snapshot)
    return section(
        "Moves",
        paragraph(f"{plural(len(moves), 'shard')}, {format_bytes(facts.standing.bytes)}, from the"
                  " hosts of the rows to those of the columns. Darker cells are more bytes."),
        _matrix(flows), _largest(facts, moves))


def _flows(moves: Sequence[Move], snapshot: Snapshot) -> Dict[Tuple[str, str], int]:
    flows: Dict[Tuple[str, str], int] = {}
    for move in moves:
        pair = _host(snapshot.osds, move.source), _host(snapshot.osds, move.target)
        flows[pair] = flows.get(pair, 0) + move.bytes
    return flows


def _matrix(flows: _Flows) -> Html:
    rows, row_of = _largest_hosts(flows, 0)
    columns, column_of = _largest_hosts(flows, 1)
    cells: Dict[Tuple[str, str], int] = {}
    for (source, target), count in flows.items():
        pair = row_of[source], column_of[target]
        cells[pair] = cells.get(pair, 0) + count
    most = max(cells.values(), default=1) or 1
    head = element("tr", element("th", "FROM \\ TO", scope="col"),
                   *[element("th", name, scope="col", class_="n") for name in columns],
                   element("th", "SUM", scope="col", class_="n"))
    lines = [element(
        "tr", element("th", name, scope="row"),
        *[_cell(cells.get((name, column), 0), most) for column in columns],
        element("td", format_bytes(sum(cells.get((name, column), 0) for column in columns)),
                class_="total")) for name in rows]
    sums = element("tr", element("th", "SUM", scope="row"), *[
        element("td", format_bytes(sum(cells.get((name, column), 0) for name in rows)),
                class_="total") for column in columns],
        element("td", format_bytes(sum(cells.values())), class_="total"))
    return scrolling("Bytes moved from host to host", element(
        "table", element("thead", head), element("tbody", *lines, sums), class_="matrix"))


def _largest_hosts(flows: _Flows, side: int) -> Tuple[List[str], Dict[str, str]]:
    """(names of rows or columns, host → its name there): those with the most bytes, and one for
    the others."""
    sums: Dict[str, int] = {}
    for pair, count in flows.items():
        sums[pair[side]] = sums.get(pair[side], 0) + count
    hosts = sorted(sums, key=lambda host: (-sums[host], host))
    own = hosts if len(hosts) <= _MOST_HOSTS + 1 else hosts[:_MOST_HOSTS]
    names = {host: host for host in own}
    if len(own) == len(hosts):
        return own, names
    others = f"{len(hosts) - len(own)} others"
    names.update((host, others) for host in hosts[len(own):])
    return own + [others], names


def _cell(count: int, most: int) -> Html:
    """A cell whose ground tells how much it is; the text stays dark on it."""
    if not count:
        return element("td")
    return element("td", format_bytes(count),
                   style=f"background:rgba(8,81,156,{0.05 + 0.4 * count / most:.2f})")


def _largest(facts: PageFacts, moves: Sequence[Move]) -> Html:
    largest = sorted(moves, key=lambda move: -move.bytes)[:_LARGEST]
    rows = ([move.pgid, _pool(facts.view.snapshot, move), f"osd.{move.source}",
             _host(facts.view.snapshot.osds, move.source), f"osd.{move.target}",
             _host(facts.view.snapshot.osds, move.target), format_bytes(move.bytes)]
            for move in largest)
    title = ("All moves" if len(largest) == len(moves)
             else f"The {len(largest)} largest of {len(moves)} moves")
    return Html(element("h3", title) + table(
        title, ["PG", "POOL", "FROM", "HOST", "TO", "HOST", "SIZE"],
        [LEFT, LEFT, LEFT, LEFT, LEFT, LEFT, RIGHT], rows))


def _host(osds: Mapping[int, Osd], osd: int) -> str:
    found = osds.get(osd)
    return (found.host or NO_HOST) if found is not None else NO_HOST


def _pool(snapshot: Snapshot, move: Move) -> str:
    pool = snapshot.pools.get(pool_of(move.pgid))
    return pool.name if pool is not None else ""
