"""Collects what is wrong with a document, so that its author is told everything at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from convergence.errors import Place, Problem, StackValidationFailed

MOST = 100
"""Problems told at once. Nobody reads more, and a hostile document could have a million."""

SUGGESTIONS = 20
"""Comparing names costs time, so only the first misspelt names of a document get a suggestion."""

LONGEST_MESSAGE = 1_000
"""Characters of a message; it may repeat a name that is as long as the document."""

LONGEST_COMPARED = 128
"""Characters. Comparing two names takes quadratic time."""


class Problems:
    """The problems found so far, in the order in which they were found."""

    def __init__(self) -> None:
        self._found: list[tuple[type[StackValidationFailed], Problem]] = []
        self._suggestions = SUGGESTIONS

    def __len__(self) -> int:
        return len(self._found)

    def add(
        self,
        message: str,
        place: Place | None = None,
        kind: type[StackValidationFailed] = StackValidationFailed,
    ) -> None:
        """Remember a problem.

        :param kind: the error to raise if all problems are of this kind.
        :raises StackValidationFailed: there are so many that looking further is of no use.
        """
        if len(message) > LONGEST_MESSAGE:
            message = f'{message[:LONGEST_MESSAGE]}…'
        self._found.append((kind, Problem(message, place)))
        if len(self._found) >= MOST:
            self._found.append((kind, Problem(f'There are more than {MOST} problems; the others are not shown.')))
            self.raise_any()

    def raise_any(self) -> None:
        """Raise what was found, in the order of the documents; do nothing if all is well.

        :raises StackValidationFailed: or the subclass that all problems have in common.
        """
        if not self._found:
            return
        kinds = {kind for kind, _ in self._found}
        kind = kinds.pop() if len(kinds) == 1 else StackValidationFailed
        raise kind([problem for _, problem in sorted(self._found, key=lambda found: _order(found[1]))])

    def suggestion(self, name: str, candidates: Iterable[str]) -> str:
        """`` Did you mean "…"?`` if a candidate looks like a misspelt name, else nothing."""
        if self._suggestions <= 0 or len(name) > LONGEST_COMPARED:
            return ''
        self._suggestions -= 1
        names = [candidate for candidate in candidates if len(candidate) <= LONGEST_COMPARED]
        lowered = {candidate.lower(): candidate for candidate in names}
        close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
        return f' Did you mean "{lowered[close[0]]}"?' if close else ''


def _order(problem: Problem) -> tuple[bool, bool, int, int]:
    """Problems with a place first, those of the template before those of other documents."""
    place = problem.place
    if place is None:
        return True, True, 0, 0
    return False, place.source != 'template', place.line, place.column
