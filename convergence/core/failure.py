"""What a failure, a time limit or a cancel means for a traversal and its stack."""

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
"""How many resources are named; who has more to wait for needs their number."""

_OF_NESTED = re.compile(r'Resource [A-Z]+ failed: (?P<kind>[A-Z]\w+: )?resources\.')
_KIND = re.compile(r'[A-Z]\w+: ')


class Outcome(StrEnum):
    """What is to be done about a stack whose traversal has ended early."""

    NOTHING = 'NOTHING'
    FAIL = 'FAIL'
    ROLL_BACK = 'ROLL_BACK'


PATH = 'resources.'
"""What a path to a resource begins with."""


def led_to(name: str, said: str, of_type: str = '') -> str:
    """What is said of something inside of a resource: ``resources.web.resources.server: why``. A path is told once.

    :param of_type: the type of the resource, which is told where the path ends with it.
    """
    if said.startswith(PATH):
        return f'{PATH}{name}.{said}'
    return f'{PATH}{name} ({of_type}): {said}' if of_type else f'{PATH}{name}: {said}'


def stack_reason(action: Action, name: str, reason: str) -> str:
    """What is said of a stack in which a resource has failed: ``Resource CREATE failed: ValueError: resources.a: why``.

    The name of an exception that the reason of the resource begins with goes before the path, and a path into a nested
    stack is one path: clients of the field compare these texts.
    """
    if _OF_NESTED.match(reason):
        return _OF_NESTED.sub(
            lambda inner: f'Resource {action} failed: {inner["kind"] or ""}resources.{name}.resources.', reason
        )
    kind = _KIND.match(reason)
    before = kind[0] if kind else ''
    return f'Resource {action} failed: {before}{led_to(name, reason.removeprefix(before))}'


def node_failed(traversal: Traversal, node: Node, action: Action, name: str, reason: str, now: float) -> list[Effect]:
    """A node of the current traversal has failed: no other may start. The first failure is the root cause."""
    text = stack_reason(action, name, reason)
    return [
        EndTraversal(traversal.id, TraversalStatus.FAILED, now, text, node.phase, name),
        FailNode(node.traversal_id, node.number),
    ]


def goes_on(traversal: Traversal | None) -> bool:
    """Whether the other nodes of a traversal are visited although one has failed: a check looks at everything."""
    return traversal is not None and traversal.action is Action.CHECK


def noted(traversal: Traversal, action: Action, name: str, reason: str) -> Effect:
    """A node has failed, and the traversal goes on; it will have failed when everything has been visited."""
    return NoteFailure(traversal.id, name, stack_reason(action, name, reason))


def after(traversal: Traversal | None, name: str) -> str:
    """What is said of a resource that fails, or is stopped, when another one of its traversal has failed before."""
    if traversal is None or goes_on(traversal) or traversal.failed_name in (None, name):
        return ''
    return f' (after {traversal.failed_name} had failed)'


