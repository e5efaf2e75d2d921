"""The most equal filling of sinks through a network of limited edges (max-min fairness).

The fairest (lexicographically optimal) filling makes the fullest sinks as empty as they can be,
then the next fullest, and so on. It is found by division (S. Fujishige, "Lexicographically optimal
base of a polymatroid with respect to a weight vector", Math. of OR 5, 1980; H. Groenevelt, "Two
algorithms for maximizing a separable concave function over a polymatroid feasible region", EJOR 54,
1991). All sinks of a piece get the one utilization at which they hold exactly the inflow of the
piece. If the edges can carry that, this is their utilization. If not, a minimum cut separates the
nodes that cannot pass on all their inflow, with the sinks that they fill, from the rest. The former
end above that utilization, the latter at or below it. All edges from the upper part to the lower
are saturated and none goes back, so each part can be solved separately.

The highest utilization follows from one explicit cut, so it is a lower bound even if a flow is
rounded.

Dinic's algorithm finds the maximum flow and minimum cut, on integers so that nothing is rounded
(E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
estimation", Soviet Math. Doklady 11, 1970). It is iterative: paths may be longer than Python's
stack.

The network goes from each demand through the buckets that its rule keeps apart, each with its
limit, to the OSDs. OSDs that no demand can tell apart share a sink, and pools of the same rule and
size share a demand. So the network has a node per bucket instead of one per OSD or PG.
"""
from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...runtime.time_slice import give_way, piecewise
from .demand import OSDS_AT_ONCE, Demand


#: Before it gives way again: a few milliseconds.
_NODES_AT_ONCE = 1000
_STEPS_AT_ONCE = 2000


class FlowNetwork:
    """Directed edges with capacities; `max_flow` may be called once."""

    def __init__(self, nodes: int) -> None:
        self._edges_of: List[List[int]] = [[] for _ in range(nodes)]
        self._head: List[int] = []
        self._residual: List[int] = []   # free capacity of an edge; edge e is e ^ 1 reversed
        #: per node: edges from the source, or -1 if out of its reach. After `max_flow` -1 means the
        #: far side of the minimum cut; of several cuts, the one with the smallest source side
        self.depth: List[int] = []

    def add_edge(self, tail: int, head: int, capacity: int) -> None:
        """Adds an edge and its reverse, which carries nothing at first."""
        for node, other, residual in ((tail, head, capacity), (head, tail, 0)):
            self._edges_of[node].append(len(self._head))
            self._head.append(other)
            self._residual.append(residual)

    def max_flow(self, source: int, sink: int) -> int:
        """Computes a maximum flow from `source` to `sink`; returns its value."""
        flow = 0
        while self._measure_depths(source, sink):
            flow += self._saturate_shortest_paths(source, sink)
        return flow

    def _measure_depths(self, source: int, sink: int) -> bool:
        """Measures the nodes' distances from the source until it finds the sink.

        Returns False if the sink is out of reach; then every node within reach has its depth.
        """
        edges_of = self._edges_of
        head = self._head
        residual = self._residual
        depth = self.depth = [-1] * len(edges_of)
        depth[source] = 0
        queue = deque([source])
        seen = 0
        while queue:
            if seen % _NODES_AT_ONCE == 0:
                give_way()
            seen += 1
            node = queue.popleft()
            if node == sink:
                return True
            below = depth[node] + 1
            for edge in edges_of[node]:
                if residual[edge] and depth[head[edge]] < 0:
                    depth[head[edge]] = below
                    queue.append(head[edge])
        return False

    def _saturate_shortest_paths(self, source: int, sink: int) -> int:
        """Sends a blocking flow over the edges that go one step farther from the source."""
        edges_of = self._edges_of
        head = self._head
        residual = self._residual
        depth = self.depth
        current = [0] * len(edges_of)   # per node the index of its first edge that is not exhausted
        path: List[int] = []   # edges from the source to `node`
        node = source
        flow = 0
        steps = 0
        while True:
            steps += 1
            if steps % _STEPS_AT_ONCE == 0:
                give_way()
            if node == sink:
                amount = min([residual[edge] for edge in path])
                for edge in path:
                    residual[edge] -= amount
                    residual[edge ^ 1] += amount
                flow += amount
                # go on from the tail of the first edge that is saturated now
                first = next(index for index, edge in enumerate(path) if not residual[edge])
                node = head[path[first] ^ 1]
                del path[first:]
            edges = edges_of[node]
            index = current[node]
            below = depth[node] + 1
            while index < len(edges):
                edge = edges[index]
                if residual[edge] and depth[head[edge]] == below:
                    break
                index += 1
            current[node] = index
            if index < len(edges):
                path.append(edges[index])
                node = head[edges[index]]
            elif path:
                node = head[path.pop() ^ 1]
                current[node] += 1
            else:
                return flow


