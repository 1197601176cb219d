"""The release of a claimed row by an engine.

A worker that claims the row of a nested stack's resource asks an engine to start an operation on that stack. From then
on the worker has nothing left to do in the row. So it offers the row with the request, and the transaction that plans
the operation parks it: this saves a commit, and no row is claimed while its stack works.

(To supersede an action that is under way is another thing: see "handover" in the glossary.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convergence.values import replace


@dataclass(frozen=True, slots=True)
class Handoff:
    """A claimed row that an engine may release, or has released, when the nested stack starts an operation.

    The worker's offer has no `traversal_id`. The answer of the engine carries the same value with that id and the
    nodes: then the claim is over, and the worker must write nothing under it.

    :param resource_id: id of the row, whose object is the nested stack.
    :param claimed_for: the node that the row is claimed for: traversal of the parent stack, and number.
    :param caller_dispatches: True if the worker dispatches the ready nodes of the nested stack. False: the engine does.
    :param traversal_id: id of the operation that the nested stack has started. Empty while the row is not released.
    :param nodes: numbers of ready nodes of that operation, which the worker has to dispatch.
    """

    resource_id: str
    claimed_for: tuple[str, int]
    caller_dispatches: bool = True
    traversal_id: str = ''
    nodes: tuple[int, ...] = ()

    @property
    def is_released(self) -> bool:
        """True if the engine has parked the row."""
        return bool(self.traversal_id)

    def released(self, traversal_id: str, nodes: Sequence[int]) -> Handoff:
        """The same row, released by the transaction that started an operation.

        :param nodes: numbers of its ready nodes; ignored unless the caller dispatches them.
        """
        return replace(self, traversal_id=traversal_id, nodes=tuple(nodes) if self.caller_dispatches else ())
