"""The graph of a traversal. Only this module uses networkx.

An edge leads from a node to a node that it requires. The update half of the graph follows the template, the cleanup
half follows the requirements stored in the rows. So a template that reverses dependencies creates no cycle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import networkx

from convergence.core.model import Definition, Phase
from convergence.core.rows import Resource


class Key(NamedTuple):
    """Identifies a node that has no number yet.

    :param subject: resource name of an update node, row id of a cleanup node, empty for the two end nodes.
    """

    phase: Phase
    subject: str


IN_SERVICE = Key(Phase.IN_SERVICE, '')
COMPLETE = Key(Phase.COMPLETE, '')


def update_key(name: str) -> Key:
    """Return the key of the update node of a resource name."""
    return Key(Phase.UPDATE, name)


def cleanup_key(resource_id: str) -> Key:
    """Return the key of the cleanup node of a resource row."""
    return Key(Phase.CLEANUP, resource_id)


class Graph:
    """The nodes of one traversal and their requirements."""

    def __init__(self) -> None:
        self._graph: networkx.DiGraph[Key] = networkx.DiGraph()

    def add(self, key: Key, requires: Iterable[Key] = ()) -> None:
        """Add a node, or further requirements of a node."""
        self._graph.add_node(key)
        self._graph.add_edges_from((key, required) for required in requires)

    def part(self, key: Key, requires: Iterable[Key]) -> None:
        """Remove requirements of a node."""
        self._graph.remove_edges_from([(key, required) for required in requires])

    def requires(self, key: Key) -> Sequence[Key]:
        """Return the nodes that `key` requires directly."""
        return list(self._graph.successors(key))

    def required_by(self, key: Key) -> Sequence[Key]:
        """Return the nodes that require `key` directly."""
        return list(self._graph.predecessors(key))

    def is_before(self, earlier: Key, later: Key) -> bool:
        """Return True if the node `later` requires the node `earlier`, directly or indirectly."""
        return networkx.has_path(self._graph, later, earlier)

    def in_order(self) -> Sequence[Key]:
        """Return all nodes, requirements first. The order is the same for the same template and rows."""
        turned = self._graph.reverse(copy=False)
        order = list(networkx.topological_sort(turned))
        turned.__dict__.pop('in_degree', None)  # it refers back to its graph; without that cycle both are freed at once
        return order

    def not_required(self, phase: Phase) -> Sequence[Key]:
        """Return the nodes of a phase that no other node requires."""
        return [key for key in self._graph if key.phase is phase and not self._graph.pred[key]]

    def last_updates(self) -> Sequence[Key]:
        """Return the update nodes that no other update node requires."""
        return [
            key
            for key in self._graph
            if key.phase is Phase.UPDATE
            and not any(other.phase is Phase.UPDATE for other in self._graph.predecessors(key))
        ]

    def __contains__(self, key: Key) -> bool:
        return key in self._graph

    def __len__(self) -> int:
        return len(self._graph)


def build(
    definitions: Mapping[str, Definition],
    rows: Sequence[Resource],
    chosen: Collection[str] = frozenset(),
    first: Collection[str] = frozenset(),
    finished: Mapping[str, Resource] = MappingProxyType({}),
) -> Graph:
    """Build both halves of the graph, without the two end nodes of a traversal (see `close`).

    :param definitions: the definitions of the goal, by name.
    :param rows: all existing rows. A row is cleaned up after the update node of its name, and after all of its
        dependents were deleted or depend on another row.
    :param chosen: ids of the rows that the goal uses. Such a row is cleaned up only if it is replaced, and then after
        the goal is in service. The decision to replace it adds its cleanup node; see `_cleaned_early` for exceptions.
    :param first: ids of rows that must be cleaned up before the update node of their name, because they block the new
        object; except for rows with dependents that wait for this update node.
    :param finished: the unchanged chosen rows, by name. They have no nodes, and no node waits for them. Their
        requirements are finished as well.
    """
    graph = Graph()
    visited = definitions.keys() - finished.keys()
    for name in filter(visited.__contains__, definitions):
        requires = definitions[name].requires
        graph.add(update_key(name), (update_key(required) for required in requires if required in visited))
    existing = {row.id: row for row in rows}
    cleaned = {row.id for row in rows if row.id not in chosen} | _cleaned_early(definitions, existing, chosen)
    cleaned -= {row.id for row in finished.values()}
    for row in rows:
        if row.id in cleaned:
            after = IN_SERVICE if row.id in chosen else update_key(row.name)
            graph.add(cleanup_key(row.id), [after] if row.name in visited and row.id not in first else [])
    for row in rows:
        own = cleanup_key(row.id) if row.id in cleaned else update_key(row.name)
        if own.phase is Phase.UPDATE and row.name in finished:
            continue
        for required in row.requires:
            if required in cleaned and required != row.id:
                graph.add(cleanup_key(required), [own])
    for row in rows:
        if row.id in first and row.id in cleaned and row.name in visited:
            goes, comes = cleanup_key(row.id), update_key(row.name)
            if graph.is_before(comes, goes):
                # Dependents of the row that stay in use must work without the object for a while.
                used = [key for key in graph.requires(goes) if key.phase is Phase.UPDATE or key.subject in chosen]
                graph.part(goes, used)
            graph.add(*((goes, [comes]) if graph.is_before(comes, goes) else (comes, [goes])))
    return graph


def _cleaned_early(
    definitions: Mapping[str, Definition], existing: Mapping[str, Resource], chosen: Collection[str]
) -> set[str]:
    """Return the ids of chosen rows that need a cleanup node from the beginning, in case they are replaced.

    These rows have dependents that are deleted or will not require them any more. A later decision to replace a row
    does not know such dependents. All other dependents wait for the row's update node and are replaced after it.
    """
    goes = [row for row in existing.values() if row.id not in chosen]
    found = {
        required
        for row in existing.values()
        if row.id in chosen
        for required in row.requires
        if required in chosen and existing[required].name not in (row.name, *definitions[row.name].requires)
    }
    goes += [existing[key] for key in found]
    while goes:
        below = {required for required in goes.pop().requires if required in chosen} - found
        found |= below
        goes += [existing[key] for key in below]
    return found


def requirements_first(definitions: Mapping[str, Definition]) -> Iterator[str]:
    """Yield the names of the goal, each after all names that it requires."""
    begun: set[str] = set()
    ended: set[str] = set()
    for start in definitions:
        waiting = [start]
        while waiting:
            name = waiting[-1]
            before = [required for required in definitions[name].requires if required not in ended]
            if before and name not in begun:
                begun.add(name)
                waiting += before
                continue
            waiting.pop()
            if name not in ended:
                ended.add(name)
                yield name


def close(graph: Graph) -> None:
    """Add the nodes that end the traversal: `IN_SERVICE` after the last updates, `COMPLETE` after everything."""
    graph.add(IN_SERVICE, graph.last_updates())
    graph.add(COMPLETE, [IN_SERVICE, *graph.not_required(Phase.CLEANUP)])
