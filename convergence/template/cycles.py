"""Finds resources that require each other in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

MOST_CYCLES = 5
"""Circles told at once; breaking one often breaks others."""


def cycles(requires: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Some circles, each as the names along it, the first name once more at the end; empty if there are none.

    Iterative, for a chain may be as long as the template.

    :param requires: for each name the names it requires, all of which are keys too.
    """
    found: list[list[str]] = []
    finished: set[str] = set()
    for start in requires:
        if start not in finished:
            found += _from(start, requires, finished)
        if len(found) >= MOST_CYCLES:
            break
    return found[:MOST_CYCLES]


def _from(start: str, requires: Mapping[str, Sequence[str]], finished: set[str]) -> list[list[str]]:
    """The circles met on a walk from `start`, depth first, past nothing that is finished."""
    found: list[list[str]] = []
    path = [start]
    positions = {start: 0}
    pending: list[Iterator[str]] = [iter(requires[start])]
    while pending:
        name = next(pending[-1], None)
        if name is None:
            pending.pop()
            done = path.pop()
            del positions[done]
            finished.add(done)
        elif name in positions:
            if len(found) < MOST_CYCLES:
                found.append([*path[positions[name] :], name])
        elif name not in finished:
            positions[name] = len(path)
            path.append(name)
            pending.append(iter(requires[name]))
    return found


def in_order(requires: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The names, each after all that it requires. Those in a circle, and those that require one of them, never come.

    :param requires: as for `cycles`.
    """
    missing = {name: len(set(others)) for name, others in requires.items()}
    required_by: dict[str, list[str]] = {name: [] for name in requires}
    for name, others in requires.items():
        for other in set(others):
            required_by[other].append(name)
    ready = [name for name, count in missing.items() if not count]
    for name in ready:
        yield name
        for other in sorted(required_by[name]):
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