def outcome(stack: Stack, traversal: Traversal | None) -> Outcome:
    """What is to be done, now that something has failed.

    A cleanup that fails, or takes too long, never rolls back: that would make again what has just been removed. Neither
    does the failure of a rollback or of a delete. Rolling back twice for one failure is impossible: the rollback is a
    new traversal.
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
    """The template to which a rollback leads that a user asks for; None: there is none.

    While the goal is not in service that is the last good one; else the one before that. A rollback makes the template
    that it comes from the one before: asked for again, it leads back there.
    """
    undone = stack.action is Action.DELETE or (stack.action, stack.status) == (Action.ROLLBACK, Status.FAILED)
    if undone or stack.template_id != stack.last_good_template_id:
        return stack.last_good_template_id
    return stack.previous_good_template_id


def nobody_waits_for(traversal: Traversal | None) -> bool:
    """Whether the next traversal does not wait for what this one has left in the middle: it was cancelled, or late.

    Those who were at it may not have been told yet.
    """
    if traversal is None:
        return False
    late = traversal.status is TraversalStatus.FAILED and traversal.failed_phase is None
    return late or traversal.status is TraversalStatus.CANCELLED


def timed_out(traversal: Traversal, now: float, waited_for: str = '') -> EndTraversal:
    """A traversal is past its deadline.

    :param waited_for: the names of what it has waited for.
    """
    reason = f'{traversal.action} timed out' + (f', waiting for {waited_for}' if waited_for else '')
    return EndTraversal(traversal.id, TraversalStatus.FAILED, now, reason, None)


def fail_stack(view: PlanView, new_id: Callable[[], str], no_way_back: str = '') -> Decision[Outcome]:
    """Put the stack into the failed state of its traversal's action, if that is what has to be done.

    :param no_way_back: why a rollback that has to be done cannot be; then the stack fails instead.
    """
    stack, traversal = view.stack, view.traversal
    wanted = outcome(stack, traversal) if stack is not None else Outcome.NOTHING
    fails = wanted is Outcome.FAIL or (wanted is Outcome.ROLL_BACK and bool(no_way_back))
    if stack is None or traversal is None or not fails:
        return Decision(Outcome.NOTHING)
    impossible = wanted is Outcome.ROLL_BACK
    reason = f'{traversal.reason}; it cannot be rolled back: {no_way_back}' if impossible else traversal.reason
    if traversal.repair_attempt:
        reason = f'{reason}; {traversal.cause}'  # nobody has asked for it: it says why, and whether it is tried again
    return Decision(Outcome.FAIL, tuple(stop(stack, traversal, reason, view.now, new_id)))


def cancel_stack(view: PlanView, new_id: Callable[[], str]) -> Decision[str | None]:
    """Stop the running traversal without a rollback.

    :returns: as the verdict, the traversal that was stopped; None where nothing was running.
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
    """What a cancel came to.

    :param traversal_id: the traversal that it is about; empty where nothing was running.
    :param deadline: what runs has until then to come to its end; None: the traversal is over.
    """

    traversal_id: str = ''
    deadline: float | None = None


def cancel_patiently(
    view: PlanView, new_id: Callable[[], str], until: float, moment: Callable[[float], str]
) -> Decision[Cancelled]:
    """Begin nothing more, and let what runs come to its end; where nothing runs, the traversal is over.

    :param view: the whole stack: with all rows locked, nobody is just about to begin something.
    :param until: by then it has to be over. A cancel that goes on already keeps its time.
    :param moment: writes a time for people.
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
    told = cancelling(traversal.action, running, moment(until))
    return Decision(
        Cancelled(traversal.id, until),
        (
            UpdateStack(stack.id, traversal.id, {'status_reason': told}),
            BeginCancel(traversal.id, until),
            InsertEvents((Event.of_stack(new_id(), stack.id, traversal.action, Status.IN_PROGRESS, told, view.now),)),
        ),
    )


def cancelling(action: Action, names: Sequence[str], until: str) -> str:
    """What is told of a traversal that is being cancelled.

    :param names: of what it waits for.
    """
    return f'Stack {action} cancelling: waits for {listed(names)} until {until}'


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = f' and {len(names) - NAMED} more' if len(names) > NAMED else ''
    return ', '.join(names[:NAMED]) + more


def end_cancel(view: PlanView, new_id: Callable[[], str]) -> Decision[str | None]:
    """End a traversal that is being cancelled, if nothing of it runs any more or its time is over.

    :param view: the whole stack.
    :returns: as the verdict, the traversal that has ended now.
    """
    traversal = view.traversal
    if traversal is None or traversal.status is not TraversalStatus.CANCELLING:
        return Decision(None)
    if traversal.deadline > view.now and any(row.status is Status.IN_PROGRESS for row in view.resources):
        return Decision(None)
    return cancel_stack(view, new_id)


def stop(stack: Stack, traversal: Traversal, reason: str, now: float, new_id: Callable[[], str]) -> list[Effect]:
    """The stack is in the failed state of its traversal's action from now on."""
    state = states.stack_state(stack, traversal.action, Status.FAILED, reason)
    event = Event.of_stack(new_id(), stack.id, traversal.action, Status.FAILED, reason, now)
    changes: StackChange = {**state, 'updated_at': now}
    return [UpdateStack(stack.id, traversal.id, changes), InsertEvents((event,)), *nesting.parent_told(stack)]
