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
class Repeat:
    """A repetition. `most` is None without an upper bound."""

    body: Sequence
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """``(...)``. It is one item for a quantifier, and otherwise the same as its body."""

    body: Sequence


@dataclass(frozen=True, slots=True)
class Branch:
    """Alternatives."""

    alternatives: tuple[Sequence, ...]


Item: TypeAlias = Characters | AnyCharacter | Anchor | LookAhead | Repeat | Group | Branch
Sequence: TypeAlias = tuple[Item, ...]


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


class _Parser:
    """Reads a pattern from left to right. Methods consume the construct that they are named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags: set[str] = set()
        self._names: set[str] = set()

    def pattern(self) -> Syntax:
        body = self._alternatives(is_whole=True)
        if self._at < len(self._text):
            raise self._error('unbalanced parenthesis')
        return Syntax(body, 'i' in self._flags, 's' in self._flags)

    # --- characters -------------------------------------------------------------------------------------------

    def _next(self) -> str:
        """Return the next character without consuming it; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._next()
        self._at += 1
        return character

    def _accept(self, character: str) -> bool:
        if self._next() != character:
            return False
        self._at += 1
        return True

    def _while(self, allowed: frozenset[str], most: int = MAX_REPEAT) -> str:
        start = self._at
        while self._at - start < most and self._next() in allowed:
            self._at += 1
        return self._text[start : self._at]

    def _until(self, end: str, name: str) -> str:
        found, separator, _ = self._text[self._at :].partition(end)
        if not separator or not found:
            raise self._error(f'missing {name}')
        self._at += len(found) + 1
        return found

    def _error(self, message: str) -> BadPattern:
        return BadPattern(f'{message} at position {self._at}')

    # --- sequences --------------------------------------------------------------------------------------------

    def _alternatives(self, *, is_whole: bool = False) -> Sequence:
        found = [self._sequence(takes_flags=is_whole)]
        while self._accept('|'):
            found.append(self._sequence())
        return found[0] if len(found) == 1 else _branch(found)

    def _sequence(self, *, takes_flags: bool = False) -> Sequence:
        items: list[Item] = []
        while (character := self._next()) and character not in '|)':
            if character in '?*+{':
                self._quantifier(items)
                continue
            self._at += 1
            if character == '(':
                item = self._group(takes_flags=takes_flags and not items)
            elif character == '[':
                item = self._set()
            elif character == '\\':
                item = self._escape()
            elif character in '^$':
                item = Anchor(character)
            else:
                item = AnyCharacter() if character == '.' else _literal(character)
            if item is not None:
                items.append(item)
        return tuple(inner for item in items for inner in (item.body if isinstance(item, Group) else (item,)))

    def _quantifier(self, items: list[Item]) -> None:
        """Replace the last item by its repetition. Braces without a count in them are characters."""
        bounds = self._bounds()
        if bounds is None:
            items.append(_literal('{'))
            return
        if not items or isinstance(items[-1], Anchor):
            raise self._error('nothing to repeat')
        item = items[-1]
        if isinstance(item, Repeat):
            raise self._error('multiple repeat')
        if self._accept('+'):
            raise BadPattern('a possessive quantifier such as a*+ cannot be used')
        self._accept('?')  # Whether a repetition is greedy makes no difference for a match of the whole text.
        items[-1] = Repeat(item.body if isinstance(item, Group) else (item,), *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        character = self._take()
        if character in _QUANTIFIERS:
            return _QUANTIFIERS[character]
        start = self._at
        least = self._while(_DIGITS)
        most = self._while(_DIGITS) if self._accept(',') else least
        if self._at == start or not self._accept('}'):
            self._at = start
            return None
        if any(int(bound or 0) >= MAX_REPEAT for bound in (least, most)):
            raise BadPattern('it is nested too deeply or repeats too much')
        if most and int(most) < int(least or 0):
            raise self._error('min repeat greater than max repeat')
        return int(least or 0), int(most) if most else None

    # --- groups -----------------------------------------------------------------------------------------------

    def _group(self, *, takes_flags: bool) -> Item | None:
        """Return the item; None for a comment and for flags."""
        if not self._accept('?'):
            return Group(self._rest_of_group())
        kind = self._take()
        if kind == '#':
            _, end, _ = self._text[self._at :].partition(')')
            if not end:
                raise self._error('missing ), unterminated comment')
            self._at = self._text.index(')', self._at) + 1
            return None
        if kind in ('=', '!'):
            return LookAhead(self._rest_of_group(), kind == '!')
        if kind == ':':
            return Group(self._rest_of_group())
        if kind == 'P' and self._accept('<'):
            self._name()
            return Group(self._rest_of_group())
        if kind and kind in _FLAGS:
            self._at -= 1
            self._set_flags(takes_flags=takes_flags)
            return None
        raise self._refused(kind)

    def _rest_of_group(self) -> Sequence:
        start = self._at
        body = self._alternatives()
        if not self._accept(')'):
            self._at = start
            raise self._error('missing ), unterminated subpattern')
        return body

    def _name(self) -> None:
        name = self._until('>', 'group name')
        if not name.isidentifier():
            raise self._error(f'bad character in group name {name!r}')
        if name in self._names:
            raise self._error(f'redefinition of group name {name!r}')
        self._names.add(name)

    def _set_flags(self, *, takes_flags: bool) -> None:
        flags = self._while(_FLAGS)
        if self._next() in (':', '-'):
            raise BadPattern('flags inside of a group cannot be used')
        if not self._accept(')'):
            raise self._error('unknown flag')
        if not takes_flags:
            raise self._error('global flags not at the start of the expression')
        if not set(flags) <= set('isu'):
            raise BadPattern('of the flags only i and s can be used')
        self._flags.update(flags)

    def _refused(self, kind: str) -> BadPattern:
        """Return the error for a group that begins with ``(?`` and `kind`."""
        if kind == '<' and self._next() in ('=', '!'):
            return BadPattern('looking behind, (?<=…) or (?<!…), cannot be used')
        names = {'(': 'a condition on a group', '>': 'an atomic group', '-': 'a flag inside of a group'}
        if kind == 'P' and self._next() == '=':
            return BadPattern('a reference back to a group cannot be used')
        if kind in names:
            return BadPattern(f'{names[kind]} cannot be used')
        return self._error(f'unknown extension ?{kind}' if kind else 'unexpected end of pattern')

    # --- sets and escapes -------------------------------------------------------------------------------------

    def _set(self) -> Item:
        start = self._at
        is_negated = self._accept('^')
        members: list[tuple[str, str] | str] = []
        while not (members and self._accept(']')):
            low = self._member(start)
            if self._next() != '-' or self._text[self._at + 1 : self._at + 2] == ']':
                members.append(low)
                continue
            self._at += 1
            high = self._member(start)
            if isinstance(low, str) or isinstance(high, str) or high[0] < low[0]:
                raise self._error('bad character range')
            members.append((low[0], high[0]))
        return Characters(tuple(dict.fromkeys(members)), is_negated)

    def _member(self, start: int) -> tuple[str, str] | str:
        """Consume one character or category of a set."""
        character = self._take()
        if not character:
            self._at = start
            raise self._error('unterminated character set')
        if character != '\\':
            return character, character
        letter = self._letter()
        if letter in _CATEGORIES:
            return letter
        if letter == 'b':
            return '\b', '\b'
        if letter in _OCTAL:
            return self._octal(letter + self._while(_OCTAL, 2))
        return self._escaped(letter)

    def _escape(self) -> Item:
        letter = self._letter()
        if letter in _CATEGORIES:
            return Characters((letter,))
        if letter in _ANCHORS:
            return Anchor(letter)
        if letter == '0':
            return Characters((self._octal(letter + self._while(_OCTAL, 2)),))
        digits = self._text[self._at - 1 : self._at + 2]
        if letter in _OCTAL and len(digits) == 3 and set(digits) <= _OCTAL:
            self._at += 2
            return Characters((self._octal(digits),))
        if letter in _DIGITS:
            raise BadPattern('a reference back to a group cannot be used')
        return Characters((self._escaped(letter),))

    def _letter(self) -> str:
        letter = self._take()
        if not letter:
            raise self._error('bad escape (end of pattern)')
        return letter

    def _octal(self, digits: str) -> tuple[str, str]:
        number = int(digits, 8)
        if number > 0o377:
            raise self._error(f'octal escape value \\{digits} outside of range 0-0o377')
        return chr(number), chr(number)

    def _escaped(self, letter: str) -> tuple[str, str]:
        """Return the character that a backslash and `letter` stand for, wherever they stand."""
        if letter in _HEX_ESCAPES:
            digits = self._while(_HEX, _HEX_ESCAPES[letter])
            if len(digits) < _HEX_ESCAPES[letter] or int(digits, 16) > 0x10FFFF:
                raise self._error(f'incomplete or bad escape \\{letter}{digits}')
            return chr(int(digits, 16)), chr(int(digits, 16))
        if letter == 'N':
            return self._named()
        if letter in _ESCAPES:
            return _ESCAPES[letter], _ESCAPES[letter]
        if letter in _DIGITS or (letter.isascii() and letter.isalpha()):
            raise self._error(f'bad escape \\{letter}')
        return letter, letter

    def _named(self) -> tuple[str, str]:
        if not self._accept('{'):
            raise self._error('missing {')
        name = self._until('}', 'character name')
        try:
            character = unicodedata.lookup(name)
        except KeyError:
            character = ''
        if len(character) != 1:
            raise self._error(f'undefined character name {name!r}')
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
