"""Hooks: points at which an operation pauses for the user.

A paused row is free, its node stays ready, and no worker claims it until a user clears the hook. A cleared hook counts
for its traversal only: the next traversal pauses again. Rollbacks and the cleanup of leftovers do not pause.
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
"""The operations in which a resource pauses when it is created or changed."""
_PAUSED_UNCHANGED = frozenset({Action.UPDATE, Action.RESTORE})
"""The operations in which a resource pauses at ``pre-update`` even if it does not change."""
AFTER = frozenset({Hook.POST_CREATE, Hook.POST_UPDATE})


def pause_before(view: NodeView, worker: Worker, resource: Resource, action: Action) -> Decision[StepDecision] | None:
    """Pause the row before an action if the definition has a hook for it that was not cleared in this traversal.

    :param action: the action that is about to begin: CREATE, UPDATE or DELETE.
    :returns: None if the action may begin.
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
    """Return True if an operation pauses at ``pre-update`` even if the resource does not change."""
    return action in _PAUSED_UNCHANGED


def hook_after(view: FinishView, claim: Claim) -> Hook | None:
    """Return the hook at which the row pauses after its action has succeeded, before its node is done; None: none."""
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
    """Dispatch the next node of the backlog although this node is not done.

    Return the effects with the notification, and the node to dispatch after the commit.
    """
    node = claim.node
    if node.next_in_backlog is None or claim.step is Step.RESUME:
        return tuple(effects), ()
    follower = (node.traversal_id, node.next_in_backlog)
    return (*effects, NotifyNode(*follower)), (follower,)


def is_past_the_last(resource: Resource, traversal: Traversal) -> bool:
    """Return True if the row is complete, was paused after that, and the hook is cleared."""
    passed = any(resource.has_passed(hook, traversal.id) for hook in AFTER)
    return passed and resource.status is Status.COMPLETE and resource.hook in AFTER


def is_gone(resource: Resource, traversal: Traversal) -> bool:
    """Return True if the row's object was deleted, the row was paused after that, and can be removed now."""
    return resource.hook is Hook.POST_DELETE and resource.has_passed(Hook.POST_DELETE, traversal.id)


def at(hook: Hook, traversal_id: str) -> ResourceChange:
    """Return the columns of a row that pauses."""
    return {'hook': hook, 'hook_traversal_id': traversal_id}


def paused(hook: Hook) -> str:
    """Return the text of the event for a row that pauses."""
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
    """Return True if the creation of the object is not a part of an update.

    While a stack is created there are no updates: a row that replaces another one repeats a failed creation.
    """
    return resource.replaces is None or traversal.action is Action.CREATE


def _is_wanted(traversal: Traversal, definition: Definition | None, resource: Resource, hook: Hook) -> bool:
    if hook in (Hook.PRE_DELETE, Hook.POST_DELETE):
        definition = resource.definition
        applies = traversal.action is Action.DELETE and resource.replaced_by is None
    else:
        applies = traversal.action in _PAUSED
    return applies and definition is not None and hook in definition.hooks
