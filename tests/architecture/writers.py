"""Which modules of the core write which column, as far as the source says so: rows made, and typed changes of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from convergence.core import changes
from tests.architecture.source import sources

MADE = {'Stack': 'stack', 'Resource': 'resource', 'Traversal': 'traversal', 'Node': 'sync_point'}
"""The table of each kind of row."""
CHANGED = {'StackChange': 'stack', 'ResourceChange': 'resource', 'NodeChange': 'sync_point'}
"""The table that each typed change is of; the effects `Update...` carry them."""


def written() -> dict[tuple[str, str], set[str]]:
    """The modules by table and column. `core/states` is left out: it writes for whoever calls it."""
    assert set(CHANGED) == {name for name, kind in vars(changes).items() if name.endswith('Change')}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for source in sources():
        _, _, module = source.module.partition('convergence.')
        if module.startswith('core.') and module != 'core.states':
            for table, column in _written(source.tree):
                found[table, column].add(module.replace('.', '/'))
    return found


def _written(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _last(node.func)
            if name in MADE:
                yield from ((MADE[name], each.arg) for each in node.keywords if each.arg)
            elif name.startswith('Update') and f'{name.removeprefix("Update").rstrip("s")}Change' in CHANGED:
                table = CHANGED[f'{name.removeprefix("Update").rstrip("s")}Change']
                given = [*node.args, *(each.value for each in node.keywords)]
                yield from ((table, key) for each in given for key in _keys(each))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and _last(node.annotation) in CHANGED:
            yield from ((CHANGED[_last(node.annotation)], key) for key in _keys(node.value))
        elif isinstance(node, ast.FunctionDef):
            yield from _by_function(node)


def _by_function(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """What it answers as a change, or puts into a variable that is one."""
    if _last(function.returns) in CHANGED:
        yield from ((CHANGED[_last(function.returns)], key) for key in _keys(function))
    inside = list(ast.walk(function))
    kinds = {ast.unparse(each.target): _last(each.annotation) for each in inside if isinstance(each, ast.AnnAssign)}
    for each in inside:
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) and isinstance(each.slice, ast.Constant):
            kind = kinds.get(ast.unparse(each.value))
            if kind in CHANGED:
                yield CHANGED[kind], str(each.slice.value)


def _keys(tree: ast.AST) -> Iterator[str]:
    """The keys of all dictionaries in it that are written out."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Dict):
            yield from (str(key.value) for key in each.keys if isinstance(key, ast.Constant))


def _last(expression: ast.expr | None) -> str:
    """The last word of a dotted name, whatever it is a generic of."""
    return ast.unparse(expression).partition('[')[0].rpartition('.')[2] if expression is not None else ''
