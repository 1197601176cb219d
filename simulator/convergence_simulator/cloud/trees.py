"""Nested stacks: the resource type whose objects are stacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from typing_extensions import override

from convergence.core.model import Json
from convergence.core.rows import Resource, Stack
from convergence.resources.attributes import AnyAttribute
from convergence.resources.contract import Call
from convergence.resources.nested import NestedType
from convergence.resources.nesting import DesiredStack, NestingContext
from convergence_simulator.cloud.things import ThingProperties

if TYPE_CHECKING:
    from convergence_simulator.memory.look import Tables

STACK = 'Convergence::Simulated::Stack'
GROUP = 'Convergence::Simulated::Group'
COUNTED = 'Convergence::Simulated::CountedGroup'
POLICY = 'Convergence::Simulated::Policy'
NESTING = frozenset({STACK, GROUP, COUNTED})
"""The types whose objects are stacks."""
TEMPLATE = 'template'
"""Property with the template of a nested stack as text. References in it are inside the nested stack."""
FOR_EVER_S = 1e6
"""A time, in seconds, that is longer than any run."""


class SimulatedStack(NestedType[ThingProperties]):
    """A nested stack. Its other properties only make it depend on the resources to which they refer."""

    Properties = ThingProperties
    Attributes = AnyAttribute
    untold_s = FOR_EVER_S  # no poll without a notification: a run has to notice a lost one

    @override
    def wanted(self, call: Call[ThingProperties], context: NestingContext) -> DesiredStack:
        """Return the template of the nested stack."""
        document: dict[str, Json] = json.loads(str(call.properties.values[TEMPLATE]))
        return DesiredStack(document)

    @override
    def attribute(self, call: Call[ThingProperties], name: str) -> Json:
        """Return the property of this name."""
        return call.properties.values.get(name)


def child_of(tables: Tables, row: Resource) -> Stack | None:
    """Return the stack that is the object of a row, unless it is deleted."""
    if row.type not in NESTING or row.token is None:
        return None
    stack = tables.stack.get(row.token)
    return stack if stack is not None and stack.deleted_at is None else None


def children(tables: Tables, stack_id: str) -> Mapping[str, Stack]:
    """Return the nested stacks that are not deleted, by the names of their resources."""
    rows = [row for row in tables.resource.values() if row.stack_id == stack_id]
    return {row.name: child for row in rows if (child := child_of(tables, row)) is not None}
