"""Rows for the tests of stores, and short ways to write and read them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

from convergence.core.effects import (
    Decision,
    InsertResources,
    InsertStack,
    InsertTemplate,
    InsertTraversal,
)
from convergence.core.model import Action, Definition, NodeStatus, Output, Phase, Status, TraversalStatus
from convergence.core.rows import Event, Node, Pending, Resource, Stack, Template, Traversal
from convergence.db.null_ports import ALL_PENDING
from convergence.db.ports import Ports
from convergence.db.scopes import NewStack, OneNode
from tests.contract.foretold import ForetoldRows

STACK = Stack(
    id='S',
    name='stack',
    project_id='p',
    action=Action.UPDATE,
    status=Status.IN_PROGRESS,
    status_reason='why',
    template_id='T1',
    last_good_template_id='T0',
    traversal_id='V',
    timeout_mins=60,
    disable_rollback=False,
    created_at=1.25,
    updated_at=2.5,
    tags=('one', 'two'),
)
TEMPLATE = Template('T1', 'S', {'template': {'a': [1, None, 'x']}, 'environment': {}, 'files': {}})
TRAVERSAL = Traversal(
    id='V',
    stack_id='S',
    action=Action.UPDATE,
    status=TraversalStatus.RUNNING,
    template_id='T1',
    rollback_on_failure=True,
    started_at=3.5,
    deadline=4e9,
    node_count=5,
    complete_number=4,
    unchanged=2,
    request_id='req',
)
DEFINITION = Definition('r', 'Type', {'p': [1, 2.5, None, True]}, {'m': {}}, ('q',), uses={'q': ('x',)})
OUTPUT = Output('R', 'phys', {'x': {'deep': [1]}}, {'y': 'unreadable'})
RESOURCE = Resource(
    id='R',
    stack_id='S',
    name='r',
    type='Type',
    action=Action.UPDATE,
    status=Status.IN_PROGRESS,
    created_at=5.5,
    status_reason='reason',
    physical_id='phys',
    definition=DEFINITION,
    properties={'p': 1},
    pending=Pending(DEFINITION, {'p': 2}, ('Q',), 'T1', 'digest', {'m': 1}),
    data={'secret': 'x'},
    output=OUTPUT,
    digest='d' * 64,
    requires=('Q', 'Z'),
    replaces='OLD',
    replaced_by='NEW',
    template_id='T1',
    owner='W',
    fence=7,
    token='token',
    progress={'round': 1},
    wake_at=6.5,
    updated_at=7.5,
)
FREE = replace(RESOURCE, owner=None, replaced_by=None, progress=None, wake_at=None, status=Status.COMPLETE, fence=1)


def node(number: int, waiting: int = 0, required_by: tuple[int, ...] = (), **changes: Any) -> Node:
    """An update node of the row ``R``; ready, unless it waits."""
    status = NodeStatus.WAITING if waiting else NodeStatus.READY
    made = Node('V', number, Phase.UPDATE, status, 'r', 'R', waiting=waiting, required_by=required_by)
    return replace(made, **changes)


NODES = (
    node(0, definition=DEFINITION, asked=('x',), required_by=(2, 3)),
    node(1, name='q', resource_id='Q', required_by=(2,)),
    node(2, 2, (4,), name='z', resource_id='Z', requires=(0, 1)),
    node(3, 1, (4,), phase=Phase.IN_SERVICE, name=None, resource_id=None),
    node(4, 2, phase=Phase.COMPLETE, name=None, resource_id=None),
)
EVENT = Event('E', 'S', Action.UPDATE, Status.FAILED, 'reason', 8.5, 'r', 'Type', 'phys')


@dataclass
class Backend:
    """One store with everything that reads its rows."""

    kind: str
    store: Any
    reader: Any
    roster: Any
    sweeps: Any
    snapshots: Any
    software: Any
    observations: Any
    watched: Any

    @classmethod
    def of(cls, kind: str, ports: Ports) -> Self:
        """One of a kind."""
        is_exact = ports.pending is not ALL_PENDING
        looking = (ports.roster, ports.sweeps, ports.snapshots, ports.observations)
        roster, sweeps, snapshots, seen = (ForetoldRows(each, ports, is_exact=is_exact) for each in looking)
        return cls(kind, ports.store, ports.reader, roster, sweeps, snapshots, ports.software, seen, ports.watched)

    def write(self, *effects: Any, scope: Any = None, wake: Any = ()) -> Any:
        """Carry out effects, whatever is there."""
        return self.store.transact(scope or NewStack('p'), lambda view: Decision('verdict', effects, tuple(wake)))

    def look(self, scope: Any) -> Any:
        """What a decision on a scope gets to see; None where it is not there."""
        committed = self.store.transact(scope, lambda view: Decision(view))
        return committed.verdict if committed is not None else None

    def fill(
        self,
        *,
        stack: Stack = STACK,
        traversal: Traversal = TRAVERSAL,
        nodes: tuple[Node, ...] = NODES,
        resources: tuple[Resource, ...] = (FREE,),
    ) -> None:
        """A stack in the middle of an update."""
        self.write(
            InsertStack(stack), InsertTemplate(TEMPLATE), InsertTraversal(traversal, nodes), InsertResources(resources)
        )

    def fill_more(self, traversal: Traversal, nodes: tuple[Node, ...]) -> None:
        """Another traversal."""
        self.write(InsertTraversal(traversal, nodes))

    def node(self, number: int, traversal_id: str = 'V') -> Node:
        """A node as it is stored."""
        return {each.number: each for each in self.reader.nodes(traversal_id)}[number]

    def resource(self, resource_id: str = 'R', stack_id: str = 'S') -> Resource | None:
        """A row as it is stored."""
        return next((row for row in self.reader.resources(stack_id) if row.id == resource_id), None)

    def everything(self) -> Any:
        """All that is stored of the stack."""
        return (
            self.reader.stack('S'),
            self.reader.template('T1'),
            self.reader.traversals('S'),
            self.reader.nodes('V'),
            self.reader.resources('S'),
            self.reader.events('S'),
            self.look(OneNode('V', 0)) is None,
        )


def at_once(*steps: Callable[[], object]) -> list[Any]:
    """Run steps in a thread each, all at the same time; what each returned, or raised."""
    barrier = threading.Barrier(len(steps))
    results: list[Any] = [None] * len(steps)

    def run(index: int, step: Callable[[], object]) -> None:
        barrier.wait()
        try:
            results[index] = step()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[index] = error

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(steps)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), 'a transaction never ended'
    return results
