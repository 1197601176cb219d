"""Calls of simulated workers to engines about nested stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from convergence.documents import Document
from convergence.engine.reads.nested_values import NestedReads
from convergence.errors import NoAnswer
from convergence_simulator.world.place import AnEngine

if TYPE_CHECKING:
    from convergence.db.ports import ReaderPort
    from convergence_simulator.world.world import World


class AskedEngines:
    """The engine API that a worker calls; each call goes to any of the engines.

    :param reader: reads rows for the calls that only read.
    """

    def __init__(self, reader: ReaderPort) -> None:
        self._reader = reader

    def _asking(self) -> AbstractContextManager[AnEngine]:
        """Return a context manager that gives the engine for one call.

        :raises NoAnswer: the request or the answer is lost.
        """
        raise NotImplementedError

    def act_on_nested_stack(
        self, context: Any, resource_id: str, fence: int, step: int = 0, node: int | None = None, ends: Any = None
    ) -> dict[str, Any]:
        """See `convergence.engine.nesting.operations`."""
        with self._asking() as engine:
            nesting = engine.parts.nesting
            answer: dict[str, Any] = nesting.act_on_nested_stack(context, resource_id, fence, step, node, ends)
        return answer

    def act_on_nested_stacks(self, context: Any, asked: Sequence[Document]) -> Sequence[Document | None]:
        """See `convergence.engine.nesting.operations`."""
        with self._asking() as engine:
            return engine.parts.nesting.act_on_nested_stacks(context, asked)

    def cancel_nested_stack(self, context: Any, resource_id: str, fence: int) -> None:
        """See `convergence.engine.nesting.operations`."""
        with self._asking() as engine:
            engine.parts.nested_stops.cancel_nested_stack(context, resource_id, fence)

    def delete_nested_snapshot(self, context: Any, stack_id: str, snapshot_id: str) -> None:
        """See `convergence.engine.nesting.snapshots`."""
        with self._asking() as engine:
            engine.parts.nesting.snapshots.delete_nested_snapshot(context, stack_id, snapshot_id)

    def read_nested_stack(self, context: Any, stack_id: str) -> dict[str, Any]:
        """See `convergence.engine.reads.nested_values`."""
        with self._asking() as engine:
            return NestedReads(self._reader, engine.parts.compiler).read_nested_stack(context, stack_id)


class SimulatedEngines(AskedEngines):
    """The engines of a world. Requests and answers may be lost."""

    def __init__(self, world: World) -> None:
        super().__init__(world.reader)
        self._world = world

    @override
    @contextmanager
    def _asking(self) -> Iterator[AnEngine]:
        world = self._world
        world.kernel.pause('ask an engine')
        self._lose('the request')
        yield world.engines[world.choices.pick(len(world.engines))]
        self._lose('the answer')
        world.kernel.pause('answer of an engine')

    def _lose(self, what: str) -> None:
        world = self._world
        lost = world.faults.drop and world.choices.happens(world.faults.drop)
        if lost or world.trouble.broker_is_away:
            world.trouble.happened()
            raise NoAnswer(f'{what} is lost')
