"""How high basins stand that are filled through a network of limited pipes, as equal as possible.

The fairest (lexicographically optimal) filling makes the highest basins as low as they can be,
then the next highest, and so on. It is found by dividing (S. Fujishige, "Lexicographically optimal
base of a polymatroid with respect to a weight vector", Math. of OR 5, 1980; H. Groenevelt, "Two
algorithms for maximizing a separable concave function over a polymatroid feasible region", EJOR 54,
1991): give all basins of a part the one level at which they hold exactly what flows in. If the
pipes can fill them like that, this is their level. If not, a minimum cut parts the sources that
cannot get rid of all, with the basins they fill, from the rest: the former end above that level,
the latter at or below it. In between, every pipe from the upper part to the lower runs full and
none runs the other way, so that each part can be solved by itself.

The highest level follows from one explicit cut, hence is a lower bound whatever a flow's rounding.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

from ...runtime.checkpoints import Checkpoint, with_checkpoints
from .max_flow import FlowNetwork

#: Part of the demand (2^-40) that may go unserved, as levels are floats.
_TOLERANCE_SHIFT = 40
_NODES_AT_ONCE = 200   # between two checkpoints


class SinkPart(NamedTuple):
    """A piece of a basin: at level t it holds t · size, of which `floor` is there already."""

    fixed_bytes: int
    size_bytes: int

    @property
    def fixed_utilization(self) -> float:
        """The level from which on it takes anything."""
        return self.fixed_bytes / self.size_bytes


class Sink:
    """Pieces that are filled through the same pipe and so rise together."""

    def __init__(self, parts: Iterable[SinkPart]) -> None:
        self.parts = sorted(parts, key=lambda part: part.fixed_utilization)
        self._ratios = [part.fixed_utilization for part in self.parts]
        self._sums = [(0, 0)]   # (floors, sizes) of the first n parts
        for part in self.parts:
            floors, sizes = self._sums[-1]
            self._sums.append((floors + part.fixed_bytes, sizes + part.size_bytes))

    @property
    def max_fixed_utilization(self) -> float:
        return self._ratios[-1]

    @property
    def sums(self) -> Tuple[int, int]:
        return self._sums[-1]

    def capacity_at(self, level: float) -> int:
        """What it takes in until it stands at the level."""
        floors, sizes = self._sums[bisect_left(self._ratios, level)]
        return max(0, int(level * sizes) - floors)


class CapacityNetwork:
    """Nodes with a demand that flows in there, pipes between them, and basins at the ends."""

    def __init__(self) -> None:
        self.demands: List[int] = []
        self.edges: List[List[Tuple[int, int]]] = []   # per node: (head, capacity)
        self.sinks: Dict[int, Sink] = {}             # node → basin

    def add_node(self, demand: int = 0) -> int:
        self.demands.append(demand)
        self.edges.append([])
        return len(self.demands) - 1

    def add_edge(self, tail: int, head: int, capacity: int) -> None:
        self.edges[tail].append((head, capacity))


class UtilizationTier(NamedTuple):
    """Nodes whose basins all stand at one level, or at their floor where that is higher."""

    utilization: float
    nodes: Sequence[int]


class _Piece(NamedTuple):
    """A part of the network that is still to be solved."""

    nodes: List[int]
    inflow: Dict[int, int]    # node → demand there, and what full pipes bring from higher parts
    outflow: Dict[int, int]   # node → what full pipes take to lower parts

    def need(self) -> int:
        """What the basins have to take."""
        return sum(self.inflow.values()) - sum(self.outflow.values())


def max_min_levels(network: CapacityNetwork, checkpoint: Checkpoint) -> List[UtilizationTier]:
    """Tiers from the highest to the lowest; they share no node and hold every basin."""
    nodes = list(range(len(network.demands)))
    waiting = [_Piece(nodes, {n: network.demands[n] for n in nodes if network.demands[n]}, {})]
    tiers: List[UtilizationTier] = []
    while waiting:
        piece = waiting.pop()
        basins = [network.sinks[node] for node in piece.nodes if node in network.sinks]
        if not basins:
            continue  # what flows in there has nowhere to go at any level
        level = equal_utilization(basins, piece.need())
        upper = _upper_nodes(network, piece, level, checkpoint)
        if not upper or len(upper) == len(piece.nodes):
            tiers.append(UtilizationTier(level, piece.nodes))
        else:
            waiting += reversed(_divide(network, piece, upper))
    return tiers


def equal_utilization(basins: Sequence[Sink], need: int) -> float:
    """The level at which the basins have taken in `need` altogether."""
    floors = sum(basin.sums[0] for basin in basins)
    sizes = sum(basin.sums[1] for basin in basins)
    level = (need + floors) / sizes
    if level >= max(basin.max_fixed_utilization for basin in basins):
        return level
    parts = sorted((part for basin in basins for part in basin.parts), key=lambda p: p.fixed_utilization)
    floors = sizes = 0
    level = parts[0].fixed_utilization
    for part in parts:
        if sizes and part.fixed_utilization >= level:
            break
        floors += part.fixed_bytes
        sizes += part.size_bytes
        level = (need + floors) / sizes
    return level


def _upper_nodes(network: CapacityNetwork, piece: _Piece, level: float,
                 checkpoint: Checkpoint) -> Set[int]:
    """Nodes that cannot pass on what flows in, if no basin stands higher; empty if all can."""
    place = {node: index for index, node in enumerate(piece.nodes)}
    source, sink = len(place), len(place) + 1
    flows = FlowNetwork(len(place) + 2)
    basins = 0
    for node in with_checkpoints(piece.nodes, _NODES_AT_ONCE, checkpoint):
        index = place[node]
        if node in piece.inflow:
            flows.add_edge(source, index, piece.inflow[node])
        for head, capacity in network.edges[node]:
            if head in place:
                flows.add_edge(index, place[head], capacity)
        if node in piece.outflow:
            flows.add_edge(index, sink, piece.outflow[node])
        if node in network.sinks:
            basins += 1
            flows.add_edge(index, sink, network.sinks[node].capacity_at(level))
    inflow = sum(piece.inflow.values())
    unserved = inflow - flows.max_flow(source, sink, checkpoint)
    if unserved <= basins + (inflow >> _TOLERANCE_SHIFT):  # a room is rounded by a byte
        return set()
    return {node for node in piece.nodes if flows.on_source_side(place[node])}


def _divide(network: CapacityNetwork, piece: _Piece, upper: Set[int]) -> List[_Piece]:
    """The upper part, then the lower; the pipes between them run full, downwards only."""
    halves = [_Piece([n for n in piece.nodes if (n in upper) == above],
                     {n: flow for n, flow in piece.inflow.items() if (n in upper) == above},
                     {n: flow for n, flow in piece.outflow.items() if (n in upper) == above})
              for above in (True, False)]
    outflow, inflow = halves[0].outflow, halves[1].inflow
    lower = set(halves[1].nodes)
    for node in halves[0].nodes:
        for head, capacity in network.edges[node]:
            if head in lower:
                outflow[node] = outflow.get(node, 0) + capacity
                inflow[head] = inflow.get(head, 0) + capacity
    return halves
