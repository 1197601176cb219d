"""A worker that lost its row has made something nevertheless. Nothing real may be lost sight of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from convergence.core.check import Claim
from convergence.core.effects import Decision, InsertResources, UpdateResource
from convergence.core.model import Action, Status
from convergence.core.views import PlanView


def keep_track(view: PlanView, claim: Claim, physical_id: str, new_id: Callable[[], str]) -> Decision[bool]:
    """Make sure that some row knows a physical object whose id could not be written under the claim.

    The row that it was made for takes it in, if it is free and knows of no object. Whoever holds that row without
    knowing of one looks for it by its token. In every other case it gets a row of its own, as a leftover, which the
    next operation on the stack removes.

    :param view: the whole stack.
    :returns: as the verdict, whether the object is known now; False where the stack is not there any more.
    """
    stack = view.stack
    if stack is None or stack.deleted_at is not None:
        return Decision(False)
    if any(row.physical_id == physical_id for row in view.resources):
        return Decision(True)
    made_for = next((row for row in view.resources if row.id == claim.resource.id), None)
    if made_for is not None and made_for.physical_id is None:
        if made_for.owner is not None:
            return Decision(True)
        changes = {'physical_id': physical_id}
        return Decision(True, (UpdateResource(made_for.id, None, made_for.fence, changes),))
    leftover = replace(
        claim.resource,
        id=new_id(),
        action=Action.CREATE,
        status=Status.FAILED,
        status_reason='made by a worker that had lost the resource to another one',
        physical_id=physical_id,
        pending=None,
        output=None,
        digest=None,
        replaces=None,
        replaced_by=None,
        template_id=None,
        owner=None,
        fence=0,
        progress=None,
        wake_at=None,
        created_at=view.now,
        updated_at=None,
    )
    return Decision(True, (InsertResources((leftover,)),))
