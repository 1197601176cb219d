"""Finds the context of the cursor in a template from its lines: an unfinished template is seldom valid YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from convergence.template.authoring.index import SECTIONS, NameKind

_KEY = re.compile(
    r'^(?P<lead>\s*(?:-\s+)*)(?P<key>"[^"]*"|\'[^\']*\'|[^\s:#{}\[\],&*!|>\'"%@`-][^:#]*|[^\s#]+?)\s*:(?=\s|$)'
)
_DASHES = re.compile(r'^\s*(?:-\s+)+')
_TYPE = re.compile(r'^\s*["\']?[Tt]ype["\']?\s*:\s*["\']?([^\s"\',}#]+)')
_TYPE_IN_BRACKETS = re.compile(r'[{,]\s*["\']?[Tt]ype["\']?\s*:\s*["\']?([^\s"\',}]+)')
_NAME = re.compile(r'[^\s{}\[\],"\'#]*$')
_FARTHEST = 200
"""Maximum number of lines between an open bracket and the cursor. Bounds the time of a completion."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The context of a position.

    :param path: the enclosing keys, the outermost first. Lists add nothing.
    :param is_value: True if the position is in the value of the last key of the path; otherwise it is in a key.
    :param items: the items before the position in the innermost list in brackets.
    :param word: the part of the name before the position.
    """

    path: tuple[str, ...]
    is_value: bool
    items: tuple[str, ...]
    word: str


@dataclass(slots=True)
class _Bracket:
    """An open bracket: ``{`` or ``[``."""

    is_map: bool
    key: str = ''
    items: list[str] = field(default_factory=list)


def cursor_at(lines: Sequence[str], line: int, column: int) -> Cursor:
    """Return the context of a position. Line and column count from 0."""
    first = _beginning(lines, line)
    written = '\n'.join([*lines[first:line], lines[line][:column] if line < len(lines) else ''])
    around = block_path(lines, first, len(written) if first == line and not written.strip() else None)
    lead = _DASHES.match(written)
    rest = written[lead.end() :] if lead else written
    brackets, key, last = _scanned(rest)
    found = _NAME.search(last)
    word = found[0] if found else ''
    path = [*around, *([key] if key else []), *(bracket.key for bracket in brackets if bracket.key)]
    if not brackets:
        return Cursor(tuple(path), bool(key), (), word)
    inner = brackets[-1]
    return Cursor(tuple(path), bool(inner.key) or not inner.is_map, tuple(inner.items), word)


def block_path(lines: Sequence[str], line: int, column: int | None = None) -> list[str]:
    """Return the keys that enclose a line, the outermost first.

    :param column: the indentation to assume for an empty line; None: that of the line.
    """
    text = lines[line] if line < len(lines) else ''
    indent = len(text) - len(text.lstrip()) if column is None else column
    is_item = text.lstrip().startswith('- ') or text.strip() == '-'
    found: list[str] = []
    for number in range(line - 1, -1, -1):
        if indent < 0 or (indent == 0 and not is_item):
            break
        above = lines[number]
        match = _KEY.match(above)
        if not above.strip() or above.lstrip().startswith('#') or match is None:
            continue
        lead, dashes = match['lead'], '-' in match['lead']
        if len(lead) < indent or (is_item and len(lead) == indent and not dashes):
            found.append(match['key'].strip('"\''))
            is_item = dashes
            indent = lead.index('-') if dashes else len(lead)
    return found[::-1]


def declared_names(lines: Sequence[str], kind: NameKind) -> Iterator[tuple[str, str]]:
    """Yield the names that a section declares, each with its type or an empty text."""
    inside, depth, name, of_type = False, -1, '', ''
    for text in (*lines, 'end:'):
        match = _KEY.match(text)
        if match is None or text.lstrip().startswith('#'):
            continue
        indent = len(match['lead'])
        if indent == 0 or (inside and indent == depth):
            if name:
                yield name, of_type
            name = of_type = ''
        if indent == 0:
            inside, depth = SECTIONS.get(match['key'].strip('"\'')) is kind, -1
        elif inside and depth in (-1, indent):
            depth, name = indent, match['key'].strip('"\'')
            found = _TYPE_IN_BRACKETS.search(text)
            of_type = found[1] if found else ''
        elif inside and not of_type and (found := _TYPE.match(text)):
            of_type = found[1]


def _beginning(lines: Sequence[str], line: int) -> int:
    """Return the line of the outermost bracket that is open at a line; the line itself without one."""
    depth, first = 0, line
    for number in range(line - 1, max(-1, line - _FARTHEST), -1):
        text = re.sub(r'"[^"]*"|\'[^\']*\'|(?:^|\s)#.*', '', lines[number])
        depth += sum(map(text.count, '{[')) - sum(map(text.count, '}]'))
        if depth > 0:
            first, depth = number, 0
        elif depth == 0 and first == line and lines[number].strip() and not lines[number].startswith(' '):
            break
    return first


def _scanned(text: str) -> tuple[list[_Bracket], str, str]:
    """Return the brackets that are open at the end of a text, the key before the first, and the unfinished value."""
    brackets: list[_Bracket] = []
    key, start, quote = '', 0, ''
    for index, character in enumerate(text):
        if quote:
            quote = '' if character == quote else quote
        elif character in '"\'' and not text[start:index].strip():
            quote = character
        elif character in '{[':
            brackets.append(_Bracket(character == '{'))
            start = index + 1
        elif character in '}]' and brackets:
            brackets.pop()
            start = index + 1
        elif character == ',' and brackets:
            inner = brackets[-1]
            inner.items.append(text[start:index].strip().strip('"\''))
            inner.key, start = '', index + 1
        elif character == ':' and text[index + 1 : index + 2] in (' ', '', '\n') and text[start:index][-1:] != ':':
            name = text[start:index].strip().strip('"\'')
            if not brackets:
                key = name
            elif brackets[-1].is_map:
                brackets[-1].key = name
            start = index + 1
    return brackets, key, text[start:]
