"""Finds words and forms that the project does not use, in everything that people read.

``docs/glossary.rst`` lists the words ("Words to avoid"). This module reads documents, and in Python files docstrings,
comments and every text of three words or more: help of options and commands, log lines, errors, output. It skips
identifiers and literals. ``python -m tests.architecture.words [PATH...]`` prints each finding as ``file:line: text``;
``python -m tests.architecture.words --counts`` prints the number of findings of each room.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.architecture.source import ROOT, Source, parse

GLOSSARY = ROOT / 'docs' / 'glossary.rst'
HEADING = 'Words to avoid'

CEILINGS: dict[str, int] = {
    'CHANGELOG.rst': 0,
    'CONTRIBUTING.rst': 0,
    'README.rst': 0,
    'conftest.py': 0,
    'convergence/api': 0,
    'convergence/cli': 0,
    'convergence/cmd': 0,
    'convergence/concurrency': 0,
    'convergence/config': 0,
    'convergence/core': 0,
    'convergence/credentials': 0,
    'convergence/db': 0,
    'convergence/dispatch.py': 0,
    'convergence/documents.py': 0,
    'convergence/drawing.py': 0,
    'convergence/engine': 0,
    'convergence/errors.py': 0,
    'convergence/escaping.py': 0,
    'convergence/expressions': 0,
    'convergence/heartbeat.py': 0,
    'convergence/lifetime.py': 0,
    'convergence/logs.py': 0,
    'convergence/notices.py': 0,
    'convergence/observer': 0,
    'convergence/randomness.py': 0,
    'convergence/repetition.py': 0,
    'convergence/resources': 0,
    'convergence/rpc': 0,
    'convergence/secrecy.py': 0,
    'convergence/signing.py': 0,
    'simulator/convergence_simulator': 0,
    'convergence/template': 0,
    'convergence/testing': 0,
    'convergence/values.py': 0,
    'convergence/worker': 0,
    'docs': 0,
    'docs/decisions': 0,
    'docs/reference': 0,
    'examples': 0,
    'migrations': 0,
    'plugins/heat': 0,
    'plugins/openstack': 0,
}
"""Highest number of findings per room, by the longest prefix of the path. Lower a number when you clean a room. A room
with 0 stays clean; the others may exchange files, but their sum may not rise."""

FIRST_WORDS = re.compile(r'(?:What|Who|Whoever|Whom|Whose|Whether|Which|Where|Those|This worker)\b')
"""A docstring, a help text or a log line that begins so hides its subject."""
LOG_METHODS = frozenset({'debug', 'info', 'warning', 'error', 'exception', 'critical', 'log'})
NO_PROSE = re.compile(
    r'``.*?``|`[^`]*`_{0,2}|https?://\S+|:\w+ \w+:|\bas (?:far|long|soon) as\b|\bas (?:it is|they are) \w',
    re.IGNORECASE,
)
"""Literals, addresses and names of parameters; "as far as it is" and "as it is shown", which no form of the glossary means."""
PROSE_WORDS = 3
"""Texts in code with fewer words are names, keys and formats."""


@dataclass(frozen=True, order=True)
class Finding:
    """One forbidden word or form. `name` is the path of its file from the top of the repository."""

    name: str
    line: int
    said: str

    def __str__(self) -> str:
        return f'{self.name}:{self.line}: {self.said}'


@dataclass(frozen=True)
class Text:
    """A piece of prose of one file. `opens` is true if its first word has to be plain as well."""

    line: int
    prose: str
    opens: bool = False


def avoided() -> list[str]:
    """The forms in the first column of the table of the glossary, as they are written there."""
    section = GLOSSARY.read_text(encoding='utf-8').partition(f'\n{HEADING}\n')[2]
    rows = re.findall(r'^   \* - (.+(?:\n       .+)*)\n     - ', section, re.MULTILINE)
    return [form for row in rows for form in re.findall(r'``([^`]+)``', row)]


def pattern(forms: list[str]) -> re.Pattern[str]:
    """One expression for all forms: whole words, any case, any space; ``*`` stands for the rest of a word."""
    parts = [
        r'\s+'.join(re.escape(word).replace(r'\*', r'\w*') for word in form.split())
        for form in sorted(forms, key=len, reverse=True)
    ]
    return re.compile(rf'(?<![\w-])(?:{"|".join(parts)})(?![\w-])', re.IGNORECASE)


@cache
def avoided_pattern() -> re.Pattern[str]:
    """The expression for the forms of the glossary."""
    return pattern(avoided())


def files() -> Iterator[Path]:
    """Documents and Python files that are read; tests are not."""
    skipped = {'tests', 'build', 'dist'}
    for path in sorted([*ROOT.rglob('*.rst'), *ROOT.rglob('*.py')]):
        parts = path.relative_to(ROOT).parts
        linked = parts[:2] == ('convergence', 'migrations') and (ROOT / 'convergence' / 'migrations').is_symlink()
        if linked or any(part in skipped or part.startswith('.') for part in parts[:-1]):
            continue
        yield path


def texts_of_document(text: str) -> Iterator[Text]:
    """The lines of a page, without literals, links and literal blocks."""
    literal_indent: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        if literal_indent is not None:
            if not line.strip() or indent > literal_indent:
                continue
            literal_indent = None
        if line.lstrip().startswith(('.. code', '.. image::', '.. literalinclude::')) or line.endswith('::'):
            literal_indent = indent
        yield Text(number, line)


def texts_of_source(source: Source) -> Iterator[Text]:
    """Docstrings, comments and longer texts of a Python file."""
    lines = source.text.splitlines()
    first_arguments, docs, parts_of_f = _places(source)
    strings: dict[int, list[tuple[int, int]]] = {}
    for node in source.nodes:
        if not isinstance(node, (ast.Constant, ast.JoinedStr)):
            continue
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            continue
        _cover(strings, node, lines)
        if id(node) in parts_of_f:
            continue
        prose = _prose(node)
        is_doc, is_first = id(node) in docs, id(node) in first_arguments
        if is_doc or is_first or len(prose.split()) >= PROSE_WORDS:
            yield from _lines_of(node.lineno, prose, opens=is_doc or is_first)
    for number, line in enumerate(lines, 1):
        for match in re.finditer(r'#\s*(.*)', line):
            if not any(start <= match.start() < end for start, end in strings.get(number, ())):
                yield Text(number, re.sub(r'^(?:noqa|type: ignore|pragma|mypy)\b[^-]*-*', '', match[1]))
                break


def _places(source: Source) -> tuple[set[int], set[int], set[int]]:
    """By identity: texts that begin a log line or a help, docstrings, and the parts of formatted texts."""
    first, docs, inner = set(), set(), set()
    for node in source.nodes:
        if isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in ast.walk(node) if part is not node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs.add(id(node.value))
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in LOG_METHODS:
                first.update(id(each) for each in node.args[:2])
            first.update(id(each.value) for each in node.keywords if each.arg in ('help', 'short_help', 'epilog'))
    return first, docs, inner


def _prose(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return ''.join(str(each.value) if isinstance(each, ast.Constant) else '`x`' for each in node.values)


def _cover(strings: dict[int, list[tuple[int, int]]], node: ast.Constant | ast.JoinedStr, lines: list[str]) -> None:
    """Note which columns of which lines a text takes, so that a ``#`` in it is no comment."""
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    for number in range(node.lineno, end_line + 1):
        start = node.col_offset if number == node.lineno else 0
        strings.setdefault(number, []).append((start, end if number == end_line else len(lines[number - 1]) + 1))


