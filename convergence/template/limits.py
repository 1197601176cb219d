"""What a document may cost. Every limit exists because somebody may send a document made to exhaust us.

Sizes are counted on the *expanded* document: aliases, merge keys and repeated parameters multiply a small text.
"""

from __future__ import annotations

from dataclasses import dataclass

from convergence.errors import Place, RequestLimitExceeded


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for one call of `compile`.

    :param max_bytes: UTF-8 size of a template or environment as sent.
    :param max_depth: how deeply maps and lists may be nested.
    :param max_nodes: maps, lists, keys and values of a document after aliases and merge keys are expanded.
    :param max_aliases: how many times a document may use `*alias`.
    :param max_expanded_bytes: characters of all text after aliases, parameters, files and functions are filled in.
    :param max_number_length: characters of a number.
    :param max_resources: resources of a template.
    :param max_steps: steps spent on matching patterns and replacing text; some ten million steps take a second.
    """

    max_bytes: int = 524_288
    max_depth: int = 64
    max_nodes: int = 500_000
    max_aliases: int = 10_000
    max_expanded_bytes: int = 33_554_432
    max_number_length: int = 64
    max_resources: int = 1_000
    max_steps: int = 5_000_000


STANDARD = Limits()
"""What applies where nobody says otherwise."""


def exceeded(limit: str, allowed: int, subject: str, place: Place | None = None) -> RequestLimitExceeded:
    """The error for something that is larger than a limit.

    :param limit: the field of `Limits`.
    :param subject: what is too large, as a sentence without its end, for example ``The template has 7 bytes``.
    """
    where = f'{place}: ' if place else ''
    return RequestLimitExceeded(f'{where}{subject}; the limit {limit} is {allowed}.')


class Budget:
    """What is left of the limits that several parts of one call share."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._text = limits.max_expanded_bytes
        self._steps = limits.max_steps

    def spend_text(self, length: int, subject: str) -> None:
        """Account for text about to be made.

        :param length: characters.
        :param subject: who makes it, for the error.
        :raises RequestLimitExceeded: all text together would be longer than `max_expanded_bytes`.
        """
        self._text -= length
        if self._text < 0:
            raise exceeded(
                'max_expanded_bytes',
                self.limits.max_expanded_bytes,
                f'{subject} makes the expanded document too large',
            )

    def spend_steps(self, steps: int, subject: str) -> None:
        """Account for work about to be done.

        :raises RequestLimitExceeded: all work together would be more than `max_steps`.
        """
        self._steps -= steps
        if self._steps < 0:
            raise exceeded('max_steps', self.limits.max_steps, f'{subject} takes too many steps')