#: A part of the demand (2^-40) that may remain unserved because utilizations are floats.
_TOLERANCE_SHIFT = 40
_LEVEL_NODES_AT_ONCE = 200   # before it gives way again


class SinkPart(NamedTuple):
    """An OSD in a sink: at utilization t it holds t · size_bytes, including its fixed_bytes."""

    fixed_bytes: int
    size_bytes: int

    @property
    def fixed_utilization(self) -> float:
        """Returns the utilization above which the OSD takes bytes."""
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
        """Returns the bytes that bring all parts to the utilization or above."""
        fixed, sizes = self._sums[bisect_left(self._utilizations, utilization)]
        return max(0, int(utilization * sizes) - fixed)


class CapacityNetwork:
    """Nodes with their inflow, directed edges, and sinks; and the meaning of the nodes."""

    def __init__(self) -> None:
        self.demands: List[int] = []                   # bytes, per node
        self.edges: List[List[Tuple[int, int]]] = []   # per node: (head, capacity in bytes)
        self.sinks: Dict[int, Sink] = {}               # node → sink
        self.demand_of: Dict[int, Demand] = {}          # node of a demand or of its buckets
        self.item_of: Dict[int, int] = {}               # node → bucket, or OSD with a sink alone
        self.osds_of: Dict[int, Tuple[int, ...]] = {}   # node of a sink
        self._bucket_nodes: Dict[Tuple[int, Tuple[int, ...]], int] = {}

    def add_node(self, demand: int = 0) -> int:
        """Adds a node; returns its number."""
        self.demands.append(demand)
        self.edges.append([])
        return len(self.demands) - 1

    def bucket(self, root: int, path: Tuple[int, ...]) -> int:
        """Returns the node of the last bucket of a path from a demand's node.

        Adds it, and the nodes above it, if they are not there yet.
        """
        if not path:
            return root
        nodes = self._bucket_nodes
        key = root, path
        if key not in nodes:
            demand = self.demand_of[root]
            shards = demand.reach.domains[len(path) - 1].shards_per_bucket
            above = self.bucket(root, path[:-1])
            node = nodes[key] = self.add_node()
            self.demand_of[node], self.item_of[node] = demand, path[-1]
            self.edges[above].append((node, min(demand.all_bytes, shards * demand.single_bytes)))
        return nodes[key]


class UtilizationTier(NamedTuple):
    """Nodes whose sinks all have one utilization, or their fixed one if that is higher."""

    utilization: float
    nodes: Sequence[int]


class Piece(NamedTuple):
    """A part of the network that is not solved yet."""

    nodes: List[int]
    inflow: Dict[int, int]    # node → its demand plus the bytes that come from higher parts
    outflow: Dict[int, int]   # node → bytes that saturated edges carry to lower parts


def whole(network: CapacityNetwork) -> Piece:
    """Returns the piece with all nodes of a network."""
    demands = dict(enumerate(network.demands))
    return Piece(list(demands), {node: size for node, size in demands.items() if size}, {})


def max_min_levels(network: CapacityNetwork) -> List[UtilizationTier]:
    """Returns tiers from the highest to the lowest; they share no node and hold every sink."""
    unsolved = [whole(network)]
    tiers: List[UtilizationTier] = []
    while unsolved:
        piece = unsolved.pop()
        sinks = [network.sinks[node] for node in piece.nodes if node in network.sinks]
        if not sinks:
            continue  # no sink is within reach of its inflow, at any utilization
        utilization = _common_utilization(piece, sinks)
        upper = upper_nodes(network, piece, utilization)
        if not upper or len(upper) == len(piece.nodes):
            tiers.append(UtilizationTier(utilization, piece.nodes))
        else:
            unsolved += reversed(_halves(network, piece, upper))
    return tiers


def _common_utilization(piece: Piece, sinks: Iterable[Sink]) -> float:
    """Returns the utilization at which the sinks hold the inflow of the piece."""
    need = sum(piece.inflow.values()) - sum(piece.outflow.values())
    parts = [part for sink in sinks for part in sink.parts]
    parts.sort(key=lambda part: part.fixed_utilization)
    fixed = sizes = 0
    utilization = parts[0].fixed_utilization
    for part in parts:
        if sizes and part.fixed_utilization >= utilization:
            break
        fixed += part.fixed_bytes
        sizes += part.size_bytes
        utilization = (need + fixed) / sizes
    return utilization


