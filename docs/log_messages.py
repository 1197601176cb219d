"""A Sphinx extension: ``.. log-messages::`` lists every warning and error that the programs can write to their log.

The texts come from the source code, which is read and not run. Values are shown as dots.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

LEVELS = {'warning': 'WARNING', 'error': 'ERROR', 'exception': 'ERROR, with a traceback', 'critical': 'CRITICAL'}
ORDER = ('engine', 'worker', 'api', 'cmd', 'rpc', 'db', 'resources', 'concurrency')
"""Packages, those first that operators meet most."""
LEFT_OUT = ('simulator', 'testing', 'migrations')
"""Not run by an installation."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One call that writes to the log. `source` is its file, from the top of the package."""

    source: str
    level: str
    text: str


def found_in(package: Path) -> Iterator[LogLine]:
    """Yield the log lines of the modules of a package, in the order of the source."""
    for path in sorted(package.rglob('*.py')):
        source = path.relative_to(package).as_posix()
        if source.startswith(LEFT_OUT):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.Call) and _is_logged(node.func) and node.args:
                yield from _lines(source, node)


def _is_logged(called: ast.expr) -> bool:
    return (
        isinstance(called, ast.Attribute)
        and called.attr in LEVELS
        and isinstance(called.value, ast.Name)
        and called.value.id == 'LOG'
    )


def _lines(source: str, call: ast.Call) -> Iterator[LogLine]:
    assert isinstance(call.func, ast.Attribute)
    first = call.args[0]
    choices = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
    for choice in choices:
        if isinstance(choice, ast.Constant) and isinstance(choice.value, str):
            text = re.sub(r'%\+?(?:\.\d+)?[sdrfg]', '…', choice.value).replace('%%', '%')
            if re.search(r'[A-Za-z]{3}', text):
                yield LogLine(source, LEVELS[call.func.attr], text)


class LogMessages(Directive):
    """The directive."""

    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        """A section's worth of lists, one for each part."""
        package = Path(__file__).resolve().parents[1] / 'convergence'
        parts: dict[str, list[LogLine]] = {}
        for line in found_in(package):
            part = line.source.partition('/')[0] if '/' in line.source else ''
            parts.setdefault(part, []).append(line)
        if not parts:
            raise self.error(f'no module below {package} writes to a log')
        made: list[nodes.Node] = []
        for part in sorted(parts, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name)):
            where = nodes.literal(text=f'convergence/{part}/' if part else 'convergence/')
            made += [nodes.paragraph('', '', nodes.strong('', '', where)), _list(parts[part])]
        return made


def _list(lines: list[LogLine]) -> nodes.definition_list:
    items = nodes.definition_list()
    for line in lines:
        said = nodes.paragraph('', f'{line.level}; ')
        said += nodes.literal(text=line.source)
        items += nodes.definition_list_item('', nodes.term('', line.text), nodes.definition('', said))
    return items


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive('log-messages', LogMessages)
    return {'version': '1', 'parallel_read_safe': True, 'parallel_write_safe': True}
