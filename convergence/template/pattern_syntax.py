"""Parses the regular expressions of `allowed_pattern`.

The notation is that of the module `re`. The parser is Convergence's own: the parser of `re` is private to CPython and
changes with it. Constructs that cannot be matched in linear time are refused here.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TypeAlias

MAX_REPEAT = 4_294_967_295
"""The repetition count that `re` refuses, and all above it."""

_CATEGORIES = frozenset('dDsSwW')
_ANCHORS = frozenset('AbBZ')
_ESCAPES = {'a': '\a', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}
_HEX_ESCAPES = {'x': 2, 'u': 4, 'U': 8}
_DIGITS, _OCTAL = frozenset('0123456789'), frozenset('01234567')
_HEX = frozenset('0123456789abcdefABCDEF')
_FLAGS = frozenset('aiLmsuxt')
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {'?': (0, 1), '*': (0, None), '+': (1, None)}


class BadPattern(ValueError):
    """The pattern cannot be used. The text says why."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set.

    :param members: ranges of characters, and categories such as ``d`` and ``W``.
    :param is_negated: True for all characters but these.
    """

    members: tuple[tuple[str, str] | str, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class AnyCharacter:
    """``.``"""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A condition on a position: ``^``, ``$``, or the letter of an escape such as ``b``."""

    kind: str


@dataclass(frozen=True, slots=True)
class LookAhead:
    """``(?=...)``, and ``(?!...)`` if it is negated."""

    body: Sequence
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Repetition:
    """A repetition. `most` is None without an upper bound."""

    body: Sequence
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class PatternGroup:
    """``(...)``. It is one item for a quantifier, and otherwise the same as its body."""

    body: Sequence


@dataclass(frozen=True, slots=True)
class Branch:
    """Alternatives."""

    alternatives: tuple[Sequence, ...]


PatternItem: TypeAlias = Characters | AnyCharacter | Anchor | LookAhead | Repetition | PatternGroup | Branch
Sequence: TypeAlias = tuple[PatternItem, ...]


@dataclass(frozen=True, slots=True)
class Syntax:
    """A parsed pattern.

    :param ignores_case: True for ``(?i)``.
    :param dot_matches_all: True for ``(?s)``.
    """

    body: Sequence
    ignores_case: bool
    dot_matches_all: bool


def parse(text: str) -> Syntax:
    """Parse a pattern.

    :raises BadPattern: it is not a regular expression, or has a construct that cannot be matched in linear time.
    """
    return _Parser(text).pattern()


class _Source:
    """The text of a pattern, and the position in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """Return the next character without consuming it; empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        character = self.peek()
        self.at += 1
        return character

    def accept(self, character: str) -> bool:
        if self.peek() != character:
            return False
        self.at += 1
        return True

    def take_while(self, allowed: frozenset[str], most: int = MAX_REPEAT) -> str:
        start = self.at
        while self.at - start < most and self.peek() in allowed:
            self.at += 1
        return self.text[start : self.at]

    def take_until(self, end: str, name: str) -> str:
        found, separator, _ = self.text[self.at :].partition(end)
        if not separator or not found:
            raise self.error(f'missing {name}')
        self.at += len(found) + 1
        return found

    def error(self, message: str) -> BadPattern:
        return BadPattern(f'{message} at position {self.at}')


