"""The graph of a traversal. The only module that knows networkx.

An edge points from a node to one that it requires. The update half comes from the template alone, the cleanup half
from what the rows themselves remember; so a template that turns dependencies round makes no circle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import networkx

from convergence.core.model import Definition, Phase
from convergence.core.rows import Resource


class Key(NamedTuple):
    """A node before it has a number.

    :param subject: resource name of an update node, row key of a cleanup node, empty for the two others.
    """

    phase: Phase
    subject: str


IN_SERVICE = Key(Phase.IN_SERVICE, '')
COMPLETE = Key(Phase.COMPLETE, '')


def update_key(name: str) -> Key:
    """The update node of a resource name."""
    return Key(Phase.UPDATE, name)


def cleanup_key(resource_id: str) -> Key:
    """The cleanup node of a resource row."""
    return Key(Phase.CLEANUP, resource_id)


class Graph:
    """The nodes of one traversal and what each requires."""

    def __init__(self) -> None:
        self._graph: networkx.DiGraph[Key] = networkx.DiGraph()

    def add(self, key: Key, requires: Iterable[Key] = ()) -> None:
        """Add a node, or further requirements of a node."""
        self._graph.add_node(key)
        self._graph.add_edges_from((key, required) for required in requires)

    def part(self, key: Key, requires: Iterable[Key]) -> None:
        """Let a node not wait for others any more."""
        self._graph.remove_edges_from([(key, required) for required in requires])

    def requires(self, key: Key) -> Sequence[Key]:
        """What must be done before `key`."""
        return list(self._graph.successors(key))

    def required_by(self, key: Key) -> Sequence[Key]:
        """What waits for `key`."""
        return list(self._graph.predecessors(key))

    def is_before(self, earlier: Key, later: Key) -> bool:
        """Whether a node has to be done before another one, on whatever way."""
        return networkx.has_path(self._graph, later, earlier)

    def in_order(self) -> Sequence[Key]:
        """All nodes, requirements first; the same for the same template and rows."""
        turned = self._graph.reverse(copy=False)
        order = list(networkx.topological_sort(turned))
        turned.__dict__.pop('in_degree', None)  # it is kept there, and holds what holds it: both for long
        return order

    def not_required(self, phase: Phase) -> Sequence[Key]:
        """The nodes of a phase for which nobody waits."""
        return [key for key in self._graph if key.phase is phase and not self._graph.pred[key]]

    def last_updates(self) -> Sequence[Key]:
        """The update nodes that no other update node requires."""
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
    """Both halves of the graph, without the two nodes that end a traversal (see `close`).

    :param definitions: what is wanted, by name.
    :param rows: every row that exists now. A row is cleaned up after the update node of its name and after everything
        that was built on it has gone, or stands on something else.
    :param chosen: keys of the rows that are used for wanted names. They go only if they are replaced, and then when
        everything wanted is in service. Whoever replaces one adds its cleanup node; see `_foreseen` for the others.
    :param first: keys of rows in whose way nothing new can be made: they go before the update node of their name, but
        for those that something is built on which waits for that.
    :param finished: the chosen rows for which there is nothing to do, by the names. They have no nodes, and nobody
        waits for them. What they require is finished as well.
    """
    graph = Graph()
    visited = definitions.keys() - finished.keys()
    for name in filter(visited.__contains__, definitions):
        requires = definitions[name].requires
        graph.add(update_key(name), (update_key(required) for required in requires if required in visited))
    existing = {row.id: row for row in rows}
    cleaned = {row.id for row in rows if row.id not in chosen} | _foreseen(definitions, existing, chosen)
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
                # What stays in use, and is built on what goes, has to bear that there is none for a while.
                used = [key for key in graph.requires(goes) if key.phase is Phase.UPDATE or key.subject in chosen]
                graph.part(goes, used)
            graph.add(*((goes, [comes]) if graph.is_before(comes, goes) else (comes, [goes])))
    return graph


def _foreseen(
    definitions: Mapping[str, Definition], existing: Mapping[str, Resource], chosen: Collection[str]
) -> set[str]:
    """The chosen rows that something is built on which may be cleaned up before they are replaced.

    Something that goes, or something that will not require them any more. Whoever replaces a row does not know of
    those; all others that are built on it wait for its update node, and are replaced after it.
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
    """The names of what is wanted, each after all that it requires."""
    begun: set[str] = set()
    ended: set[str] = set()
    for wanted in definitions:
        waiting = [wanted]
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
