"""Decides which package provides a resource type that several packages offer.

The packages that the operator prefers come first, then Convergence itself, then the first name in alphabetical order.
That order is the same on every machine, but arbitrary, so a warning names it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from convergence.resources.plugins import Offering

LOG = logging.getLogger(__name__)

OWN = 'convergence'
"""The name of this distribution."""

_SHOWN = 3
"""Maximum number of types that a warning names; more would fill the line."""


class Preference:
    """An order of packages.

    :param prefer: names of manifests or of distributions, most preferred first.
    :param is_silent: True to log no warnings, for programs that only check templates.
    """

    def __init__(self, prefer: Sequence[str] = (), *, is_silent: bool = False) -> None:
        self._prefer = tuple(prefer)
        self._level = logging.DEBUG if is_silent else logging.WARNING

    def choose(self, offers: Iterable[Offering]) -> dict[str, Any]:
        """For each name the one that is preferred, if several packages offer something under it."""
        by_name: dict[str, list[Offering]] = defaultdict(list)
        for offer in offers:
            by_name[offer.name].append(offer)
        by_chance: dict[tuple[str, ...], list[str]] = defaultdict(list)
        chosen = {}
        for name, several in by_name.items():
            first, *others = sorted(several, key=self._order)
            chosen[name] = first.offered
            if others and self._rank(first) == self._rank(others[0]):
                by_chance[tuple(dict.fromkeys(each.source for each in (first, *others)))].append(name)
        for sources, names in by_chance.items():
            if len(sources) > 1:
                self._tell(sources, sorted(names))
        return chosen

    def require_known(self, offers: Iterable[Offering]) -> None:
        """Warn of preferred packages that offer nothing here: a name that is misspelt prefers nothing."""
        known = {name for offer in offers for name in (offer.source, offer.package)}
        for name in self._prefer:
            if name not in known:
                LOG.log(
                    self._level,
                    '[plugins] prefer names %s, and no package of that name offers resource types here; there are %s',
                    name,
                    ', '.join(sorted(known - {''})) or 'none',
                )

    def _rank(self, offer: Offering) -> int:
        named = [place for place, name in enumerate(self._prefer) if name in (offer.source, offer.package)]
        if named:
            return named[0]
        return len(self._prefer) + (offer.package != OWN)

    def _order(self, offer: Offering) -> tuple[int, str, str]:
        return self._rank(offer), offer.source, offer.package

    def _tell(self, sources: Sequence[str], names: Sequence[str]) -> None:
        more = f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''
        LOG.log(
            self._level,
            'Several packages offer %s%s: %s. Using those of %s, the first name in the alphabet; set [plugins] '
            'prefer to choose',
            ', '.join(names[:_SHOWN]),
            more,
            ' and '.join(sources),
            sources[0],
        )
