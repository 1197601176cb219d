"""Excerpts: the line of an error with a caret under the place.

The author of the document reads an excerpt, but terminals, logs and reports receive it as well. An excerpt therefore
holds no control characters, and no values of parameters, which may be secrets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from convergence.errors import Place

WIDTH = 100
"""Maximum number of characters of an excerpt. A document may be one long line."""

_BREAKS = re.compile('\r\n|[\n\r\x85\u2028\u2029]')
_VERSION_KEYS = re.compile(r"""(heat_template_version|AWSTemplateFormatVersion|HeatTemplateFormatVersion)["']?\s*:""")
_PARAMETERS = ('parameters', 'parameter_defaults', 'Parameters')
_DEFAULT = re.compile(r"""["']?default["']?\s*:""", re.IGNORECASE)
_HIDDEN = re.compile('hidden|noecho', re.IGNORECASE)
_KEY = re.compile(r""":(?=\s|$)|["']\s*:""")
_LEFT_OUT = '…'


class Excerpts:
    """Cuts excerpts from one text."""

    def __init__(self, text: str) -> None:
        self._lines = _BREAKS.split(text.removeprefix('\ufeff'))
        self._is_template = _VERSION_KEYS.search(text) is not None

    def at(self, place: Place) -> str:
        """Return two lines: the numbered line at `place`, and a caret. Empty if the line does not exist."""
        if not 0 < place.line <= len(self._lines):
            return ''
        line = self._lines[place.line - 1]
        line, column = _around(self._harmless(line, place.path), place.column - 1)
        number = str(place.line)
        gap = ' ' * sum(_cells(character) for character in line[:column])
        return f'{number} | {line.rstrip()}\n{" " * len(number)} | {gap}^'

    def _harmless(self, line: str, path: Sequence[str | int]) -> str:
        """Return the line without the values of parameters. In an unknown place, every text may be a value."""
        about_parameters = not path or path[0] in _PARAMETERS
        if not self._is_template:
            return _until(line, _KEY.search(line)) if about_parameters else line
        found = _DEFAULT.search(line)
        if found and (about_parameters or _HIDDEN.search(line)):
            return _until(line, found)
        return _LEFT_OUT if about_parameters and 'default' in map(str, path[2:]) else line


def _until(line: str, found: re.Match[str] | None) -> str:
    """Return the text before a value, and a placeholder for the value."""
    if found is None:
        return _LEFT_OUT
    kept = line[: found.end()]
    return f'{kept} {_LEFT_OUT}' if line[found.end() :].strip() else line


def _around(line: str, column: int) -> tuple[str, int]:
    """Return the printable part of a line, and the column in it."""
    column = max(0, min(column, len(line)))
    first = max(0, min(column - WIDTH // 2, len(line) - WIDTH))
    shown = line[first : first + WIDTH]
    before = _LEFT_OUT if first else ''
    after = _LEFT_OUT if first + WIDTH < len(line) else ''
    printable = ''.join(character if character.isprintable() else _stand_in(character) for character in shown)
    return before + printable + after, column - first + len(before)


def _stand_in(character: str) -> str:
    return ' ' if character.isspace() else '\N{REPLACEMENT CHARACTER}'


def _cells(character: str) -> int:
    """Return the number of terminal columns of a character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in 'WF' else 1
