"""The consequences of failures, time limits and cancels for a traversal and its stack."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from convergence.core import nesting, states
from convergence.core.changes import StackChange
from convergence.core.effects import (
    BeginCancel,
    Decision,
    Effect,
    EndTraversal,
    FailNode,
    InsertEvents,
    NoteFailure,
    UpdateStack,
)
from convergence.core.model import UNDER_WAY, Action, Phase, Status, TraversalStatus
from convergence.core.rows import Event, Node, Stack, Traversal
from convergence.core.views import PlanView

NAMED = 5
"""Maximum number of resource names in a reason, to keep it readable; the rest appears as a number."""

_OF_NESTED = re.compile(r'Resource [A-Z]+ failed: (?P<kind>[A-Z]\w+: )?resources\.')
_KIND = re.compile(r'[A-Z]\w+: ')


class Outcome(StrEnum):
    """The way to settle a stack whose traversal has ended early."""

    NOTHING = 'NOTHING'
    FAIL = 'FAIL'
    ROLL_BACK = 'ROLL_BACK'


PATH = 'resources.'
"""Prefix of a path to a resource."""


def led_to(name: str, said: str, of_type: str = '') -> str:
    """Prefix a failure with the path of its resource, for example ``resources.web.resources.server: why``.

    :param said: the failure; it may begin with a path inside the resource, which is joined to one path.
    :param of_type: type of the resource; the text contains it if the path ends with this resource.
    """
    if said.startswith(PATH):
        return f'{PATH}{name}.{said}'
    return f'{PATH}{name} ({of_type}): {said}' if of_type else f'{PATH}{name}: {said}'


def stack_reason(action: Action, name: str, reason: str) -> str:
    """Return the reason of a stack with a failed resource: ``Resource CREATE failed: ValueError: resources.a: why``.

    The name of an exception at the begin of the resource's reason moves before the path, and a path into a nested stack
    becomes one path: clients of Heat compare these texts.
    """
    if _OF_NESTED.match(reason):
        return _OF_NESTED.sub(
            lambda inner: f'Resource {action} failed: {inner["kind"] or ""}resources.{name}.resources.', reason
        )
    kind = _KIND.match(reason)
    before = kind[0] if kind else ''
    return f'Resource {action} failed: {before}{led_to(name, reason.removeprefix(before))}'


def node_failed(traversal: Traversal, node: Node, action: Action, name: str, reason: str, now: float) -> list[Effect]:
    """Fail the current traversal because a node has failed: no other node may start. The first failure is the cause."""
    text = stack_reason(action, name, reason)
    return [
        EndTraversal(traversal.id, TraversalStatus.FAILED, now, text, node.phase, name),
        FailNode(node.traversal_id, node.number),
    ]


def goes_on(traversal: Traversal | None) -> bool:
    """Return True if a traversal continues after a failed node: a check visits every resource."""
    return traversal is not None and traversal.action is Action.CHECK


def noted(traversal: Traversal, action: Action, name: str, reason: str) -> Effect:
    """Record the failure of a node in a traversal that continues. The traversal fails at its end."""
    return NoteFailure(traversal.id, name, stack_reason(action, name, reason))


def after(traversal: Traversal | None, name: str) -> str:
    """Return the addition to a resource's reason if another resource of the traversal has failed before; else empty."""
    if traversal is None or goes_on(traversal) or traversal.failed_name in (None, name):
        return ''
    return f' (after {traversal.failed_name} had failed)'


def outcome(stack: Stack, traversal: Traversal | None) -> Outcome:
    """Return the way to settle the stack of a failed traversal.

    A failed or late cleanup never leads to a rollback, which would create the deleted objects again. Nor does a failed
    rollback or delete. Two rollbacks for one failure are impossible, because a rollback is a new traversal.
    """
    if traversal is None or stack.traversal_id != traversal.id or stack.status is not Status.IN_PROGRESS:
        return Outcome.NOTHING
    if traversal.status is not TraversalStatus.FAILED:
        return Outcome.NOTHING
    in_service = traversal.template_id is not None and traversal.template_id == stack.last_good_template_id
    if traversal.failed_phase is Phase.CLEANUP or in_service or not traversal.rollback_on_failure:
        return Outcome.FAIL
    return Outcome.ROLL_BACK


def way_back(stack: Stack) -> str | None:
    """Return the id of the template for a rollback that a user requests, or None if there is none.

    While the goal is not in service, it is the last good template; else the good template before that. A rollback
    exchanges the two, so that a second one returns to the first template.
    """
    undone = stack.action is Action.DELETE or (stack.action, stack.status) == (Action.ROLLBACK, Status.FAILED)
    if undone or stack.template_id != stack.last_good_template_id:
        return stack.last_good_template_id
    return stack.previous_good_template_id


def nobody_waits_for(traversal: Traversal | None) -> bool:
    """Return True if the next traversal cancels the unfinished actions of this one, because it was cancelled or late.

    Workers may still run such actions.
    """
    if traversal is None:
        return False
    late = traversal.status is TraversalStatus.FAILED and traversal.failed_phase is None
    return late or traversal.status is TraversalStatus.CANCELLED


