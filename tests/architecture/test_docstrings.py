"""Docstrings name errors that exist, and constants in seconds do not count anything."""

from __future__ import annotations

import ast
import builtins
import re
from itertools import pairwise
from pathlib import Path

from sqlalchemy import exc

from tests.architecture.source import Source, sources

RAISES = re.compile(r':raises ([^:]*):')
NAMES = {
    name
    for source in sources()
    for node in source.nodes
    for name in (
        [node.name]
        if isinstance(node, ast.ClassDef)
        else [alias.asname or alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom | ast.Import)
        else []
    )
} | {*dir(builtins), *dir(exc)}


def unknown_errors(text: str) -> list[str]:
    """The names after ``:raises`` that are no class and are not imported."""
    names = [name.strip() for found in RAISES.findall(text) for name in found.split(',')]
    return [name for name in names if name.split('.')[0] not in NAMES]


def miscounted(source: Source) -> list[str]:
    """The constants in seconds whose docstring begins like that of a number of things."""
    found = []
    for node in source.nodes:
        body = node.body if isinstance(node, ast.Module | ast.ClassDef) else []
        for before, after in pairwise(body):
            targets = before.targets if isinstance(before, ast.Assign) else [getattr(before, 'target', None)]
            names = [each.id for each in targets if isinstance(each, ast.Name) and each.id.endswith('_S')]
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ''
            begins = isinstance(text, str) and re.match(r'Maximum number of (?!seconds)', text)
            found += names if begins else []
    return found


def test_docstrings_name_errors_that_exist():
    found = [(source.name, name) for source in sources() for name in unknown_errors(source.text)]
    assert found == []


def test_constants_in_seconds_are_described_as_times():
    found = [(source.name, name) for source in sources() for name in miscounted(source)]
    assert found == []


def test_the_checks_find_what_is_wrong():
    assert unknown_errors(':raises ValueError, NoSuchErrorAnywhere: why') == ['NoSuchErrorAnywhere']
    text = 'PAUSE_S = 5.0\n"""Maximum number of searches."""\nLIMIT_S: float = 1.0\n"""Maximum number of seconds."""\n'
    assert miscounted(Source(Path('x.py'), text, ast.parse(text))) == ['PAUSE_S']
