"""The resources of a stack and of the stacks nested in it, read by a constant number of statements for each level."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from convergence.core.rows import Resource, Stack
from convergence.db.repositories.reads.stacks import StackReader, in_service


@dataclass(frozen=True, slots=True)
class ShownMember:
    """A resource as it is shown.

    :param stack: the stack that contains it.
    :param parent_resource: name of the resource whose object that stack is; None if the stack is not nested.
    :param nested: the stack that is the object of this resource.
    """

    stack: Stack
    row: Resource
    parent_resource: str | None = None
    nested: Stack | None = None


@dataclass(frozen=True, slots=True)
class ShownTree:
    """A stack and its nested stacks, down to a requested depth.

    :param depth: number of levels of nested stacks that are shown.
    :param rows: for each shown stack the rows that are, or will be, in service, by name.
    :param nested: for each row the stack that is its object, also one level below the shown ones.
    """

    top: Stack
    depth: int
    parent_resource: str | None
    rows: Mapping[str, Mapping[str, Resource]]
    nested: Mapping[str, Stack]

    @classmethod
    def read(cls, reader: StackReader, top: Stack, depth: int) -> ShownTree:
        """Read it: the same few statements, however many stacks there are."""
        below = reader.nested_below(top.id, depth + 1)
        shown = [stack for stack in below if stack.nested_depth - top.nested_depth <= depth]
        by_stack: dict[str, list[Resource]] = {stack.id: [] for stack in (top, *shown)}
        for row in (*reader.resources(top.id), *reader.resources_of_stacks([stack.id for stack in shown])):
            by_stack[row.stack_id].append(row)
        rows = {stack.id: in_service(by_stack[stack.id], stack.template_id) for stack in (top, *shown)}
        nested = {stack.parent_resource_id: stack for stack in below if stack.parent_resource_id is not None}
        return cls(top, depth, parent_resource_of(reader, top), rows, nested)

    def members(self) -> Iterator[ShownMember]:
        """All resources: of each stack by name, each nested stack followed by the resources in it."""
        yield from self._of(self.top, self.parent_resource, self.depth)

    def stacks(self) -> list[Stack]:
        """The stacks whose resources are shown, without the outermost one."""
        return [stack for stack in self.nested.values() if stack.id in self.rows]

    def _of(self, stack: Stack, parent_resource: str | None, depth: int) -> Iterator[ShownMember]:
        rows = self.rows[stack.id]
        for name in sorted(rows):
            nested = self.nested.get(rows[name].id)
            yield ShownMember(stack, rows[name], parent_resource, nested)
            if nested is not None and depth > 0:
                yield from self._of(nested, name, depth - 1)


class Pages:
    """The resources of one stack, by name, read in batches: the rows are never all in memory.

    :param after: yield only resources whose names follow this name; it need not exist.
    """

    def __init__(self, reader: StackReader, stack: Stack, after: str | None = None) -> None:
        self._reader = reader
        self._stack = stack
        self._parent_resource = parent_resource_of(reader, stack)
        self.names = reader.names_in(stack.id)
        self._wanted = self.names if after is None else self.names[bisect_right(self.names, after) :]

    def members(self, at_once: int) -> Iterator[list[ShownMember]]:
        """The selected rows, `at_once` at a time."""
        for begin in range(0, len(self._wanted), at_once):
            names = self._wanted[begin : begin + at_once]
            rows = in_service(self._reader.resources_named(self._stack.id, names), self._stack.template_id)
            stacks = self._reader.stacks_of_resources([row.id for row in rows.values()])
            nested = {stack.parent_resource_id: stack for stack in stacks}
            yield [
                ShownMember(self._stack, rows[name], self._parent_resource, nested.get(rows[name].id))
                for name in sorted(rows)
            ]


def parent_resource_of(reader: StackReader, stack: Stack) -> str | None:
    """Name of the resource whose object a stack is; None if the stack is not nested."""
    row = reader.resource(stack.parent_resource_id) if stack.parent_resource_id is not None else None
    return row.name if row is not None else None
