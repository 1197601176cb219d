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
"""Status reason of a leftover: the reason why the row exists."""


class Tracking(StrEnum):
    """The result for an object whose id could not be written under the claim.

    * `KNOWN`: a row names the object.
    * `HELD`: another worker has claimed the row of the creation and may find the object; the caller tries again later.
    * `LEFT`: the object stays, because the user requested that; an event names it.
    * `LOST`: the stack no longer exists, so no row can name the object.
    """

    KNOWN = 'KNOWN'
    HELD = 'HELD'
    LEFT = 'LEFT'
    LOST = 'LOST'


def keep_track(view: PlanView, claim: Claim, physical_id: str | None, new_id: Callable[[], str]) -> Decision[Tracking]:
    """Decide which row names an object that a worker created and could not record.

    The row of the creation gets the object if the row is free, names no object, and still has the token of this
    creation. It has another token if another creation has begun, or none if the database lost the claim. While another
    worker has claimed the row, the decision has to wait: that worker may find the object by its token, or fail.
    Otherwise the object gets a row of its own, a leftover. The running or the next traversal deletes it, before the
    objects that it depends on if their deletion has not begun. If the row was removed to leave its object behind, the
    object stays and an event reports its id. Two types may use the same id for two objects.

    The token of the creation identifies an object without an id. The worker that cleans up its row searches for the
    object by the token, or reports that it cannot search.

    :param view: the whole stack.
    :param physical_id: id of the object; None if its type gives it none, or has not yet.
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
            # The claim was not lost: a replica of the database that lags hid it. The row continues from here.
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
    """Add a node to the running traversal that deletes a leftover at once."""
    node = Node(
        traversal_id=traversal.id,
        number=traversal.node_count,
        phase=Phase.CLEANUP,
        status=NodeStatus.READY,
        name=leftover.name,
        resource_id=leftover.id,
        required_by=(traversal.complete_number,),
    )
    # The rows that the leftover depends on may still be replaced. They are deleted after the goal is in service, and
    # the leftover must be deleted before them.
    return AppendCleanup(node, traversal.complete_number, leftover.requires, holds_up=traversal.in_service_number)


def _knows(row: Resource, claim: Claim, physical_id: str | None) -> bool:
    """Return True if a row names an object. A token counts only in a row that is not under the claim itself."""
    if physical_id is not None:
        return row.physical_id == physical_id and row.type == claim.resource.type
    is_own = (row.id, row.owner, row.fence) == (claim.resource.id, claim.resource.owner, claim.resource.fence)
    return row.token == claim.resource.token and not is_own


def _node_of(view: PlanView, claim: Claim) -> tuple[tuple[str, int], ...]:
    """Return the node of the claim, to dispatch it again; empty if its traversal does not run any more."""
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
"""Maximum number of objects that the reason of a stack names, to keep it readable; the events name all."""


def summary(left: Sequence[Resource]) -> str:
    """Return one sentence that names the objects left behind; empty if there are none."""
    if not left:
        return ''
    ordered = sorted(left, key=lambda row: (row.name, row.id))
    named = ', '.join(f'{row.name} ({object_of(row)})' for row in ordered[:MANY])
    more = f' and {len(left) - MANY} more, see the events' if len(left) > MANY else ''
    return f'left behind: {named}{more}'


def leave(left: Sequence[Resource], now: float, new_id: Callable[[], str]) -> list[Effect]:
    """Delete rows whose objects are left behind, with an event for each.

    The rows are deleted even if a worker has claimed them; the database refuses its later writes.
    """
    effects: list[Effect] = [DeleteResource(row.id, row.owner, row.fence) for row in left]
    events = tuple(left_behind_event(row, now, new_id) for row in left)
    return [*effects, InsertEvents(events)] if events else effects


def left_behind_event(row: Resource, now: float, new_id: Callable[[], str]) -> Event:
    """Return the event that reports an object left behind."""
    reason = f'left behind, as requested: {object_of(row)}'
    return Event.of_resource(new_id(), row, Action.DELETE, Status.COMPLETE, reason, now)


def unknown(names: Collection[str], rows: Sequence[Resource]) -> list[str]:
    """Return the sorted names that no row has."""
    return sorted(set(names) - {row.name for row in rows})
