"""Collects the problems of a document, so that its author sees all of them at once."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Sequence

from convergence.errors import Place, Problem, StackValidationFailed
from convergence.template.excerpts import Excerpts

MOST_PROBLEMS = 100
"""Maximum number of reported problems. More are unreadable, and a hostile document could have a million."""

SUGGESTIONS = 20
"""Maximum number of suggestions in a document. Comparing names takes time."""

LONGEST_MESSAGE = 1_000
"""Maximum number of characters of a message. It may repeat a name that is as long as the document."""

LONGEST_COMPARED = 128
"""Maximum number of characters of a compared name. Comparing two names takes quadratic time."""

WARNING = 'Warning'
"""The kind of warnings: probable mistakes that are no errors."""

_HINT = re.compile(r'[;,]? ?([Dd]id you mean "?[^"?]*"?\?)$')


class Problems:
    """The problems of a document in the order of their discovery."""

    def __init__(self) -> None:
        self._found: list[tuple[type[StackValidationFailed], Problem]] = []
        self._warnings: list[Problem] = []
        self._suggestions = SUGGESTIONS
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._found)

    def beside(self) -> Problems:
        """Return an empty collection with the same texts, for problems that are reported separately."""
        problems = Problems()
        problems._texts = self._texts
        return problems

    def copy(self) -> Problems:
        """Return an independent copy."""
        problems = self.beside()
        problems._found = list(self._found)
        problems._warnings = list(self._warnings)
        return problems

    def settled(self, source: str) -> tuple[Problems, str | None]:
        """Return the warnings alone, and the text of the document `source` (None if it was not text)."""
        problems = Problems()
        problems._warnings = self.warnings()
        problems._texts = {name: text for name, text in self._texts.items() if name == source}
        return problems, problems._texts.get(source)

    def quote(self, source: str, text: str) -> None:
        """Use `text` for the excerpts of problems in the document `source`."""
        self._texts.setdefault(source, text)

    def add(
        self,
        message: str,
        place: Place | None = None,
        kind: type[StackValidationFailed] = StackValidationFailed,
    ) -> None:
        """Add a problem.

        :param kind: the error to raise if all problems are of this kind.
        :raises StackValidationFailed: the maximum number of problems is reached.
        """
        self.include(Problem(message, place, kind=kind.__name__), kind)

    def include(self, problem: Problem, kind: type[StackValidationFailed] = StackValidationFailed) -> None:
        """Add a problem of another collection. See `add`."""
        message, hint = _without_hint(problem.message)
        added = dataclasses.replace(problem, message=_shortened(message), hint=problem.hint or hint)
        self._found.append((kind, added))
        if len(self._found) >= MOST_PROBLEMS:
            self._found.append(
                (kind, Problem(f'There are more than {MOST_PROBLEMS} problems; the others are not shown.'))
            )
            self.raise_any()

    def warn(self, message: str, place: Place | None = None, kind: str = WARNING) -> None:
        """Add a warning. Warnings above the maximum number are left out."""
        if len(self._warnings) < MOST_PROBLEMS:
            message, hint = _without_hint(message)
            self._warnings.append(Problem(_shortened(message), place, kind=kind, hint=hint))

    def warnings(self) -> list[Problem]:
        """Return the warnings in the order of the documents, with excerpts."""
        return self._shown(self._warnings)

    def raise_any(self) -> None:
        """Raise the errors in the order of the documents, if there are any.

        :raises StackValidationFailed: or the common subclass of all problems.
        """
        if not self._found:
            return
        kinds = {kind for kind, _ in self._found}
        kind = kinds.pop() if len(kinds) == 1 else StackValidationFailed
        raise kind(self.found())

    def found(self) -> list[Problem]:
        """Return the errors in the order of the documents, with excerpts of known texts."""
        return self._shown(problem for _, problem in self._found)

    def _shown(self, found: Iterable[Problem]) -> list[Problem]:
        problems = sorted(found, key=_order)
        texts = {problem.place.source for problem in problems if problem.place} & self._texts.keys()
        excerpts = {source: Excerpts(self._texts[source]) for source in texts}
        return [_with_excerpt(problem, excerpts) for problem in problems]

    def concerns(self, source: str, path: Sequence[str | int]) -> bool:
        """Return True if there is a problem at `path`, in an enclosing value, or inside."""
        places = (problem.place for _, problem in self._found if problem.place and problem.place.source == source)
        return any(place.path and place.path[: len(path)] == tuple(path[: len(place.path)]) for place in places)

    def suggestion(self, name: str, candidates: Iterable[str]) -> str:
        """Return `` Did you mean "…"?`` if a candidate is similar to the name; otherwise an empty text."""
        if self._suggestions <= 0 or len(name) > LONGEST_COMPARED:
            return ''
        self._suggestions -= 1
        names = [candidate for candidate in candidates if len(candidate) <= LONGEST_COMPARED]
        lowered = {candidate.lower(): candidate for candidate in names}
        close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
        return f' Did you mean "{lowered[close[0]]}"?' if close else ''


def _with_excerpt(problem: Problem, excerpts: dict[str, Excerpts]) -> Problem:
    if problem.place is None or problem.place.source not in excerpts:
        return problem
    return dataclasses.replace(problem, excerpt=excerpts[problem.place.source].at(problem.place))


def _shortened(message: str) -> str:
    return f'{message[:LONGEST_MESSAGE]}…' if len(message) > LONGEST_MESSAGE else message


def _without_hint(message: str) -> tuple[str, str]:
    """Split a message from the ``Did you mean`` at its end."""
    found = _HINT.search(message[-4 * LONGEST_COMPARED :])
    if found is None:
        return message, ''
    hint = found.group(1)
    text = message[: len(message) - len(found.group(0))]
    return text if text.endswith(('.', '!', '?')) else f'{text}.', f'D{hint[1:]}'


def _order(problem: Problem) -> tuple[bool, bool, int, int]:
    """Return the sort key: problems with a place first, those of the template before other documents."""
    place = problem.place
    if place is None:
        return True, True, 0, 0
    return False, place.source != 'template', place.line, place.column
