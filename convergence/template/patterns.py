"""Matches `allowed_pattern` in linear time.

The `re` module backtracks: for some patterns, which a user may send, it takes longer than anybody lives. Here the
pattern is parsed by Python, so that its notation is the one people know, but matched by following all alternatives
at once, character by character. What cannot be matched that way (references back, looking behind) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

from convergence.template.limits import Budget

MAX_LENGTH = 4_096
"""Characters of a pattern."""

MAX_SIZE = 20_000
"""Steps of a compiled pattern; counted repetitions are written out."""

MAX_LOOKS = 3
"""How deeply looking ahead may be nested; each level costs another factor."""

Test: TypeAlias = Callable[[str], bool]

_CATEGORIES: dict[Any, Test] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda character: not character.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    codes.CATEGORY_WORD: lambda character: _is_word(character),
    codes.CATEGORY_NOT_WORD: lambda character: not _is_word(character),
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
_LOOKS = (codes.ASSERT, codes.ASSERT_NOT)


class BadPattern(ValueError):
    """The pattern cannot be used. The text says why."""


@dataclass(slots=True)
class _Step:
    """One step of a compiled pattern.

    :ivar test: consumes a character that satisfies it.
    :ivar targets: steps to go on with, without consuming anything, if `condition` holds.
    """

    test: Test | None = None
    targets: tuple[int, ...] = ()
    condition: Callable[[str, int, Budget], bool] | None = None


class _Compiler:
    """Turns the parsed pattern into steps; the last step is the match."""

    def __init__(self, flags: int, looks: int = 0) -> None:
        self.steps: list[_Step] = []
        self._flags = flags
        self._looks = looks

    def emit(self, step: _Step) -> int:
        if len(self.steps) >= MAX_SIZE:
            raise BadPattern('it repeats too much')
        self.steps.append(step)
        return len(self.steps) - 1

    def sequence(self, items: Iterable[tuple[Any, Any]]) -> None:
        for code, argument in items:
            if code is codes.BRANCH:
                self._branch(argument[1])
            elif code is codes.SUBPATTERN:
                if argument[1] or argument[2]:
                    raise BadPattern('flags inside of a group cannot be used')
                self.sequence(argument[3])
            elif code in _REPEATS:
                self._repeat(*argument)
            elif code is codes.AT:
                self._condition(_anchor(argument))
            elif code in _LOOKS:
                self._look(argument, wanted=code is codes.ASSERT)
            else:
                self._consume(_test(code, argument, self._flags))

    def _consume(self, test: Test) -> None:
        self.emit(_Step(test=test, targets=(len(self.steps) + 1,)))

    def _condition(self, condition: Callable[[str, int, Budget], bool]) -> None:
        self.emit(_Step(condition=condition, targets=(len(self.steps) + 1,)))

    def _branch(self, alternatives: list[Any]) -> None:
        fork = self.emit(_Step())
        starts, ends = [], []
        for alternative in alternatives:
            starts.append(len(self.steps))
            self.sequence(alternative)
            ends.append(self.emit(_Step()))
        self.steps[fork].targets = tuple(starts)
        for end in ends:
            self.steps[end].targets = (len(self.steps),)

    def _repeat(self, least: int, most: Any, body: Any) -> None:
        for _ in range(least):
            self.emit(_Step(targets=(len(self.steps) + 1,)))  # counts repetitions of nothing, too
            self.sequence(body)
        if most is codes.MAXREPEAT:
            fork = self.emit(_Step())
            self.sequence(body)
            self.emit(_Step(targets=(fork,)))
            self.steps[fork].targets = (fork + 1, len(self.steps))
            return
        forks = []
        for _ in range(most - least):
            forks.append(self.emit(_Step()))
            self.sequence(body)
        for fork in forks:
            self.steps[fork].targets = (fork + 1, len(self.steps))

    def _look(self, argument: tuple[int, Any], *, wanted: bool) -> None:
        direction, body = argument
        if direction < 0:
            raise BadPattern('looking behind, (?<=…) or (?<!…), cannot be used')
        if self._looks >= MAX_LOOKS:
            raise BadPattern('looking ahead is nested too deeply')
        inner = _Compiler(self._flags, self._looks + 1)
        inner.sequence(body)
        inner.emit(_Step())
        if len(self.steps) + len(inner.steps) > MAX_SIZE:
            raise BadPattern('it repeats too much')
        steps = inner.steps
        self._condition(lambda text, at, budget: _run(steps, text, at, budget, to_end=False) is wanted)


class Pattern:
    """A compiled pattern.

    :raises BadPattern: not a regular expression, or one that cannot be matched in linear time.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise BadPattern(f'it has {len(text)} characters, more than {MAX_LENGTH}')
        try:
            parsed = parser.parse(text)
            flags = parsed.state.flags
            if flags & ~(re.IGNORECASE | re.DOTALL | re.UNICODE):
                raise BadPattern('of the flags only i and s can be used')
            compiler = _Compiler(flags)
            compiler.sequence(parsed)
        except re.error as error:
            raise BadPattern(str(error)) from None
        except (RecursionError, OverflowError):
            raise BadPattern('it is nested too deeply or repeats too much') from None
        compiler.emit(_Step())
        self._steps = compiler.steps

    def matches(self, text: str, budget: Budget) -> bool:
        """Does the whole text match?

        :raises RequestLimitExceeded: text and pattern are so long that even linear time is too much.
        """
        return _run(self._steps, text, 0, budget, to_end=True)