def timed_out(traversal: Traversal, now: float, waited_for: str = '') -> EndTraversal:
    """Return the effect that fails a traversal after its deadline.

    :param waited_for: names of the resources that it waited for, for the reason.
    """
    reason = f'{traversal.action} timed out' + (f', waiting for {waited_for}' if waited_for else '')
    return EndTraversal(traversal.id, TraversalStatus.FAILED, now, reason, None)


def fail_stack(view: PlanView, new_id: Callable[[], str], no_way_back: str = '') -> Decision[Outcome]:
    """Put the stack into the failed state of its traversal's action, unless it must roll back or needs no settling.

    :param no_way_back: the reason why a required rollback is impossible; the stack then fails instead.
    """
    stack, traversal = view.stack, view.traversal
    settled = outcome(stack, traversal) if stack is not None else Outcome.NOTHING
    fails = settled is Outcome.FAIL or (settled is Outcome.ROLL_BACK and bool(no_way_back))
    if stack is None or traversal is None or not fails:
        return Decision(Outcome.NOTHING)
    impossible = settled is Outcome.ROLL_BACK
    reason = f'{traversal.reason}; it cannot be rolled back: {no_way_back}' if impossible else traversal.reason
    if traversal.repair_attempt:
        reason = f'{reason}; {traversal.cause}'  # no user requested it: the cause explains it
    return Decision(Outcome.FAIL, tuple(stop(stack, traversal, reason, view.now, new_id)))


def cancel_stack(view: PlanView, new_id: Callable[[], str]) -> Decision[str | None]:
    """Stop the running traversal without a rollback.

    :returns: a decision whose verdict is the id of the stopped traversal; None if none was running.
    """
    stack, traversal = view.stack, view.traversal
    if stack is None or traversal is None or stack.status is not Status.IN_PROGRESS:
        return Decision(None)
    reason = f'Stack {traversal.action} cancelled'
    effects = stop(stack, traversal, reason, view.now, new_id)
    expected = traversal.status if traversal.status in UNDER_WAY else TraversalStatus.RUNNING
    effects.insert(1, EndTraversal(traversal.id, TraversalStatus.CANCELLED, view.now, reason, expected=expected))
    return Decision(traversal.id, tuple(effects))


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The result of a cancel.

    :param traversal_id: id of the cancelled traversal; empty if none was running.
    :param deadline: time until which the running actions may end; None: the traversal has ended.
    """

    traversal_id: str = ''
    deadline: float | None = None


def cancel_patiently(
    view: PlanView, new_id: Callable[[], str], until: float, moment: Callable[[float], str]
) -> Decision[Cancelled]:
    """Cancel a traversal and let its running actions end. Without a running action the traversal ends at once.

    :param view: the whole stack, with all rows locked, so that no worker is about to begin an action.
    :param until: time at which the cancel must end. A cancel in progress keeps its time.
    :param moment: formats a time for users.
    """
    stack, traversal = view.stack, view.traversal
    if stack is None or traversal is None or stack.status is not Status.IN_PROGRESS:
        return Decision(Cancelled())
    running = sorted({row.name for row in view.resources if row.status is Status.IN_PROGRESS})
    until = min(until, traversal.deadline)
    if not running or until <= view.now or traversal.status not in UNDER_WAY:
        stopped = cancel_stack(view, new_id)
        return Decision(Cancelled(traversal.id), stopped.effects)
    if traversal.status is TraversalStatus.CANCELLING:
        return Decision(Cancelled(traversal.id, traversal.deadline))
    reason = cancelling(traversal.action, running, moment(until))
    return Decision(
        Cancelled(traversal.id, until),
        (
            UpdateStack(stack.id, traversal.id, {'status_reason': reason}),
            BeginCancel(traversal.id, until),
            InsertEvents((Event.of_stack(new_id(), stack.id, traversal.action, Status.IN_PROGRESS, reason, view.now),)),
        ),
    )


def cancelling(action: Action, names: Sequence[str], until: str) -> str:
    """Return the status reason of a stack whose traversal is being cancelled.

    :param names: names of the resources that it waits for.
    """
    return f'Stack {action} cancelling: waits for {listed(names)} until {until}'


def listed(names: Sequence[str]) -> str:
    """Return the first names as text, with the number of further ones."""
    more = f' and {len(names) - NAMED} more' if len(names) > NAMED else ''
    return ', '.join(names[:NAMED]) + more


def end_cancel(view: PlanView, new_id: Callable[[], str]) -> Decision[str | None]:
    """End a traversal that is being cancelled, if no action of it runs any more or its deadline has passed.

    :param view: the whole stack.
    :returns: a decision whose verdict is the id of the traversal if this decision ends it.
    """
    traversal = view.traversal
    if traversal is None or traversal.status is not TraversalStatus.CANCELLING:
        return Decision(None)
    if traversal.deadline > view.now and any(row.status is Status.IN_PROGRESS for row in view.resources):
        return Decision(None)
    return cancel_stack(view, new_id)


def stop(stack: Stack, traversal: Traversal, reason: str, now: float, new_id: Callable[[], str]) -> list[Effect]:
    """Put the stack into the failed state of its traversal's action."""
    state = states.stack_state(stack, traversal.action, Status.FAILED, reason)
    event = Event.of_stack(new_id(), stack.id, traversal.action, Status.FAILED, reason, now)
    changes: StackChange = {**state, 'updated_at': now}
    return [UpdateStack(stack.id, traversal.id, changes), InsertEvents((event,)), *nesting.parent_told(stack)]
