"""Paths of nested stacks, read by a few statements for any number of stacks."""

from __future__ import annotations

from collections.abc import Iterable

from convergence.core.rows import Stack
from convergence.db.repositories.reads.stacks import StackReader


def stacks_below(reader: StackReader, top: Stack, depth: int) -> dict[str, Stack]:
    """The living stacks nested in a stack, by their paths: names of resources, with slashes; outer ones first.

    :param depth: how many levels to go down.
    """
    if depth <= 0:
        return {}
    below = reader.nested_below(top.id, depth)
    names = reader.resource_names([each.parent_resource_id for each in below if each.parent_resource_id is not None])
    paths = {top.id: ''}
    found: dict[str, Stack] = {}
    for stack in below:
        name = names.get(stack.parent_resource_id or '')
        if name is not None and stack.parent_id in paths:
            found[f'{paths[stack.parent_id]}{name}'] = stack
            paths[stack.id] = f'{paths[stack.parent_id]}{name}/'
    return found


def paths_below(reader: StackReader, top: Stack, stacks: Iterable[Stack]) -> dict[str, str]:
    """Paths from `top` to each of some stacks that are, or were, nested in it, by stack id; empty for `top`.

    Needs one statement for each level, and one for the names. Leaves out stacks whose resource is gone.
    """
    known = {top.id: top, **{stack.id: stack for stack in stacks}}
    missing = {each.parent_id for each in known.values() if each is not top} - known.keys() - {None}
    while missing:
        found = reader.stacks_by_id({each for each in missing if each is not None})
        known |= {stack.id: stack for stack in found}
        missing = {stack.parent_id for stack in found} - known.keys() - {None}
    names = reader.resource_names([each.parent_resource_id for each in known.values() if each.parent_resource_id])
    paths = {top.id: ''}

    def path_of(stack: Stack) -> str | None:
        above, name = known.get(stack.parent_id or ''), names.get(stack.parent_resource_id or '')
        if stack.id not in paths and above is not None and name is not None and (path := path_of(above)) is not None:
            paths[stack.id] = f'{path}/{name}' if path else name
        return paths.get(stack.id)

    for stack in known.values():
        path_of(stack)
    return paths