def _halves(network: CapacityNetwork, piece: Piece, upper: Set[int]) -> Tuple[Piece, Piece]:
    """Splits a piece into the `upper` nodes and the lower ones."""
    above = Piece([], Counter(), Counter())
    below = Piece([], Counter(), Counter())
    for node in piece.nodes:
        half = above if node in upper else below
        half.nodes.append(node)
        for flow, part in ((piece.inflow, half.inflow), (piece.outflow, half.outflow)):
            if node in flow:
                part[node] = flow[node]
    # the edges between the halves are saturated, downwards only
    lower = set(below.nodes)
    for node in above.nodes:
        for head, capacity in network.edges[node]:
            if head in lower:
                above.outflow[node] += capacity
                below.inflow[head] += capacity
    return above, below


def upper_nodes(network: CapacityNetwork, piece: Piece, utilization: float) -> Set[int]:
    """Returns the nodes that cannot pass on their inflow if no sink is fuller than the
    utilization."""
    place = {node: index for index, node in enumerate(piece.nodes)}
    source = len(place)
    target = source + 1
    flows = FlowNetwork(target + 1)
    add_edge = flows.add_edge
    nodes, entering, leaving = piece
    sinks = 0
    for node in piecewise(nodes, _LEVEL_NODES_AT_ONCE):
        index = place[node]
        if node in entering:
            add_edge(source, index, entering[node])
        for head, capacity in network.edges[node]:
            if head in place:
                add_edge(index, place[head], capacity)
        if node in leaving:
            add_edge(index, target, leaving[node])
        sink = network.sinks.get(node)
        if sink is not None:
            sinks += 1
            add_edge(index, target, sink.capacity_at(utilization))
    inflow = sum(entering.values())
    unserved = inflow - flows.max_flow(source, target)
    if unserved <= sinks + (inflow >> _TOLERANCE_SHIFT):  # capacities are rounded by a byte each
        return set()
    return {node for node in nodes if flows.depth[place[node]] >= 0}


#: A demand with a smaller ratio of all bytes may exceed its limit per OSD. Utilizations do not show
#: that, and OSDs need no separate sinks for it.
_NEGLIGIBLE = 1e-7
_SINKS_AT_ONCE = 100   # before it gives way again


class Component(NamedTuple):
    """Demands that share OSDs, and these OSDs."""

    demands: List[Demand]
    osds: Set[int]


def components(demands: Iterable[Demand]) -> List[Component]:
    """Groups demands that share OSDs, directly or through others."""
    found: List[Component] = []
    for demand in piecewise(demands, 1):
        joined = Component([demand], set(demand.reach.osds))
        others: List[Component] = []
        for component in found:
            if component.osds.isdisjoint(joined.osds):
                others.append(component)
            else:
                joined = Component(component.demands + joined.demands,
                                   component.osds | joined.osds)
        found = [*others, joined]
    return found


#: per demand of a component the buckets from its take to an OSD; None if it cannot use the OSD
_Paths = Tuple[Optional[Tuple[int, ...]], ...]


def build_network(component: Component, parts: Mapping[int, SinkPart],
                  ceiling: float) -> CapacityNetwork:
    """Returns the component's network. No OSD can end above the ceiling (a ratio of capacity).

    OSDs that no demand can tell apart share a sink, except OSDs that may reach the most that a
    demand allows one OSD.
    """
    built = CapacityNetwork()
    roots = [(built.add_node(demand.all_bytes), demand) for demand in component.demands]
    built.demand_of.update(roots)
    for (paths, single), osds in piecewise(_alike(component, parts, ceiling), _SINKS_AT_ONCE):
        sink = built.add_node()
        built.sinks[sink] = Sink([parts[osd] for osd in osds])
        built.osds_of[sink] = tuple(osds)
        if single is not None:
            built.item_of[sink] = single
        for (root, demand), path in zip(roots, paths):
            if path is None:
                continue
            capacity = demand.all_bytes
            if single is not None and demand.osd_limit_counts():
                capacity = min(capacity, demand.single_bytes)
            built.edges[built.bucket(root, path)].append((sink, capacity))
    return built


def _alike(component: Component, parts: Mapping[int, SinkPart], ceiling: float
           ) -> Iterable[Tuple[Tuple[_Paths, Optional[int]], List[int]]]:
    """Returns ((paths, OSD if it needs a separate sink), OSDs of the sink)."""
    demands = component.demands
    negligible = _NEGLIGIBLE * sum([demand.all_bytes for demand in demands])
    tight = [demand for demand in demands
             if demand.osd_limit_counts() and demand.all_bytes > negligible]
    alike: Dict[Tuple[_Paths, Optional[int]], List[int]] = defaultdict(list)
    at_once = OSDS_AT_ONCE // len(demands) + 1
    for osd in piecewise(sorted(component.osds), at_once):
        paths = tuple([demand.reach.paths.get(osd) for demand in demands])
        most = ceiling * parts[osd].size_bytes - parts[osd].fixed_bytes
        single = None
        if any(one.single_bytes < most for one in tight if osd in one.reach.osds):
            single = osd
        alike[paths, single].append(osd)
    return alike.items()
