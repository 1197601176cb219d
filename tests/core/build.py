"""Values for the tests of the core: whole rows and views from what a test cares about."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from convergence.core.claim import Claim, Desired, Step, Undesirable, Worker
from convergence.core.model import (
    Action,
    Change,
    Definition,
    Goal,
    NodeStatus,
    Output,
    Phase,
    Status,
    TraversalStatus,
)
from convergence.core.request import Planner, Request
from convergence.core.rows import Node, Pending, Resource, Stack, Template, Traversal
from convergence.core.views import FinishView, NodeView, PlanView

NOW = 1000.0
STACK = Stack(
    id='S',
    name='stack',
    project_id='p',
    action=Action.CREATE,
    status=Status.COMPLETE,
    status_reason='',
    template_id='T0',
    last_good_template_id='T0',
    traversal_id='V0',
    timeout_mins=60,
    disable_rollback=True,
    created_at=1.0,
)
RUNNING = replace(STACK, action=Action.UPDATE, status=Status.IN_PROGRESS, template_id='T1', traversal_id='V1')
TRAVERSAL = Traversal(
    id='V1',
    stack_id='S',
    action=Action.UPDATE,
    status=TraversalStatus.RUNNING,
    template_id='T1',
    rollback_on_failure=False,
    started_at=900.0,
    deadline=5000.0,
    node_count=10,
    complete_number=9,
)
DEFINITION = Definition('r', 'Type', {'p': 1})
OUTPUT = Output('R', 'phys')
FRESH = Resource('R', 'S', 'r', 'Type', Action.INIT, Status.COMPLETE, 500.0, template_id='T1')
MADE = replace(
    FRESH,
    action=Action.CREATE,
    physical_id='phys',
    definition=DEFINITION,
    properties={'p': 1},
    output=OUTPUT,
    digest='d',
    template_id='T0',
    token='token',
    fence=1,
)
NODE = Node('V1', 3, Phase.UPDATE, NodeStatus.READY, 'r', 'R', DEFINITION, required_by=(7,))
CLEANUP = Node('V1', 4, Phase.CLEANUP, NodeStatus.READY, 'r', 'R', required_by=(9,))
PENDING = Pending(DEFINITION, {'p': 1}, (), 'T1', 'digest')


def ids() -> Any:
    """A source of ids: ``new-1``, ``new-2`` …"""
    numbers = itertools.count(1)
    return lambda: f'new-{next(numbers)}'


def worker(window: int = 64) -> Worker:
    """The worker ``W``."""
    return Worker('W', ids(), window)


def definition(name: str, *requires: str, **uses: tuple[str, ...]) -> Definition:
    """A definition of no properties."""
    return Definition(name, 'Type', requires=tuple(sorted(requires)), uses=uses)


def definitions(**requires: str) -> dict[str, Definition]:
    """By name, from the names (one letter each) that each requires: ``a='', b='a'``."""
    return {name: definition(name, *letters) for name, letters in requires.items()}


def row(row_id: str, name: str = '', *requires: str, **changes: Any) -> Resource:
    """A complete row; its name is its id in small letters without digits, unless given."""
    name = name or row_id.rstrip('0123456789').lower()
    made = replace(
        MADE,
        id=row_id,
        name=name,
        requires=tuple(requires),
        physical_id=f'phys-{row_id}',
        output=Output(row_id, row_id),
        definition=definition(name),
    )
    return replace(made, **changes)


def request(
    goal: Goal | dict[str, Definition] | None = None, action: Action = Action.UPDATE, **changes: Any
) -> Request:
    """A request for a new template ``T1``."""
    whole = goal if isinstance(goal, Goal) else Goal(goal or {})
    template = Template('T1', 'S', {}) if whole.definitions else None
    return replace(
        Request(action, whole, template=template, is_new_template=template is not None, traversal_id='V1'), **changes
    )


def planner(window: int = 64) -> Planner:
    """Whoever plans."""
    return Planner(ids(), window)


def plan_view(*rows: Resource, stack: Stack | None = STACK, traversal: Traversal | None = None) -> PlanView:
    """A stack with rows."""
    return PlanView(NOW, stack, traversal, tuple(rows))


def node_view(node: Node = NODE, resource: Resource | None = MADE, **changes: Any) -> NodeView:
    """A node of the current, running traversal."""
    return replace(NodeView(NOW, node, TRAVERSAL, RUNNING, resource), **changes)


def held(resource: Resource = MADE, **changes: Any) -> Resource:
    """The row, held by ``W``."""
    return replace(resource, owner='W', fence=resource.fence + 1, **changes)


def claim(step: Step, action: Action, resource: Resource, **changes: Any) -> Claim:
    """A claim of the row for its node."""
    node = CLEANUP if action is Action.DELETE else NODE
    pending = None if action is Action.DELETE else PENDING
    made = Claim(step, action, resource, node, RUNNING, TRAVERSAL, pending=pending)
    return replace(made, **changes)


def finish_view(claimed: Claim, **changes: Any) -> FinishView:
    """What finishing a claim sees where nothing else has happened."""
    return replace(FinishView(NOW, claimed.resource, claimed.node, TRAVERSAL, RUNNING), **changes)


def superseded(view: Any, *waiting: tuple[str, int]) -> Any:
    """The same view, with another traversal as the current one."""
    other = replace(RUNNING, traversal_id='V2')
    changed = replace(view, stack=other)
    return replace(changed, waiting=waiting) if isinstance(view, FinishView) else changed


def wants(change: Change, *, is_renewed: bool = False) -> Any:
    """An assessment: the properties are as given, and this is what it takes."""
    return lambda view: Desired({'p': 2}, change, is_renewed=is_renewed)


def cannot(view: NodeView) -> Undesirable:
    """An assessment: it cannot be had."""
    return Undesirable('no such value')


def never(view: NodeView) -> Desired:
    """An assessment that must not be asked for."""
    raise AssertionError('nobody should ask')


def of_kind(decision: Any, kind: type) -> list[Any]:
    """The effects of one kind."""
    return [effect for effect in decision.effects if isinstance(effect, kind)]


def only(decision: Any, kind: type) -> Any:
    """The one effect of a kind."""
    (effect,) = of_kind(decision, kind)
    return effect


def events(decision: Any) -> list[str]:
    """The events, as action and status."""
    from convergence.core.effects import InsertEvents

    return [f'{event.action}_{event.status}' for effect in of_kind(decision, InsertEvents) for event in effect.events]
