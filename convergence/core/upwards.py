"""Finishes the resource of a parent stack together with the nested stack that is its object.

If the action of the resource needs nothing but the end of the nested stack, the transaction that ends the nested stack
also finishes the resource. Otherwise that transaction wakes the resource, and a worker polls it
(`convergence.core.nesting`).
"""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.claim import Claim, Step, Worker
from convergence.core.effects import Decision
from convergence.core.finish import finish
from convergence.core.model import PERFORMED, Action, Json, NodeStatus, Output, Phase, Status
from convergence.core.object_state import ADOPTED
from convergence.core.results import End, Succeeded
from convergence.core.rows import Node, Resource, Stack, Traversal
from convergence.core.views import FinishView

FOR = 'for'
"""Key in the progress of an action: id of the traversal of the parent stack whose node the action finishes.

The key exists only if the action needs nothing but the end of the nested stack."""

TELLS = 'tells'
"""Key in the progress of an action: the output of the resource after the action, if it is known in advance."""

_TELLS_NOTHING = frozenset({Action.DELETE, Action.SUSPEND, Action.RESUME})
"""Actions that give the dependents of a resource no output."""


def progress_towards(traversal_id: str, action: Action, output: Mapping[str, Json] | None) -> dict[str, Json]:
    """Return the additional progress of an action that the end of the nested stack finishes.

    :param traversal_id: id of the traversal of the parent stack.
    :param output: output of the resource after the action, in the form of `Output.document`; None if it is not known in
        advance.
    :returns: an empty map if a worker has to poll the resource at the end.
    """
    if action in _TELLS_NOTHING:
        return {FOR: traversal_id}
    if action in (Action.CREATE, Action.UPDATE) and output is not None:
        return {FOR: traversal_id, TELLS: {**output}}
    return {}


def is_awaited(row: Resource, nested_id: str, traversal_id: str) -> bool:
    """Return True if a resource waits only for the end of a traversal of its nested stack.

    :param traversal_id: id of that traversal.
    """
    progress = row.progress or {}
    waits = row.owner is None and row.status is Status.IN_PROGRESS and row.token == nested_id
    return waits and progress.get('traversal') == traversal_id and progress.get(FOR) == row.traversal_id


def finish_around(view: FinishView, stack: Stack, traversal: Traversal, worker: Worker) -> Decision[End] | None:
    """Decide the end of a resource's action after its nested stack has reached the end of its traversal.

    :param view: the locked resource, with its node in the current traversal of the parent stack.
    :param stack: the nested stack.
    :param traversal: the traversal of the nested stack that has ended.
    :param worker: the worker that has ended it.
    :returns: None if a worker has to poll the resource.
    """
    row, node = view.resource, view.node
    if row is None or node is None or not is_awaited(row, stack.id, traversal.id) or not _is_plain(view, row, node):
        return None
    assert view.traversal is not None
    assert view.stack is not None
    told = (row.progress or {}).get(TELLS)
    output = Output.from_document(told) if isinstance(told, dict) else None
    claim = Claim(Step.RESUME, row.action, row, node, view.stack, view.traversal, pending=row.pending, at=view.now)
    return finish(view, claim, Succeeded(output, row.physical_id, row.data), worker)


def _is_plain(view: FinishView, row: Resource, node: Node) -> bool:
    """Return True if the action began for this node, and the row needs no other treatment."""
    assert view.traversal is not None
    is_same = row.traversal_id == view.traversal.id and node.resource_id == row.id
    if row.action in PERFORMED:
        is_same &= row.action is view.traversal.action  # an update that first resumes an object continues after that
    else:
        is_same &= (node.phase is Phase.CLEANUP) is (row.action is Action.DELETE)
    is_late = row.deadline is not None and row.deadline <= view.now
    is_simple = row.handover is None and row.retry is None and row.data.get(ADOPTED) is None
    is_simple &= not row.damaged and not node.damaged
    return is_same and is_simple and not is_late and view.is_running and node.status is NodeStatus.READY
