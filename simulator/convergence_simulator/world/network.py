"""Messages between the processes of a world. Any message may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from convergence_simulator.world.world import World

LOST = '(lost)'
"""Recipient of a lost message in a story."""


@dataclass(eq=False, slots=True)
class MessageInFlight:
    """A message that was sent and is not delivered yet."""

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
        """Return False if the broker is away."""
        return not self._world.trouble.broker_is_away

    def check_resource(self, traversal_id: str, node: int, hops: int = 0) -> bool:
        """Send the message that a worker should check this node.

        Return False if the sender notices that it cannot be sent.
        """
        return self._world.send(MessageInFlight('check_resource', traversal_id, node, hops=hops))

    def check_resources(self, traversal_id: str, nodes: Sequence[int]) -> bool:
        """Send one such message for each node. Each travels separately: one may be lost, another delivered twice."""
        sent = [self.check_resource(traversal_id, node) for node in nodes]
        return all(sent)

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Send the message that all workers should stop working on this traversal."""
        return self._world.send(MessageInFlight('cancel', traversal_id, stack_id=stack_id))

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """Send the message that a node of the traversal has failed."""
        return self._world.send(MessageInFlight('settle', traversal_id, stack_id=stack_id))
