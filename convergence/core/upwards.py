"""What the end of a nested stack means for the resource whose object it is: mostly that the resource is done as well.

Where that is known before, the transaction that brings the stack to rest finishes the resource, too. Else it wakes the
resource, and a worker looks (`convergence.core.nesting`).
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
"""What of the progress of an action names the traversal, of the stack around, whose node is done with it.

It is there where nothing is left to be done but to see that the nested stack has come to its end."""

TELLS = 'tells'
"""What of the progress of an action is the output that the resource has then, where that was known before."""

_TELLS_NOTHING = frozenset({Action.DELETE, Action.SUSPEND, Action.RESUME})
"""Actions whose success tells others nothing."""


def progress_towards(traversal_id: str, action: Action, output: Mapping[str, Json] | None) -> dict[str, Json]:
    """What is kept, besides, of an action that is over when the nested stack has come to its end.

    :param traversal_id: of the stack around.
    :param output: what the resource tells then, as `Output.document` has it; None where that is not known before.
    :returns: nothing, where somebody has to look.
    """
    if action in _TELLS_NOTHING:
        return {FOR: traversal_id}
    if action in (Action.CREATE, Action.UPDATE) and output is not None:
        return {FOR: traversal_id, TELLS: {**output}}
    return {}


def is_awaited(row: Resource, nested_id: str, traversal_id: str) -> bool:
    """Whether a resource waits for nothing but the end of what its nested stack does.

    :param traversal_id: what that is.
    """
    progress = row.progress or {}
    waits = row.owner is None and row.status is Status.IN_PROGRESS and row.token == nested_id
    return waits and progress.get('traversal') == traversal_id and progress.get(FOR) == row.traversal_id


def finish_around(view: FinishView, stack: Stack, traversal: Traversal, worker: Worker) -> Decision[End] | None:
    """What becomes true of a resource when its nested stack has come to the end of what was wanted of it.

    :param view: of the resource, locked, with its node in the current traversal of the stack around.
    :param stack: the nested one, with what it has been doing.
    :param worker: whoever has brought it to its end.
    :returns: None where somebody has to look.
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
    """Whether the node is the one that the action was begun for, and nothing else is to be seen to."""
    assert view.traversal is not None
    is_same = row.traversal_id == view.traversal.id and node.resource_id == row.id
    if row.action in PERFORMED:
        is_same &= row.action is view.traversal.action  # what is only resumed for an update is not done by that
    else:
        is_same &= (node.phase is Phase.CLEANUP) is (row.action is Action.DELETE)
    is_late = row.deadline is not None and row.deadline <= view.now
    is_simple = row.handover is None and row.retry is None and row.data.get(ADOPTED) is None
    is_simple &= not row.damaged and not node.damaged
    return is_same and is_simple and not is_late and view.is_running and node.status is NodeStatus.READY
