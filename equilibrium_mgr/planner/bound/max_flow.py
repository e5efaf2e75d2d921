"""Maximum flow and minimum cut by Dinic's algorithm, on integers so that nothing is rounded.

Source: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
estimation", Soviet Math. Doklady 11 (1970). Iterative: paths may be longer than Python's stack.
"""
from __future__ import annotations

from collections import deque
from typing import List
from ...runtime.time_slice import give_way

#: Before it gives way again: a few milliseconds.
_NODES_AT_ONCE = 1000
_STEPS_AT_ONCE = 2000


class FlowNetwork:
    """Directed edges with capacities; `max_flow` may be called once."""

    def __init__(self, nodes: int) -> None:
        self._edges_of: List[List[int]] = [[] for _ in range(nodes)]
        self._head: List[int] = []
        self._residual: List[int] = []   # what an edge can still carry; edge e is e ^ 1 reversed
        self._depth: List[int] = []      # edges from the source, -1 where it does not reach

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

    def on_source_side(self, node: int) -> bool:
        """After `max_flow`: True if the node is on the source's side of the minimum cut.

        Of several minimum cuts it is the one with the smallest source side.
        """
        return self._depth[node] >= 0

    def _measure_depths(self, source: int, sink: int) -> bool:
        """Measures distances from the source; False if the sink is out of reach, and then every
        node within reach has its depth."""
        edges_of, head, residual = self._edges_of, self._head, self._residual
        depth = self._depth = [-1] * len(edges_of)
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
        """Sends a blocking flow over the edges that lead one step farther from the source."""
        edges_of, head, residual, depth = self._edges_of, self._head, self._residual, self._depth
        current = [0] * len(edges_of)   # per node the index of its first edge that is not exhausted
        path: List[int] = []   # edges from the source to `node`
        node, flow, steps = source, 0, 0
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
                # on from where the first edge is saturated now
                first = next(index for index, edge in enumerate(path) if not residual[edge])
                node = head[path[first] ^ 1]
                del path[first:]
            edges, index, below = edges_of[node], current[node], depth[node] + 1
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