def _run(steps: list[_Step], text: str, start: int, budget: Budget, *, to_end: bool) -> bool:
    """Follow all alternatives at once. The last step is the match."""
    goal = len(steps) - 1
    current = _closure(steps, [0], text, start, budget)
    for position in range(start, len(text)):
        if not to_end and goal in current:
            return True
        if not current:
            return False
        character = text[position]
        following = []
        for index in current:
            test = steps[index].test
            if test is not None and test(character):
                following.append(index + 1)
        current = _closure(steps, following, text, position + 1, budget)
    return goal in current


def _closure(steps: list[_Step], indices: list[int], text: str, position: int, budget: Budget) -> set[int]:
    """All steps that can be reached from `indices` without consuming a character."""
    seen: set[int] = set()
    stack = indices
    while stack:
        index = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        step = steps[index]
        if step.test is None and (step.condition is None or step.condition(text, position, budget)):
            stack.extend(step.targets)
    budget.spend_steps(len(seen) + 1, 'matching an allowed_pattern')
    return seen


def _is_word(character: str) -> bool:
    return character.isalnum() or character == '_'


def _anchor(code: Any) -> Callable[[str, int, Budget], bool]:
    if code in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING):
        return lambda text, at, budget: at == 0
    if code is codes.AT_END:
        return lambda text, at, budget: at == len(text) or (at == len(text) - 1 and text[at] == '\n')
    if code is codes.AT_END_STRING:
        return lambda text, at, budget: at == len(text)
    if code is codes.AT_BOUNDARY:
        return lambda text, at, budget: _at_boundary(text, at)
    if code is codes.AT_NON_BOUNDARY:
        return lambda text, at, budget: not _at_boundary(text, at)
    raise BadPattern(f'{code} cannot be used')


def _at_boundary(text: str, at: int) -> bool:
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return before is not after


def _test(code: Any, argument: Any, flags: int) -> Test:
    """What a character must satisfy.

    :raises BadPattern: this part of a pattern is no test of one character.
    """
    test = _exact_test(code, argument, flags)
    if flags & re.IGNORECASE and code is not codes.NOT_LITERAL and not (code is codes.IN and _negated(argument)):
        return lambda character: test(character) or test(character.lower()) or test(character.upper())
    if flags & re.IGNORECASE:
        return lambda character: test(character) and test(character.lower()) and test(character.upper())
    return test


def _negated(argument: list[tuple[Any, Any]]) -> bool:
    return bool(argument) and argument[0][0] is codes.NEGATE


def _exact_test(code: Any, argument: Any, flags: int) -> Test:
    if code is codes.LITERAL:
        literal = chr(argument)
        return lambda character: character == literal
    if code is codes.NOT_LITERAL:
        literal = chr(argument)
        return lambda character: character != literal
    if code is codes.ANY:
        return lambda character: bool(flags & re.DOTALL) or character != '\n'
    if code is codes.RANGE:
        low, high = (chr(bound) for bound in argument)
        return lambda character: low <= character <= high
    if code is codes.CATEGORY:
        return _CATEGORIES[argument]
    if code is codes.IN:
        tests = [_exact_test(part, value, flags) for part, value in argument if part is not codes.NEGATE]
        wanted = not _negated(argument)
        return lambda character: any(test(character) for test in tests) is wanted
    names = {codes.GROUPREF: 'a reference back to a group', codes.GROUPREF_EXISTS: 'a condition on a group'}
    raise BadPattern(f'{names.get(code, str(code).lower())} cannot be used')
