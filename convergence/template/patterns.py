"""Matches `allowed_pattern` in linear time.

The module `re` backtracks: some patterns, which users may send, make it run for years. This module follows all
alternatives at once, character by character. `convergence.template.pattern_syntax` refuses the constructs that need
backtracking: references back to a group, and looking behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from convergence.template.limits import Budget
from convergence.template.pattern_syntax import (
    Anchor,
    AnyCharacter,
    BadPattern,
    Branch,
    Characters,
    LookAhead,
    PatternGroup,
    PatternItem,
    Repetition,
    Sequence,
    Syntax,
    parse,
)

__all__ = ['BadPattern', 'Pattern']

MAX_LENGTH = 4_096
"""Maximum number of characters of a pattern."""

MAX_SIZE = 20_000
"""Maximum number of steps of a compiled pattern. The compiler writes out counted repetitions."""

MAX_LOOKS = 3
"""Maximum depth of nested look-ahead. Each level multiplies the time by the length of the text."""

Test: TypeAlias = Callable[[str], bool]

_CATEGORIES: dict[str, Test] = {
    'd': str.isdecimal,
    'D': lambda character: not character.isdecimal(),
    's': str.isspace,
    'S': lambda character: not character.isspace(),
    'w': lambda character: _is_word(character),
    'W': lambda character: not _is_word(character),
}


@dataclass(slots=True)
class _Step:
    """One step of a compiled pattern.

    :ivar test: consumes a character that satisfies it.
    :ivar targets: the next steps, which consume nothing, if `condition` holds.
    """

    test: Test | None = None
    targets: tuple[int, ...] = ()
    condition: Callable[[str, int, Budget], bool] | None = None


class _Compiler:
    """Turns a parsed pattern into steps. The last step is the match."""

    def __init__(self, syntax: Syntax, looks: int = 0) -> None:
        self.steps: list[_Step] = []
        self._syntax = syntax
        self._looks = looks

    def emit(self, step: _Step) -> int:
        if len(self.steps) >= MAX_SIZE:
            raise BadPattern('it repeats too much')
        self.steps.append(step)
        return len(self.steps) - 1

    def sequence(self, items: Iterable[PatternItem]) -> None:
        for item in items:
            if isinstance(item, Branch):
                self._branch(item.alternatives)
            elif isinstance(item, PatternGroup):
                self.sequence(item.body)
            elif isinstance(item, Repetition):
                self._repeat(item)
            elif isinstance(item, Anchor):
                self._condition(_anchor(item.kind))
            elif isinstance(item, LookAhead):
                self._look(item)
            else:
                self._consume(_test(item, self._syntax))

    def _consume(self, test: Test) -> None:
        self.emit(_Step(test=test, targets=(len(self.steps) + 1,)))

    def _condition(self, condition: Callable[[str, int, Budget], bool]) -> None:
        self.emit(_Step(condition=condition, targets=(len(self.steps) + 1,)))

    def _branch(self, alternatives: Iterable[Sequence]) -> None:
        fork = self.emit(_Step())
        starts, ends = [], []
        for alternative in alternatives:
            starts.append(len(self.steps))
            self.sequence(alternative)
            ends.append(self.emit(_Step()))
        self.steps[fork].targets = tuple(starts)
        for end in ends:
            self.steps[end].targets = (len(self.steps),)

    def _repeat(self, item: Repetition) -> None:
        for _ in range(item.least):
            self.emit(_Step(targets=(len(self.steps) + 1,)))  # limits the repetitions of an empty body, too
            self.sequence(item.body)
        if item.most is None:
            fork = self.emit(_Step())
            self.sequence(item.body)
            self.emit(_Step(targets=(fork,)))
            self.steps[fork].targets = (fork + 1, len(self.steps))
            return
        forks = []
        for _ in range(item.most - item.least):
            forks.append(self.emit(_Step()))
            self.sequence(item.body)
        for fork in forks:
            self.steps[fork].targets = (fork + 1, len(self.steps))

    def _look(self, item: LookAhead) -> None:
        if self._looks >= MAX_LOOKS:
            raise BadPattern('looking ahead is nested too deeply')
        inner = _Compiler(self._syntax, self._looks + 1)
        inner.sequence(item.body)
        inner.emit(_Step())
        if len(self.steps) + len(inner.steps) > MAX_SIZE:
            raise BadPattern('it repeats too much')
        steps, is_wanted = inner.steps, not item.is_negated
        self._condition(lambda text, at, budget: _run(steps, text, at, budget, to_end=False) is is_wanted)


class Pattern:
    """A compiled pattern.

    :raises BadPattern: not a regular expression, or one that cannot be matched in linear time.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise BadPattern(f'it has {len(text)} characters, more than {MAX_LENGTH}')
        try:
            syntax = parse(text)
            compiler = _Compiler(syntax)
            compiler.sequence(syntax.body)
        except RecursionError:
            raise BadPattern('it is nested too deeply or repeats too much') from None
        compiler.emit(_Step())
        self._steps = compiler.steps

    def matches(self, text: str, budget: Budget) -> bool:
        """Return True if the whole text matches.

        :raises RequestLimitExceeded: text and pattern are so long that even linear time is too much.
        """
        return _run(self._steps, text, 0, budget, to_end=True)


def _run(steps: list[_Step], text: str, start: int, budget: Budget, *, to_end: bool) -> bool:
    """Follow all alternatives at once and return True if the last step is reached."""
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
    """Return all steps that can be reached from `indices` without consuming a character."""
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


def _anchor(kind: str) -> Callable[[str, int, Budget], bool]:
    if kind in ('^', 'A'):
        return lambda text, at, budget: at == 0
    if kind == '$':
        return lambda text, at, budget: at == len(text) or (at == len(text) - 1 and text[at] == '\n')
    if kind == 'Z':
        return lambda text, at, budget: at == len(text)
    is_boundary = kind == 'b'
    return lambda text, at, budget: _at_boundary(text, at) is is_boundary


def _at_boundary(text: str, at: int) -> bool:
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return before is not after


def _test(item: Characters | AnyCharacter, syntax: Syntax) -> Test:
    """Return the test for one character."""
    if isinstance(item, AnyCharacter):
        matches_all = syntax.dot_matches_all
        return lambda character: matches_all or character != '\n'
    test = _exact_test(item)
    if not syntax.ignores_case:
        return test
    if item.is_negated:
        return lambda character: test(character) and test(character.lower()) and test(character.upper())
    return lambda character: test(character) or test(character.lower()) or test(character.upper())


def _exact_test(item: Characters) -> Test:
    if len(item.members) == 1:
        return _not(_member_test(item.members[0])) if item.is_negated else _member_test(item.members[0])
    tests = [_member_test(member) for member in item.members]
    is_wanted = not item.is_negated
    return lambda character: any(test(character) for test in tests) is is_wanted


def _member_test(member: tuple[str, str] | str) -> Test:
    if isinstance(member, str):
        return _CATEGORIES[member]
    low, high = member
    if low == high:
        return lambda character: character == low
    return lambda character: low <= character <= high


def _not(test: Test) -> Test:
    return lambda character: not test(character)
