"""Stacks in stacks: the resource type whose objects are stacks, and how workers ask engines about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from convergence.core.model import Json
from convergence.core.rows import Resource, Stack
from convergence.documents import Document
from convergence.engine.reads.nested_values import NestedReads
from convergence.errors import NoAnswer
from convergence.resources.attributes import AnyAttribute
from convergence.resources.contract import Call
from convergence.resources.nested import NestedType
from convergence.resources.nesting import DesiredStack, NestingContext
from convergence_simulator.things import ThingProperties

if TYPE_CHECKING:
    from convergence.db.ports import ReaderPort
    from convergence_simulator.memory.look import Tables
    from convergence_simulator.place import AnEngine
    from convergence_simulator.world import World

STACK = 'Convergence::Simulated::Stack'
GROUP = 'Convergence::Simulated::Group'
COUNTED = 'Convergence::Simulated::CountedGroup'
POLICY = 'Convergence::Simulated::Policy'
NESTING = frozenset({STACK, GROUP, COUNTED})
"""The types whose objects are stacks."""
TEMPLATE = 'template'
"""The property that says what is in a nested stack, as text: what it refers to is inside of it."""
FOR_EVER_S = 1e6
"""A time, in seconds, that no run lasts."""


class SimulatedStack(NestedType[ThingProperties]):
    """A stack. Its other properties make it depend on what they refer to, and are nothing else."""

    Properties = ThingProperties
    Attributes = AnyAttribute
    untold_s = FOR_EVER_S  # nobody looks who was not told: that news is lost is found out about

    @override
    def wanted(self, call: Call[ThingProperties], context: NestingContext) -> DesiredStack:
        """What its template says."""
        document: dict[str, Json] = json.loads(str(call.properties.values[TEMPLATE]))
        return DesiredStack(document)

    @override
    def attribute(self, call: Call[ThingProperties], name: str) -> Json:
        """Attributes mirror properties."""
        return call.properties.values.get(name)


class AskedEngines:
    """Any engine, as a worker asks it.

    :param reader: of rows, for whatever only reads.
    """

    def __init__(self, reader: ReaderPort) -> None:
        self._reader = reader

    def _asking(self) -> AbstractContextManager[AnEngine]:
        """Around a question: the engine that is asked this time.

        :raises NoAnswer: the question is lost, or the answer.
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
            engine.parts.nesting.cancel_nested_stack(context, resource_id, fence)

    def delete_nested_snapshot(self, context: Any, stack_id: str, snapshot_id: str) -> None:
        """See `convergence.engine.nesting.snapshots`."""
        with self._asking() as engine:
            engine.parts.nesting.snapshots.delete_nested_snapshot(context, stack_id, snapshot_id)

    def read_nested_stack(self, context: Any, stack_id: str) -> dict[str, Any]:
        """See `convergence.engine.reads.nested_values`."""
        with self._asking() as engine:
            return NestedReads(self._reader, engine.parts.compiler).read_nested_stack(context, stack_id)


class SimulatedEngines(AskedEngines):
    """The engines of a world. The question may be lost, and so may the answer."""

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


def child_of(tables: Tables, row: Resource) -> Stack | None:
    """The stack that is the object of a row, if it lives."""
    if row.type not in NESTING or row.token is None:
        return None
    stack = tables.stack.get(row.token)
    return stack if stack is not None and stack.deleted_at is None else None


def children(tables: Tables, stack_id: str) -> Mapping[str, Stack]:
    """The living stacks that are nested in one, by the names of the resources that they are."""
    rows = [row for row in tables.resource.values() if row.stack_id == stack_id]
    return {row.name: child for row in rows if (child := child_of(tables, row)) is not None}
