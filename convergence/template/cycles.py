"""Finds circular dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

MOST_CYCLES = 5
"""Maximum number of reported cycles. Breaking one often breaks others."""


def cycles(requires: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return some cycles as lists of names. The first name stands at the end again.

    Iterative, because a chain may be as long as the template.

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
    """Return the cycles on a depth-first walk from `start`. The walk skips finished names."""
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
    """Yield the names, each after its requirements. Names in a cycle, and names that require them, are left out.

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
