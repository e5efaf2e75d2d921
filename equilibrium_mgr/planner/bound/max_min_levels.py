"""The most equal filling of sinks through a network of limited edges (max-min fairness).

The fairest (lexicographically optimal) filling makes the fullest sinks as empty as they can be,
then the next fullest, and so on. It is found by division (S. Fujishige, "Lexicographically optimal
base of a polymatroid with respect to a weight vector", Math. of OR 5, 1980; H. Groenevelt, "Two
algorithms for maximizing a separable concave function over a polymatroid feasible region", EJOR 54,
1991): give all sinks of a piece the one utilization at which they hold exactly what flows in. If
the edges can carry that, this is their utilization. If not, a minimum cut separates the nodes that
cannot pass on all their inflow, with the sinks that they fill, from the rest: the former end above
that utilization, the latter at or below it. All edges from the upper part to the lower are
saturated and none leads back, so that each part can be solved by itself.

The highest utilization follows from one explicit cut, hence is a lower bound whatever a flow's
rounding.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

from ...runtime.time_slice import piecewise
from .max_flow import FlowNetwork

#: Part of the demand (2^-40) that may go unserved, as utilizations are floats.
_TOLERANCE_SHIFT = 40
_NODES_AT_ONCE = 200   # before it gives way again


class SinkPart(NamedTuple):
    """An OSD in a sink: at utilization t it holds t · size_bytes, fixed_bytes of them already."""

    fixed_bytes: int
    size_bytes: int

    @property
    def fixed_utilization(self) -> float:
        """The utilization from which on it takes anything."""
        return self.fixed_bytes / self.size_bytes


class Sink:
    """Parts that are filled through the same edges and so have the same utilization."""

    def __init__(self, parts: Iterable[SinkPart]) -> None:
        self.parts = sorted(parts, key=lambda part: part.fixed_utilization)
        self._utilizations = [part.fixed_utilization for part in self.parts]
        self._sums = [(0, 0)]   # (fixed bytes, sizes) of the first n parts
        for part in self.parts:
            fixed, sizes = self._sums[-1]
            self._sums.append((fixed + part.fixed_bytes, sizes + part.size_bytes))

    def capacity_at(self, utilization: float) -> int:
        """Bytes that it takes until all parts are at the utilization or above."""
        fixed, sizes = self._sums[bisect_left(self._utilizations, utilization)]
        return max(0, int(utilization * sizes) - fixed)


class CapacityNetwork:
    """Nodes with a demand that flows in there, directed edges, and sinks at the ends."""

    def __init__(self) -> None:
        self.demands: List[int] = []                   # bytes, per node
        self.edges: List[List[Tuple[int, int]]] = []   # per node: (head, capacity in bytes)
        self.sinks: Dict[int, Sink] = {}               # node → sink

    def add_node(self, demand: int = 0) -> int:
        """Adds a node; returns its number."""
        self.demands.append(demand)
        self.edges.append([])
        return len(self.demands) - 1

    def add_edge(self, tail: int, head: int, capacity: int) -> None:
        """Adds an edge that carries at most `capacity` bytes."""
        self.edges[tail].append((head, capacity))


class UtilizationTier(NamedTuple):
    """Nodes whose sinks all have one utilization, or what is fixed there if that is higher."""

    utilization: float
    nodes: Sequence[int]


class Piece(NamedTuple):
    """A part of the network that is still to be solved."""

    nodes: List[int]
    inflow: Dict[int, int]    # node → demand there, and what edges bring from higher parts
    outflow: Dict[int, int]   # node → what saturated edges take to lower parts

    def need(self) -> int:
        """Bytes that the sinks have to take."""
        return sum(self.inflow.values()) - sum(self.outflow.values())


def whole(network: CapacityNetwork) -> Piece:
    """All of a network as one piece."""
    nodes = list(range(len(network.demands)))
    return Piece(nodes, {n: network.demands[n] for n in nodes if network.demands[n]}, {})


def max_min_levels(network: CapacityNetwork) -> List[UtilizationTier]:
    """Returns tiers from the highest to the lowest; they share no node and hold every sink."""
    unsolved = [whole(network)]
    tiers: List[UtilizationTier] = []
    while unsolved:
        piece = unsolved.pop()
        sinks = [network.sinks[node] for node in piece.nodes if node in network.sinks]
        if not sinks:
            continue  # what flows in there has nowhere to go at any utilization
        utilization = equal_utilization(sinks, piece.need())
        upper = upper_nodes(network, piece, utilization)
        if not upper or len(upper) == len(piece.nodes):
            tiers.append(UtilizationTier(utilization, piece.nodes))
        else:
            unsolved += reversed(_divide(network, piece, upper))
    return tiers


def equal_utilization(sinks: Sequence[Sink], need: int) -> float:
    """The utilization at which the sinks have taken `need` bytes altogether."""
    parts = sorted((part for sink in sinks for part in sink.parts),
                   key=lambda part: part.fixed_utilization)
    fixed = sizes = 0
    utilization = parts[0].fixed_utilization
    for part in parts:
        if sizes and part.fixed_utilization >= utilization:
            break
        fixed += part.fixed_bytes
        sizes += part.size_bytes
        utilization = (need + fixed) / sizes
    return utilization


def upper_nodes(network: CapacityNetwork, piece: Piece, utilization: float) -> Set[int]:
    """Nodes that cannot pass on their inflow if no sink is fuller; empty if all can."""
    place = {node: index for index, node in enumerate(piece.nodes)}
    source, target = len(place), len(place) + 1
    flows = FlowNetwork(len(place) + 2)
    sinks = 0
    for node in piecewise(piece.nodes, _NODES_AT_ONCE):
        index = place[node]
        if node in piece.inflow:
            flows.add_edge(source, index, piece.inflow[node])
        for head, capacity in network.edges[node]:
            if head in place:
                flows.add_edge(index, place[head], capacity)
        if node in piece.outflow:
            flows.add_edge(index, target, piece.outflow[node])
        if node in network.sinks:
            sinks += 1
            flows.add_edge(index, target, network.sinks[node].capacity_at(utilization))
    inflow = sum(piece.inflow.values())
    unserved = inflow - flows.max_flow(source, target)
    if unserved <= sinks + (inflow >> _TOLERANCE_SHIFT):  # capacities are rounded by a byte each
        return set()
    return {node for node in piece.nodes if flows.on_source_side(place[node])}


def _divide(network: CapacityNetwork, piece: Piece, upper: Set[int]) -> List[Piece]:
    """The upper part, then the lower; the edges between them are saturated, downwards only."""
    halves = [Piece([n for n in piece.nodes if (n in upper) == above],
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