def _lines_of(first: int, prose: str, *, opens: bool) -> Iterator[Text]:
    for index, line in enumerate(prose.splitlines()):
        yield Text(first + index, line, opens=opens and index == 0)


def findings(path: Path) -> list[Finding]:
    """Everything in one file that the glossary forbids, in the order of the lines."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding='utf-8')
    texts = texts_of_document(text) if path.suffix == '.rst' else texts_of_source(parse(path))
    return sorted(found for each in texts for found in _in_text(name, each))


def _in_text(name: str, text: Text) -> Iterator[Finding]:
    prose = NO_PROSE.sub(' x ', text.prose)
    for match in avoided_pattern().finditer(prose):
        yield Finding(name, text.line, ' '.join(match[0].split()))
    if text.opens and (match := FIRST_WORDS.match(text.prose.lstrip())):
        yield Finding(name, text.line, f'begins with "{match[0]}"')


def room(name: str) -> str:
    """The entry of the table that a path belongs to: its longest prefix there, else its first two folders."""
    fitting = [prefix for prefix in CEILINGS if name == prefix or name.startswith(f'{prefix}/')]
    if fitting:
        return max(fitting, key=len)
    parts = name.split('/')
    return '/'.join(parts[: 2 if len(parts) > 2 or parts[0] == 'convergence' else 1])


@cache
def everything() -> tuple[Finding, ...]:
    """All findings in the repository."""
    return tuple(found for path in files() for found in findings(path))


def counts() -> Counter[str]:
    """Findings per room."""
    return Counter(room(found.name) for found in everything())


if __name__ == '__main__':
    if '--counts' in sys.argv:
        for name, count in sorted(counts().items()):
            print(f"    '{name}': {count},")
    else:
        wanted = [argument.rstrip('/') for argument in sys.argv[1:]]
        for each in everything():
            if not wanted or any(each.name.startswith(path) for path in wanted):
                print(each)