class _Parser:
    """Reads a pattern from left to right. Methods consume the construct that they are named after."""

    def __init__(self, text: str) -> None:
        self._source = _Source(text)
        self._flags: set[str] = set()
        self._names: set[str] = set()

    def pattern(self) -> Syntax:
        body = self._alternatives(is_whole=True)
        if self._source.at < len(self._source.text):
            raise self._source.error('unbalanced parenthesis')
        return Syntax(body, 'i' in self._flags, 's' in self._flags)

    # --- sequences --------------------------------------------------------------------------------------------

    def _alternatives(self, *, is_whole: bool = False) -> Sequence:
        found = [self._sequence(takes_flags=is_whole)]
        while self._source.accept('|'):
            found.append(self._sequence())
        return found[0] if len(found) == 1 else _branch(found)

    def _sequence(self, *, takes_flags: bool = False) -> Sequence:
        items: list[PatternItem] = []
        while (character := self._source.peek()) and character not in '|)':
            if character in '?*+{':
                self._quantifier(items)
                continue
            self._source.at += 1
            if character == '(':
                item = self._group(takes_flags=takes_flags and not items)
            elif character == '[':
                item = _read_set(self._source)
            elif character == '\\':
                item = _read_escape(self._source)
            elif character in '^$':
                item = Anchor(character)
            else:
                item = AnyCharacter() if character == '.' else _literal(character)
            if item is not None:
                items.append(item)
        return tuple(inner for item in items for inner in (item.body if isinstance(item, PatternGroup) else (item,)))

    def _quantifier(self, items: list[PatternItem]) -> None:
        """Replace the last item by its repetition. Braces without a count in them are characters."""
        bounds = self._bounds()
        if bounds is None:
            items.append(_literal('{'))
            return
        if not items or isinstance(items[-1], Anchor):
            raise self._source.error('nothing to repeat')
        item = items[-1]
        if isinstance(item, Repetition):
            raise self._source.error('multiple repeat')
        if self._source.accept('+'):
            raise BadPattern('a possessive quantifier such as a*+ cannot be used')
        self._source.accept('?')  # Whether a repetition is greedy makes no difference for a match of the whole text.
        items[-1] = Repetition(item.body if isinstance(item, PatternGroup) else (item,), *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        character = self._source.take()
        if character in _QUANTIFIERS:
            return _QUANTIFIERS[character]
        start = self._source.at
        least = self._source.take_while(_DIGITS)
        most = self._source.take_while(_DIGITS) if self._source.accept(',') else least
        if self._source.at == start or not self._source.accept('}'):
            self._source.at = start
            return None
        if any(int(bound or 0) >= MAX_REPEAT for bound in (least, most)):
            raise BadPattern('it is nested too deeply or repeats too much')
        if most and int(most) < int(least or 0):
            raise self._source.error('min repeat greater than max repeat')
        return int(least or 0), int(most) if most else None

    # --- groups -----------------------------------------------------------------------------------------------

    def _group(self, *, takes_flags: bool) -> PatternItem | None:
        """Return the item; None for a comment and for flags."""
        if not self._source.accept('?'):
            return PatternGroup(self._rest_of_group())
        kind = self._source.take()
        if kind == '#':
            _, end, _ = self._source.text[self._source.at :].partition(')')
            if not end:
                raise self._source.error('missing ), unterminated comment')
            self._source.at = self._source.text.index(')', self._source.at) + 1
            return None
        if kind in ('=', '!'):
            return LookAhead(self._rest_of_group(), kind == '!')
        if kind == ':':
            return PatternGroup(self._rest_of_group())
        if kind == 'P' and self._source.accept('<'):
            self._name()
            return PatternGroup(self._rest_of_group())
        if kind and kind in _FLAGS:
            self._source.at -= 1
            self._set_flags(takes_flags=takes_flags)
            return None
        raise self._refused(kind)

    def _rest_of_group(self) -> Sequence:
        start = self._source.at
        body = self._alternatives()
        if not self._source.accept(')'):
            self._source.at = start
            raise self._source.error('missing ), unterminated subpattern')
        return body

    def _name(self) -> None:
        name = self._source.take_until('>', 'group name')
        if not name.isidentifier():
            raise self._source.error(f'bad character in group name {name!r}')
        if name in self._names:
            raise self._source.error(f'redefinition of group name {name!r}')
        self._names.add(name)

    def _set_flags(self, *, takes_flags: bool) -> None:
        flags = self._source.take_while(_FLAGS)
        if self._source.peek() in (':', '-'):
            raise BadPattern('flags inside of a group cannot be used')
        if not self._source.accept(')'):
            raise self._source.error('unknown flag')
        if not takes_flags:
            raise self._source.error('global flags not at the start of the expression')
        if not set(flags) <= set('isu'):
            raise BadPattern('of the flags only i and s can be used')
        self._flags.update(flags)

    def _refused(self, kind: str) -> BadPattern:
        """Return the error for a group that begins with ``(?`` and `kind`."""
        if kind == '<' and self._source.peek() in ('=', '!'):
            return BadPattern('looking behind, (?<=…) or (?<!…), cannot be used')
        names = {'(': 'a condition on a group', '>': 'an atomic group', '-': 'a flag inside of a group'}
        if kind == 'P' and self._source.peek() == '=':
            return BadPattern('a reference back to a group cannot be used')
        if kind in names:
            return BadPattern(f'{names[kind]} cannot be used')
        return self._source.error(f'unknown extension ?{kind}' if kind else 'unexpected end of pattern')


def _read_set(source: _Source) -> PatternItem:
    start = source.at
    is_negated = source.accept('^')
    members: list[tuple[str, str] | str] = []
    while not (members and source.accept(']')):
        low = _read_member(source, start)
        if source.peek() != '-' or source.text[source.at + 1 : source.at + 2] == ']':
            members.append(low)
            continue
        source.at += 1
        high = _read_member(source, start)
        if isinstance(low, str) or isinstance(high, str) or high[0] < low[0]:
            raise source.error('bad character range')
        members.append((low[0], high[0]))
    return Characters(tuple(dict.fromkeys(members)), is_negated)


def _read_member(source: _Source, start: int) -> tuple[str, str] | str:
    """Consume one character or category of a set."""
    character = source.take()
    if not character:
        source.at = start
        raise source.error('unterminated character set')
    if character != '\\':
        return character, character
    letter = _read_letter(source)
    if letter in _CATEGORIES:
        return letter
    if letter == 'b':
        return '\b', '\b'
    if letter in _OCTAL:
        return _octal_character(source, letter + source.take_while(_OCTAL, 2))
    return _escaped_character(source, letter)


def _read_escape(source: _Source) -> PatternItem:
    letter = _read_letter(source)
    if letter in _CATEGORIES:
        return Characters((letter,))
    if letter in _ANCHORS:
        return Anchor(letter)
    if letter == '0':
        return Characters((_octal_character(source, letter + source.take_while(_OCTAL, 2)),))
    digits = source.text[source.at - 1 : source.at + 2]
    if letter in _OCTAL and len(digits) == 3 and set(digits) <= _OCTAL:
        source.at += 2
        return Characters((_octal_character(source, digits),))
    if letter in _DIGITS:
        raise BadPattern('a reference back to a group cannot be used')
    return Characters((_escaped_character(source, letter),))


def _read_letter(source: _Source) -> str:
    letter = source.take()
    if not letter:
        raise source.error('bad escape (end of pattern)')
    return letter


def _octal_character(source: _Source, digits: str) -> tuple[str, str]:
    number = int(digits, 8)
    if number > 0o377:
        raise source.error(f'octal escape value \\{digits} outside of range 0-0o377')
    return chr(number), chr(number)


def _escaped_character(source: _Source, letter: str) -> tuple[str, str]:
    """Return the character that a backslash and `letter` stand for, wherever they stand."""
    if letter in _HEX_ESCAPES:
        digits = source.take_while(_HEX, _HEX_ESCAPES[letter])
        if len(digits) < _HEX_ESCAPES[letter] or int(digits, 16) > 0x10FFFF:
            raise source.error(f'incomplete or bad escape \\{letter}{digits}')
        return chr(int(digits, 16)), chr(int(digits, 16))
    if letter == 'N':
        return _named_character(source)
    if letter in _ESCAPES:
        return _ESCAPES[letter], _ESCAPES[letter]
    if letter in _DIGITS or (letter.isascii() and letter.isalpha()):
        raise source.error(f'bad escape \\{letter}')
    return letter, letter


def _named_character(source: _Source) -> tuple[str, str]:
    if not source.accept('{'):
        raise source.error('missing {')
    name = source.take_until('}', 'character name')
    try:
        character = unicodedata.lookup(name)
    except KeyError:
        character = ''
    if len(character) != 1:
        raise source.error(f'undefined character name {name!r}')
    return character, character


def _literal(character: str) -> Characters:
    return Characters(((character, character),))


def _branch(alternatives: list[Sequence]) -> Sequence:
    """Return alternatives without their common beginning; single characters become one set."""
    common = 0
    while all(common < len(each) and each[common] == alternatives[0][common] for each in alternatives):
        common += 1
    rests = [each[common:] for each in alternatives]
    single = [each[0] for each in rests if len(each) == 1]
    sets = [each for each in single if isinstance(each, Characters) and not each.is_negated]
    if len(sets) == len(rests):
        members = dict.fromkeys(member for each in sets for member in each.members)
        return *alternatives[0][:common], Characters(tuple(members))
    return *alternatives[0][:common], Branch(tuple(rests))
