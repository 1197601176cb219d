"""While the broker does not take a message, the worker that would have sent it sees to the node itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convergence.dispatch import Messenger


class LocalFallback:
    """Sends to the workers; a check that cannot be sent is handed to this one.

    :ivar run_locally: takes a check, where there is room for it; whether there was.
    """

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self.run_locally: Callable[[str, int], bool] = _nobody

    def check_resource(self, traversal_id: str, node: int, hops: int = 0) -> bool:
        """Somebody should look at this node: another worker, or this one."""
        return self._messenger.check_resource(traversal_id, node, hops) or self.run_locally(traversal_id, node)

    def check_resources(self, traversal_id: str, nodes: Sequence[int]) -> bool:
        """The same of some nodes of one traversal."""
        if self._messenger.check_resources(traversal_id, nodes):
            return True
        taken = [self.run_locally(traversal_id, node) for node in nodes]
        return all(taken)

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Everybody should stop working on this traversal. Whoever does not hear it sees it in the rows."""
        return self._messenger.cancel(stack_id, traversal_id)

    def can_send(self) -> bool:
        """Whether a message would go out now, as far as can be told."""
        return self._messenger.can_send()


def _nobody(traversal_id: str, node: int) -> bool:
    return False
