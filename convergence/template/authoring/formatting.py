"""Formats YAML text: indentation, spaces and blank lines, and nothing else.

The formatter works on tokens, so that comments, quotes, the order of keys and line breaks stay the same. Then it parses
both texts and compares values and comments. It refuses a text whose content would change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from convergence.errors import ConvergenceError
from convergence.template.problems import Problems
from convergence.template.reader import syntax_problem

STEP = 2
"""Columns per level of indentation."""

_Loader: Any = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)
_OPENING = (yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken)
_CLOSING = (yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
_BLOCKS = (yaml.BlockMappingStartToken, yaml.BlockSequenceStartToken)
_BLANK_END = re.compile(r'(?:\n[ \t]*)+\Z')
_DIGIT = re.compile(r'[1-9]')


class Unformattable(ConvergenceError):
    """The formatter does not support the layout of a text. The text must not be changed."""


@dataclass(slots=True)
class _Level:
    """An open block.

    :ivar old: the column of its keys or dashes; `new`: their column after formatting.
    :ivar is_list: True if it has dashes; `is_bare`: True if the dashes have the column of the enclosing keys.
    """

    old: int
    new: int
    is_list: bool
    is_bare: bool = False

    @property
    def content(self) -> int:
        """The column of closing brackets in the block."""
        return self.new + (STEP if self.is_list else 0)


def formatted(text: str, name: str = 'template') -> str:
    """Return the formatted text. A formatted text stays the same.

    :param name: its name in errors.
    :raises StackValidationFailed: it is not YAML.
    :raises Unformattable: its content would change.
    """
    plain = text.removeprefix('\ufeff').replace('\r\n', '\n').replace('\r', '\n')
    try:
        said = _said(plain)
    except yaml.YAMLError as error:
        problems = Problems()
        problems.quote(name, plain)
        problems.add(*syntax_problem(error, plain, name))
        problems.raise_any()
        raise
    made = _Layout(plain).text()
    try:
        if _said(made) == said:
            return made
    except yaml.YAMLError:
        pass
    raise Unformattable(f'{name} has a layout that cannot be formatted. The file is not changed.')


def _said(text: str) -> tuple[list[Any], list[str]]:
    """Return the content of a text: its values with their notation, and its comments."""
    events = [
        (
            type(event),
            *(getattr(event, name, None) for name in ('anchor', 'tag', 'implicit', 'value', 'style', 'flow_style')),
        )
        for event in yaml.parse(text, Loader=_Loader)
    ]
    return events, list(_Layout(text).comments())


class _Layout:
    """The formatter of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: list[str] = []
        self._line = ''
        self._levels: list[_Level] = []
        self._before: list[_Level] = []
        self._flow = 0
        self._is_key = False

    def comments(self) -> Iterator[str]:
        """Return the comments in their order."""
        for gap, _ in self._pieces():
            yield from (line.strip().rstrip() for line in gap.split('\n') if line.strip().startswith('#'))

    def text(self) -> str:
        """Return the formatted text."""
        previous: Any = None
        for gap, token in self._pieces():
            if token is None:
                self._close(gap)
                break
            self._enter(token)
            if previous is None or '\n' in gap:
                self._break(gap, token, is_first=previous is None)
            else:
                self._line += _space(previous, token)
            shown = self._shown(token)  # These tokens may begin a line.
            self._line += shown
            self._leave(token)
            previous = token
        return '\n'.join(self._lines).lstrip('\n') + '\n' if any(self._lines) else ''

    # --- tokens -----------------------------------------------------------------------------------------------

    def _pieces(self) -> Iterator[tuple[str, Any]]:
        """Yield each visible token with the text before it, then None with the text at the end.

        Opens and closes blocks on the way.
        """
        end = 0
        for token in yaml.scan(self._text, Loader=_Loader):
            start, stop = token.start_mark.index, token.end_mark.index
            if isinstance(token, _BLOCKS):
                self._open(token.start_mark.column, isinstance(token, yaml.BlockSequenceStartToken), is_bare=False)
            elif isinstance(token, yaml.BlockEndToken):
                self._drop_bare()
                self._levels.pop()
            elif isinstance(token, yaml.KeyToken) and start == stop:
                if not self._flow:
                    self._drop_bare()
                self._is_key = True
            elif start < stop:
                yield self._text[end:start], token
                end = self._end(token)
        yield self._text[end:], None

    def _end(self, token: Any) -> int:
        """Return the end of a token. Blank lines after a block scalar belong to it only if it keeps them."""
        start, stop = int(token.start_mark.index), int(token.end_mark.index)
        if isinstance(token, yaml.ScalarToken) and token.style in ('|', '>'):
            verbatim = self._text[start:stop]
            if '+' in verbatim.partition('\n')[0].partition('#')[0]:
                return start + len(verbatim.removesuffix('\n'))
            return start + len(_BLANK_END.sub('', verbatim))
        return stop

    def _open(self, column: int, is_list: bool, *, is_bare: bool) -> None:
        new = self._levels[-1].new + STEP if self._levels else 0
        self._levels.append(_Level(column, new, is_list, is_bare))

    def _drop_bare(self) -> None:
        if self._levels and self._levels[-1].is_bare:
            self._levels.pop()

    def _enter(self, token: Any) -> None:
        if isinstance(token, yaml.BlockEntryToken) and not (self._levels and self._levels[-1].is_list):
            self._open(token.start_mark.column, True, is_bare=True)
        elif isinstance(token, yaml.KeyToken) and not self._flow:
            self._drop_bare()
        elif isinstance(token, _CLOSING):
            self._flow -= 1

    def _leave(self, token: Any) -> None:
        self._flow += isinstance(token, _OPENING)
        self._before = list(self._levels)
        self._is_key = False

    # --- lines ------------------------------------------------------------------------------------------------

    def _column(self, token: Any) -> int:
        """Return the new column of a token that begins a line."""
        if not self._levels:
            return STEP * self._flow
        level = self._levels[-1]
        if self._flow or isinstance(token, _CLOSING):
            return level.content + STEP * self._flow
        begins = self._is_key or isinstance(token, yaml.BlockEntryToken | yaml.KeyToken | yaml.ValueToken)
        return level.new if begins else level.new + STEP

    def _break(self, gap: str, token: Any, *, is_first: bool) -> None:
        """Write comments and blank lines, and start the line of a token."""
        self._between(gap, token, is_first=is_first)
        self._line = ' ' * (0 if isinstance(token, yaml.DocumentStartToken) else self._column(token))

    def _between(self, gap: str, token: Any, *, is_first: bool) -> None:
        behind, *others = gap.split('\n')
        if is_first:
            others = [behind, *others]
        else:
            # Aligned comments stay aligned if the text before them does not change.
            spaces = max(len(behind) - len(behind.lstrip()), STEP)
            self._line += f'{" " * spaces}{behind.strip()}' if behind.strip() else ''
            self._lines.append(self._line)
        for line in others[:-1]:
            comment = line.strip()
            if comment:
                self._lines.append(' ' * self._comment_column(len(line) - len(line.lstrip()), token) + comment)
            elif self._lines and self._lines[-1]:
                self._lines.append('')

    def _close(self, gap: str) -> None:
        self._between(f'{gap}\n', None, is_first=not self._lines and not self._line)
        while self._lines and not self._lines[-1]:
            self._lines.pop()

    def _comment_column(self, column: int, token: Any) -> int:
        """Return the column of a comment line: that of the innermost block that starts no further right."""
        if self._flow or (token is not None and isinstance(token, _CLOSING)):
            inside = self._flow + isinstance(token, _CLOSING)
            return (self._levels[-1].content if self._levels else 0) + STEP * inside
        own = self._levels[-1] if self._levels else None
        if own is not None and own.old == column:
            return own.new
        levels = [level for level in (*self._before, *self._levels) if level.old <= column]
        return max(levels, key=lambda level: (level.old, level.new)).new if levels else 0

    # --- inside of lines --------------------------------------------------------------------------------------

    def _shown(self, token: Any) -> str:
        verbatim = self._text[token.start_mark.index : self._end(token)]
        if not isinstance(token, yaml.ScalarToken) or '\n' not in verbatim:
            return verbatim.rstrip() if isinstance(token, yaml.ScalarToken) and token.plain else verbatim
        first, *rest = verbatim.split('\n')
        column = (self._levels[-1].new if self._levels else 0) + STEP
        if token.style in ('|', '>'):
            rest = _block(self._levels, first, rest, column)
        else:
            column = max(column, self._column(token)) if self._flow else max(column, 0)
            rest = [f'{" " * column}{line.strip()}' if line.strip() else '' for line in rest[:-1]] + [
                f'{" " * column}{rest[-1].lstrip()}'
            ]
            first = first.rstrip()
        *whole, last = first, *rest
        self._lines += [f'{self._line}{whole[0]}', *whole[1:]]
        self._line = ''
        return last


def _space(before: Any, token: Any) -> str:
    """Return the text between two tokens of a line."""
    if isinstance(before, _OPENING):
        return ''
    if isinstance(token, _CLOSING):
        return ' ' if isinstance(before, yaml.ValueToken) else ''
    if isinstance(token, yaml.FlowEntryToken | yaml.ValueToken):
        return ' ' if isinstance(before, yaml.AliasToken | yaml.ValueToken) else ''
    return ' '


def _block(levels: list[_Level], header: str, lines: list[str], column: int) -> list[str]:
    """Return the lines of a block scalar in another column."""
    digit = _DIGIT.search(header.partition('#')[0])
    if digit is not None:
        # The column counts from the enclosing block. Bare dashes are no block of their own.
        around = [level for level in levels if not level.is_bare]
        old = (around[-1].old if around else 0) + int(digit[0])
        column = column - STEP + int(digit[0])
    else:
        old = next((len(line) - len(line.lstrip(' ')) for line in lines if line.strip()), 0)
    return [f'{" " * column}{line[old:]}' if len(line) > old else '' for line in lines]
