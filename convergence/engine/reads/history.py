"""The operations on a stack, and the graph of its resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence import errors
from convergence.core.model import Phase
from convergence.core.rows import Resource, Stack, Traversal
from convergence.db.ports import KnownObjectsPort, RosterPort
from convergence.db.repositories.reads.overview import Overview
from convergence.db.repositories.reads.stacks import StackReader, in_service
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.reads import formats
from convergence.engine.reads.below import stacks_below
from convergence.engine.reads.explain import traversal_document
from convergence.engine.reads.reading import Reading

NEWEST = 100
"""Operations shown where the caller sets no limit."""


class HistoryReads(Reading[StackReader]):
    """Questions about the operations on a stack, and about its graph."""

    def __init__(self, reader: StackReader, compiler: TemplateCompiler, objects: KnownObjectsPort) -> None:
        super().__init__(reader, compiler)
        self._objects = objects

    def list_traversals(
        self,
        context: Caller,
        stack_identity: Mapping[str, Any],
        limit: int | None = None,
        nested_depth: int | None = None,
    ) -> list[Document]:
        """The operations on a stack, the newest first.

        :param limit: maximum number; None: `NEWEST`.
        :param nested_depth: number of levels of nested stacks to include; None: none. With it each operation has the
            `path` of its stack, empty for the stack itself.
        """
        if limit is not None and limit < 0:
            raise errors.Invalid(f'limit: {limit} is less than 0')
        stack = self._stack(context, stack_identity)
        now = self._reader.now()
        newest = NEWEST if limit is None else limit
        if nested_depth is None:
            return [_operation(each, stack, now) for each in reversed(self._reader.traversals(stack.id, newest=newest))]
        tree = {'': stack, **stacks_below(self._reader, stack, nested_depth)}
        paths = {each.id: path for path, each in tree.items()}
        found = self._reader.traversals_of_stacks(list(paths), newest)
        return [{**_operation(each, tree[paths[each.stack_id]], now), 'path': paths[each.stack_id]} for each in found]

    def stack_graph(
        self, context: Caller, stack_identity: Mapping[str, Any], nested_depth: int | None = None
    ) -> Document:
        """The resources of a stack and their dependencies.

        :param nested_depth: number of levels of nested stacks to include; None: none. The names of nested resources are
            paths, with slashes, and a resource that is a stack needs all resources in it.
        :returns: `nodes`, each with `name`, `type`, `status` (null: not started), `reason`, `is_planned` (True if the
            current operation visits or visited it, while that is known), and `changed_outside`, the reason of its drift
            (null: no known drift); first the resources of the goal in the order of the template, then leftovers of
            older templates. `edges`: `from` needs `to`.
        """
        stack = self._stack(context, stack_identity)
        nodes, edges = self._graph(stack, '')
        for path, nested in stacks_below(self._reader, stack, nested_depth or 0).items():
            inside = self._graph(nested, f'{path}/')
            nodes += inside[0]
            needed = {edge['to'] for edge in inside[1]}
            edges += [{'from': path, 'to': each['name']} for each in inside[0] if each['name'] not in needed]
            edges += inside[1]
        return {'stack_identity': formats.identity(stack), 'nodes': nodes, 'edges': edges}

    def _graph(self, stack: Stack, lead: str) -> tuple[list[Document], list[Document]]:
        """The nodes and edges of one stack.

        :param lead: prefix of each name.
        """
        compiled = self._compiled(stack)
        wanted = compiled.goal.definitions if compiled is not None else {}
        rows = in_service(self._reader.resources(stack.id), stack.template_id)
        names = [*wanted, *sorted(set(rows) - set(wanted))]
        planned, outside = self._planned(stack), self._outside(stack)
        nodes = [
            {
                **_node(f'{lead}{name}', wanted[name].type if name in wanted else rows[name].type, row),
                'is_planned': name in planned,
                'changed_outside': outside.get(row.id) if row is not None else None,
            }
            for name in names
            for row in [rows.get(name)]
        ]
        edges = []
        for name in names:
            definition = wanted[name] if name in wanted else rows[name].definition
            edges += [
                {
                    'from': f'{lead}{name}',
                    'to': f'{lead}{required}',
                    **({'is_implied': True} if definition is not None and required in definition.implied else {}),
                }
                for required in (definition.requires if definition is not None else ())
                if required in wanted or required in rows
            ]
        return nodes, edges

    def _outside(self, stack: Stack) -> dict[str, str]:
        """How objects changed outside of the stack, by the keys of their rows."""
        drifted = self._objects.known([stack.id], drifted=True) if self._objects.summary(stack.id).drifted else ()
        return {each.row.id: each.observation.reason for each in drifted}

    def _planned(self, stack: Stack) -> set[str | None]:
        """Return the names of the resources that the current operation visits.

        Empty some time after the end of the operation, when the sweeper has removed its nodes.
        """
        nodes = self._reader.nodes(stack.traversal_id) if stack.traversal_id else []
        return {node.name for node in nodes if node.phase is Phase.UPDATE}


def _operation(traversal: Traversal, stack: Stack, now: float) -> Document:
    return {**traversal_document(traversal, now), 'is_current': traversal.id == stack.traversal_id}


def _node(name: str, kind: str, row: Resource | None) -> Document:
    return {
        'name': name,
        'type': kind,
        'status': formats.state(row.action, row.status) if row is not None else None,
        'reason': row.status_reason if row is not None else '',
    }


class ProgressReads:
    """The health of the installation. It concerns no project, and reveals nothing of any."""

    def __init__(self, overview: Overview, roster: RosterPort) -> None:
        self._overview = overview
        self._roster = roster

    def get_progress(self, context: Caller) -> Document:
        """Counts of processes and operations, and a verdict. The API shows them to every caller.

        :returns: `status`, ``ok`` or ``stuck``; `reasons`, sentences; numbers of running `engines` and `workers`;
            numbers of `operations` in progress, of `stalled` ones without progress, and of `late` ones past their
            deadline.
        """
        up = [service.kind for service in self._roster.services() if service.is_up]
        found = self._overview.operations()
        reasons: list[str] = []
        if found.running and 'worker' not in up:
            reasons.append(f'{found.running} operations are in progress and no worker is up.')
        if found.late:
            reasons.append(f'{found.late} operations are past their deadline and still running.')
        if found.stalled:
            reasons.append(f'{found.stalled} operations make no progress.')
        return {
            'status': 'stuck' if reasons else 'ok',
            'reasons': reasons,
            'engines': up.count('engine'),
            'workers': up.count('worker'),
            'operations': found.running,
            'stalled': found.stalled,
            'late': found.late,
        }
