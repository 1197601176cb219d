"""Limits for documents. Each limit stops a document that is built to exhaust memory or time.

Sizes are counted on the *expanded* document: aliases, merge keys and repeated parameters multiply a small text.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from convergence.errors import Place, RequestLimitExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for one call of `compile`.

    :param max_bytes: UTF-8 size of a template or environment as sent.
    :param max_depth: how deeply maps and lists may be nested.
    :param max_nodes: maps, lists, keys and values of a document after aliases and merge keys are expanded.
    :param max_aliases: how many times a document may use `*alias`.
    :param max_expanded_bytes: memory for the values of parameters, files and functions: each character counts as one
        byte, each value and each key of a map as `ITEM_BYTES` more.
    :param max_number_length: characters of a number.
    :param max_resources: resources of a template.
    :param max_steps: steps spent on functions, matching patterns and replacing text; about ten million take a second.
    :param max_names: files of a request, and parameters of a request.
    :param max_stored_bytes: what one resource may store of each kind (properties, metadata, an attribute), as JSON.
    """

    max_bytes: int = 4_194_304
    max_depth: int = 64
    max_nodes: int = 500_000
    max_aliases: int = 10_000
    max_expanded_bytes: int = 33_554_432
    max_number_length: int = 64
    max_resources: int = 10_000
    max_steps: int = 5_000_000
    max_names: int = 10_000
    max_stored_bytes: int = 1_048_576

    def check_names(self, what: str, *groups: Collection[str]) -> None:
        """Refuse too many names before they are processed.

        :param what: description of the names, as the subject of an error.
        :raises RequestLimitExceeded: one of the groups is too large.
        """
        most = max(map(len, groups), default=0)
        if most > self.max_names:
            raise exceeded('max_names', self.max_names, f'{what}: {most} are given')


ITEM_BYTES = 64
"""Bytes that a value takes besides its text: a small list takes as much memory as a line of text."""
CALL_STEPS = 10
"""Steps that every call of a function takes."""
REPLACEMENT_STEPS = 60
"""Minimum number of steps of a replacement in a text."""
COMPARISON_STEPS = 30
"""Steps of comparing two items, which are written as JSON."""

STANDARD = Limits()
"""The default limits."""


def exceeded(limit: str, allowed: int, subject: str, place: Place | None = None) -> RequestLimitExceeded:
    """Return the error for an exceeded limit.

    :param limit: the field of `Limits`.
    :param subject: the beginning of a sentence, for example ``The template has 7 bytes``.
    """
    where = f'{place}: ' if place else ''
    return RequestLimitExceeded(f'{where}{subject}; the limit {limit} is {allowed}.')


@dataclass(frozen=True, slots=True)
class Spent:
    """The used part of a `Budget`."""

    steps: int = 0
    text: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.steps + other.steps, self.text + other.text)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.steps - other.steps, self.text - other.text)


class Budget:
    """The remaining part of the limits that several parts of one call share."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._text = limits.max_expanded_bytes
        self._steps = limits.max_steps

    def spend_text(self, length: int, subject: str) -> None:
        """Charge for text before it is created.

        :param length: characters.
        :param subject: its creator, for the error.
        :raises RequestLimitExceeded: all text together exceeds `max_expanded_bytes`.
        """
        self._text -= length
        if self._text < 0:
            raise exceeded(
                'max_expanded_bytes',
                self.limits.max_expanded_bytes,
                f'{subject} makes the expanded document too large',
            )

    def spend_value(self, value: Any, subject: str) -> None:
        """Charge for a created value by its size in memory without sharing.

        :raises RequestLimitExceeded: all values together exceed `max_expanded_bytes`.
        """
        pending, count = [value], 0
        while pending:
            part, size = pending.pop(), ITEM_BYTES
            count += 1
            if isinstance(part, str):
                size += len(part)
            elif isinstance(part, dict):
                size += sum(map(len, part)) + ITEM_BYTES * len(part)
                pending.extend(part.values())
            elif isinstance(part, list):
                pending.extend(part)
            self.spend_text(size, subject)
        self.spend_steps(CALL_STEPS + count, subject)

    @property
    def spent(self) -> Spent:
        """The used part so far."""
        return Spent(self.limits.max_steps - self._steps, self.limits.max_expanded_bytes - self._text)

    def spend(self, spent: Spent, subject: str) -> None:
        """Charge for usage that another budget counted.

        :raises RequestLimitExceeded: the remaining budget is smaller.
        """
        self.spend_steps(spent.steps, subject)
        self.spend_text(spent.text, subject)

    @property
    def steps_left(self) -> int:
        """The number of remaining steps."""
        return max(self._steps, 0)

    def use_up_steps(self, steps: int) -> None:
        """Charge for work that is done already, at most the remaining steps."""
        self._steps = max(self._steps - steps, 0)

    def spend_steps(self, steps: int, subject: str) -> None:
        """Charge for work before it is done.

        :raises RequestLimitExceeded: all work together exceeds `max_steps`.
        """
        self._steps -= steps
        if self._steps < 0:
            raise exceeded('max_steps', self.limits.max_steps, f'{subject} takes too many steps')
