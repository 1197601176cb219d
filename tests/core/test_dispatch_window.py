"""A plan casts only a window of nodes; each of them wakes one more. Nothing may wait for a sweep."""

import itertools
from dataclasses import replace

from convergence.core.effects import InsertTraversal
from convergence.core.model import Action, Definition, Goal, NodeStatus, Phase, Status
from convergence.core.plan import plan
from convergence.core.request import Planner, Request
from convergence.core.rows import Resource, Stack, Template
from convergence.core.views import PlanView

WINDOW = 3
STACK = Stack('stack', 's', 'p', Action.DELETE, Status.IN_PROGRESS, '', None, None, None, 60, True, 0.0)


def planned(goal, rows, template=None):
    """The plan, and all of its nodes."""
    ids = (str(number) for number in itertools.count())
    action = Action.DELETE if template is None else Action.UPDATE
    stack = STACK if template is None else replace(STACK, action=Action.CREATE, status=Status.COMPLETE)
    request = Request(action, goal, traversal_id='traversal', template=template)
    decision = plan(PlanView(0.0, stack, None, tuple(rows)), stack, request, Planner(lambda: next(ids), WINDOW))
    (inserted,) = (effect for effect in decision.effects if isinstance(effect, InsertTraversal))
    return decision.verdict, inserted.nodes


def row(number):
    definition = Definition(f'r{number}', 'T')
    return Resource(
        f'id-{number}', 'stack', f'r{number}', 'T', Action.CREATE, Status.COMPLETE, 0.0, definition=definition
    )


def test_each_ready_node_is_attended_to_at_once_or_woken_by_another_that_is():
    verdict, nodes = planned(Goal(), [row(number) for number in range(8)])
    ready = {node.number for node in nodes if node.status is NodeStatus.READY}
    by_number = {node.number: node for node in nodes}
    reached, found = set(), [node.number for node in verdict.ready]
    assert sum(node.phase is Phase.CLEANUP for node in verdict.ready) == WINDOW
    while found:
        node = by_number[found.pop()]
        reached.add(node.number)
        found += [node.next_in_backlog] if node.next_in_backlog is not None else []
    assert reached == ready


def test_a_node_that_needs_no_worker_is_not_left_to_be_woken():
    """A worker that is told of `IN_SERVICE` does nothing; an update to nothing would wait for the sweeper."""
    verdict, nodes = planned(Goal(), [row(number) for number in range(8)], Template('t', 'stack', {}))
    (in_service,) = (node for node in nodes if node.phase is Phase.IN_SERVICE)
    assert in_service.status is NodeStatus.READY
    assert in_service.number in [node.number for node in verdict.ready]
    assert in_service.number not in [node.next_in_backlog for node in nodes]
