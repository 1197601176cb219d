"""Objects without a row: an object that a worker created after it lost the claim, and objects left behind on request.

An object that some row must know gets a row of its own, a leftover, which the next cleanup deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import StrEnum

from convergence.core import nesting
from convergence.core.changes import ResourceChange
from convergence.core.claim import NO_NODE, Claim
from convergence.core.effects import (
    AppendCleanup,
    Decision,
    DeleteResource,
    Effect,
    InsertEvents,
    InsertResources,
    UpdateResource,
)
from convergence.core.model import UNDER_WAY, Action, NodeStatus, Phase, Status, TraversalStatus
from convergence.core.object_state import object_of
from convergence.core.rows import Event, Node, Resource, Traversal
from convergence.core.views import PlanView
from convergence.values import replace

LATE = 'made by a worker that had lost the resource to another one'
"""Why there is the row of a leftover."""


class Tracking(StrEnum):
    """What became of an object whose id could not be written under the claim.

    * `KNOWN`: some row knows it. `HELD`: the row it was made for is held by somebody who may find it: look again.
    * `LEFT`: it stays, because whoever deleted the stack has asked for that; an event names it.
    * `LOST`: the stack is not there any more.
    """

    KNOWN = 'KNOWN'
    HELD = 'HELD'
    LEFT = 'LEFT'
    LOST = 'LOST'


def keep_track(view: PlanView, claim: Claim, physical_id: str | None, new_id: Callable[[], str]) -> Decision[Tracking]:
    """Make sure that some row knows a physical object.

    The row that it was made for takes it in, if it is free, knows of no object and still means this creation: not
    another one that was begun since, and not none at all, because the database has lost the claim. While that row is
    held nothing can be decided: its holder may find the object by its token, or give up. In every other case the object
    gets a row of its own, as a leftover, which is cleaned up by the traversal that runs, or by the next one: before
    what it was built on, as far as that has not been begun. Only where the row was removed in order to leave its object
    behind nothing becomes of the object: the user learns its id. Two types may use the same id for two objects.

    An object without an id is known by the token under which it was made: whoever cleans up the row that has it finds
    the object, or tells that it cannot be known.

    :param view: the whole stack.
    :param physical_id: of the object; None where its type gives it none, or has not yet.
    """
    stack = view.stack
    if stack is not None and view.traversal is not None and claim.resource.id in view.traversal.left_rows:
        event = left_behind_event(replace(claim.resource, physical_id=physical_id), view.now, new_id)
        return Decision(Tracking.LEFT, (InsertEvents((event,)),))
    if stack is None or stack.deleted_at is not None:
        return Decision(Tracking.LOST)
    if any(_knows(row, claim, physical_id) for row in view.resources):
        return Decision(Tracking.KNOWN)
    made_for = next((row for row in view.resources if row.id == claim.resource.id), None)
    if made_for is not None and made_for.physical_id is None:
        if (made_for.owner, made_for.fence) == (claim.resource.owner, claim.resource.fence):
            # It was only a server that lags who did not show it to its own holder: the row goes on from here.
            freed: ResourceChange = {'physical_id': physical_id, 'owner': None, 'fence': made_for.fence + 1}
            write = UpdateResource(made_for.id, made_for.owner, made_for.fence, freed)
            return Decision(Tracking.KNOWN, (write,), _node_of(view, claim))
        if made_for.owner is not None and physical_id is not None:
            return Decision(Tracking.HELD)
        if made_for.token == claim.resource.token:
            changes: ResourceChange = {'physical_id': physical_id}
            return Decision(Tracking.KNOWN, (UpdateResource(made_for.id, None, made_for.fence, changes),))
    leftover = _leftover(view, claim, physical_id, new_id())
    effects: list[Effect] = [InsertResources((leftover,)), *nesting.doubted(stack)]
    traversal = view.traversal
    if traversal is None or traversal.status is not TraversalStatus.RUNNING:
        return Decision(Tracking.KNOWN, tuple(effects))
    cleanup = _cleanup(traversal, leftover)
    return Decision(Tracking.KNOWN, (*effects, cleanup), ((cleanup.node.traversal_id, cleanup.node.number),))


def _cleanup(traversal: Traversal, leftover: Resource) -> AppendCleanup:
    """Have a leftover cleaned up by a traversal that runs, at once."""
    node = Node(
        traversal_id=traversal.id,
        number=traversal.node_count,
        phase=Phase.CLEANUP,
        status=NodeStatus.READY,
        name=leftover.name,
        resource_id=leftover.id,
        required_by=(traversal.complete_number,),
    )
    # What it was built on may yet be replaced: that goes when everything wanted is in service, and this before.
    return AppendCleanup(node, traversal.complete_number, leftover.requires, holds_up=traversal.in_service_number)


def _knows(row: Resource, claim: Claim, physical_id: str | None) -> bool:
    """Whether a row stands for an object. By its token only one that nobody holds under the claim itself does."""
    if physical_id is not None:
        return row.physical_id == physical_id and row.type == claim.resource.type
    is_own = (row.id, row.owner, row.fence) == (claim.resource.id, claim.resource.owner, claim.resource.fence)
    return row.token == claim.resource.token and not is_own


def _node_of(view: PlanView, claim: Claim) -> tuple[tuple[str, int], ...]:
    """The node that the row was claimed for, to be cast again; none where it belongs to no traversal that runs."""
    traversal, node = view.traversal, claim.node
    runs = traversal is not None and traversal.status in UNDER_WAY and traversal.id == node.traversal_id
    return ((node.traversal_id, node.number),) if runs and node.number != NO_NODE else ()


def _leftover(view: PlanView, claim: Claim, physical_id: str | None, key: str) -> Resource:
    return replace(
        claim.resource,
        id=key,
        action=Action.CREATE,
        status=Status.FAILED,
        status_reason=LATE,
        physical_id=physical_id,
        nothing_made=False,
        pending=None,
        output=None,
        digest=None,
        replaces=None,
        replaced_by=None,
        handover=None,
        template_id=None,
        owner=None,
        fence=0,
        progress=None,
        wake_at=None,
        created_at=view.now,
        updated_at=None,
    )


MANY = 20
"""So many of them are named in the reason of a stack; the events name all."""


def summary(left: Sequence[Resource]) -> str:
    """All of them in one sentence; empty where there are none."""
    if not left:
        return ''
    ordered = sorted(left, key=lambda row: (row.name, row.id))
    named = ', '.join(f'{row.name} ({object_of(row)})' for row in ordered[:MANY])
    more = f' and {len(left) - MANY} more, see the events' if len(left) > MANY else ''
    return f'left behind: {named}{more}'


def leave(left: Sequence[Resource], now: float, new_id: Callable[[], str]) -> list[Effect]:
    """The rows go, whoever holds them, and an event tells of each. What a holder writes late is refused."""
    effects: list[Effect] = [DeleteResource(row.id, row.owner, row.fence) for row in left]
    events = tuple(left_behind_event(row, now, new_id) for row in left)
    return [*effects, InsertEvents(events)] if events else effects


def left_behind_event(row: Resource, now: float, new_id: Callable[[], str]) -> Event:
    """The event that says so of one of them."""
    reason = f'left behind, as was asked for: {object_of(row)}'
    return Event.of_resource(new_id(), row, Action.DELETE, Status.COMPLETE, reason, now)


def unknown(names: Collection[str], rows: Sequence[Resource]) -> list[str]:
    """Those of the names that no row has."""
    return sorted(set(names) - {row.name for row in rows})
