"""Messages between the processes of a world. None of them is sure to arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from convergence_simulator.world.world import World

LOST = 'nobody'
"""Who gets a message that is lost, in a story."""


@dataclass(eq=False, slots=True)
class MessageInFlight:
    """A message in flight."""

    kind: str
    traversal_id: str
    number: int = -1
    stack_id: str = ''
    hops: int = 0

    @override
    def __str__(self) -> str:
        return f'{self.kind} {self.number}' if self.kind == 'check_resource' else self.kind


class SimulatedMessenger:
    """The network, as a dispatcher and a worker use it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def can_send(self) -> bool:
        """As far as can be told."""
        return not self._world.trouble.broker_is_away

    def check_resource(self, traversal_id: str, node: int, hops: int = 0) -> bool:
        """Somebody should look at this node."""
        return self._world.send(MessageInFlight('check_resource', traversal_id, node, hops=hops))

    def check_resources(self, traversal_id: str, nodes: Sequence[int]) -> bool:
        """The same of some nodes, each on a way of its own: one may be lost, and another doubled."""
        sent = [self.check_resource(traversal_id, node) for node in nodes]
        return all(sent)

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Everybody should stop working on this traversal."""
        return self._world.send(MessageInFlight('cancel', traversal_id, stack_id=stack_id))

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """A node of the traversal has failed."""
        return self._world.send(MessageInFlight('settle', traversal_id, stack_id=stack_id))
