"""Hooks: places at which a person wants an operation to pause.

A row that is paused is free, its node stays ready, and nobody works on it until the hook is cleared. Hooks belong to a
traversal: the next one asks anew. A rollback is not paused, nor is what was left over by earlier operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from convergence.core.changes import ResourceChange
from convergence.core.claim import Claim, Step, StepDecision, Worker
from convergence.core.effects import Decision, Effect, InsertEvents, NotifyNode, UpdateResource
from convergence.core.model import Action, Definition, Hook, NodeStatus, Status
from convergence.core.rows import Resource, Traversal
from convergence.core.verdicts import event_of
from convergence.core.views import FinishView, NodeView

_PAUSED = frozenset({Action.CREATE, Action.UPDATE, Action.RESTORE})
"""The operations in which a resource pauses when it is made or changed."""
_PAUSED_UNCHANGED = frozenset({Action.UPDATE, Action.RESTORE})
"""The operations in which a resource pauses at ``pre-update`` whether anything of it changes or not."""
AFTER = frozenset({Hook.POST_CREATE, Hook.POST_UPDATE})


def pause_before(view: NodeView, worker: Worker, resource: Resource, action: Action) -> Decision[StepDecision] | None:
    """Pause the row before an action, if that is wanted and has not been done in this traversal; None: go on.

    :param action: what is about to begin: to make an object, to change it, to delete it.
    """
    hook = _before(view.traversal, resource, action)
    if not _is_wanted(view.traversal, view.node.definition, resource, hook):
        return None
    if resource.has_passed(hook, view.traversal.id):
        return None
    node = view.node
    event = event_of(view, worker, resource, resource.action, resource.status, paused(hook))
    effects = (
        UpdateResource(resource.id, None, resource.fence, at(hook, view.traversal.id)),
        InsertEvents((event,)),
    )
    if node.next_in_backlog is None:
        return Decision(StepDecision(Step.PAUSE), effects)
    follower = (node.traversal_id, node.next_in_backlog)
    return Decision(StepDecision(Step.PAUSE), (*effects, NotifyNode(*follower)), (follower,))


def pauses_at_all(action: Action) -> bool:
    """Whether an operation pauses at ``pre-update`` also where nothing changes."""
    return action in _PAUSED_UNCHANGED


def hook_after(view: FinishView, claim: Claim) -> Hook | None:
    """Where the row is to pause now that an action has succeeded, so that its node is not done; None: nowhere."""
    node, traversal = view.node, view.traversal
    if node is None or traversal is None or not view.is_running or node.status is not NodeStatus.READY:
        return None
    if claim.step in (Step.READ, Step.ADOPT) or not claim.completes_node:
        return None
    hook = _after(traversal, claim.resource, claim.action)
    if hook is None or not _is_wanted(traversal, node.definition, claim.resource, hook):
        return None
    return hook


def admit_next(claim: Claim, effects: Sequence[Effect]) -> tuple[tuple[Effect, ...], tuple[tuple[str, int], ...]]:
    """The node is not done, but a node behind the window need not wait for that: the effects, and whom to wake."""
    node = claim.node
    if node.next_in_backlog is None or claim.step is Step.RESUME:
        return tuple(effects), ()
    follower = (node.traversal_id, node.next_in_backlog)
    return (*effects, NotifyNode(*follower)), (follower,)


def is_past_the_last(resource: Resource, traversal: Traversal) -> bool:
    """Whether the row has been as wanted, was paused for that, and is to go on."""
    passed = any(resource.has_passed(hook, traversal.id) for hook in AFTER)
    return passed and resource.status is Status.COMPLETE and resource.hook in AFTER


def is_gone(resource: Resource, traversal: Traversal) -> bool:
    """Whether the row's object was deleted, the row was paused for that, and is to go as well."""
    return resource.hook is Hook.POST_DELETE and resource.has_passed(Hook.POST_DELETE, traversal.id)


def at(hook: Hook, traversal_id: str) -> ResourceChange:
    """The columns of a row that pauses."""
    return {'hook': hook, 'hook_traversal_id': traversal_id}


def paused(hook: Hook) -> str:
    """What is told of a row that pauses."""
    return f'{hook.partition("-")[2].upper()} paused until Hook {hook} is cleared'


def _before(traversal: Traversal, resource: Resource, action: Action) -> Hook:
    if action is Action.DELETE:
        return Hook.PRE_DELETE
    return Hook.PRE_CREATE if action is Action.CREATE and _is_new(traversal, resource) else Hook.PRE_UPDATE


def _after(traversal: Traversal, resource: Resource, action: Action) -> Hook | None:
    if action is Action.DELETE:
        return Hook.POST_DELETE
    if action is Action.CREATE and _is_new(traversal, resource):
        return Hook.POST_CREATE
    return Hook.POST_UPDATE if action in (Action.CREATE, Action.UPDATE) else None


def _is_new(traversal: Traversal, resource: Resource) -> bool:
    """Whether to make the object is no part of an update.

    While a stack is created nothing is updated: a row that replaces another one takes up a creation that went wrong.
    """
    return resource.replaces is None or traversal.action is Action.CREATE


def _is_wanted(traversal: Traversal, definition: Definition | None, resource: Resource, hook: Hook) -> bool:
    if hook in (Hook.PRE_DELETE, Hook.POST_DELETE):
        definition = resource.definition
        applies = traversal.action is Action.DELETE and resource.replaced_by is None
    else:
        applies = traversal.action in _PAUSED
    return applies and definition is not None and hook in definition.hooks
