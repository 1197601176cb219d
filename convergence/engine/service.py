"""The engine of one process: the operations that callers reach by name, its heartbeat and its sweeper."""

from __future__ import annotations

from collections.abc import Iterable

from convergence import errors
from convergence.engine.sweeper.sweeper import Sweeper
from convergence.engine.traversals.traversals import Traversals
from convergence.heartbeat import LAST_S, Heartbeat
from convergence.rpc.operations import OPERATIONS


class EngineService:
    """All operations of an engine, each performed by the part that has a method of that name.

    :param parts: objects whose methods are named like operations; one part has each operation.
    :raises ConfigurationError: two parts have the same operation, or none has it.
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
        """Settle a traversal that a worker has reported as failed."""
        self._traversals.settle(stack_id, traversal_id)

    def drifted(self, context: object, stack_id: str) -> None:
        """Begin repairs: an observer has found drift."""
        self._sweeper.repair()

    def start(self) -> None:
        """Register the engine, and start the sweeper."""
        self._heartbeat.start()
        self._sweeper.start()

    def stop(self) -> None:
        """Stop the sweeper, and remove the engine from the roster."""
        self._sweeper.stop()
        self._sweeper.wait(LAST_S)
        self._heartbeat.stop()
