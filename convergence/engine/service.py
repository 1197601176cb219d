"""The engine of one process: the operations that callers reach by name, its heartbeat and its sweeper."""

from __future__ import annotations

from collections.abc import Iterable

from convergence import errors
from convergence.engine.sweeper.sweeper import Sweeper
from convergence.engine.traversals.traversals import Traversals
from convergence.heartbeat import LAST_S, Heartbeat
from convergence.rpc.operations import OPERATIONS


class EngineService:
    """All operations of an engine, each carried out by the part that has a method of that name.

    :param parts: objects whose methods are named like operations: each operation is offered by one of them.
    :raises ConfigurationError: two offer the same operation, or nobody offers one.
    """

    def __init__(self, parts: Iterable[object], traversals: Traversals, sweeper: Sweeper, heartbeat: Heartbeat) -> None:
        self._traversals = traversals
        self._sweeper = sweeper
        self._heartbeat = heartbeat
        for part in parts:
            for name in OPERATIONS:
                if not hasattr(part, name):
                    continue
                if hasattr(self, name):
                    raise errors.ConfigurationError(f'the operation {name} is offered twice')
                setattr(self, name, getattr(part, name))
        missing = sorted(name for name in OPERATIONS if not hasattr(self, name))
        if missing:
            raise errors.ConfigurationError(f'no part of the engine offers {", ".join(missing)}')

    def settle(self, context: object, stack_id: str, traversal_id: str) -> None:
        """A worker says that a traversal has failed."""
        self._traversals.settle(stack_id, traversal_id)

    def drifted(self, context: object, stack_id: str) -> None:
        """An observer says that it has found something changed that is to be put right."""
        self._sweeper.repair()

    def start(self) -> None:
        """Become known and begin to sweep."""
        self._heartbeat.start()
        self._sweeper.start()

    def stop(self) -> None:
        """End the sweeps and sign off."""
        self._sweeper.stop()
        self._sweeper.wait(LAST_S)
        self._heartbeat.stop()
