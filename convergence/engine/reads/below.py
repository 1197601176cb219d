"""What is nested in a stack, by the names that lead there: read by two statements, however much it is."""

from __future__ import annotations

from convergence.core.rows import Stack
from convergence.db.queries.stacks import StackReader


def stacks_below(reader: StackReader, top: Stack, depth: int) -> dict[str, Stack]:
    """The living stacks that are nested in one, by their paths: names of resources, with slashes; higher ones first.

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
