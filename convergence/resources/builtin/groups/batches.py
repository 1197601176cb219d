"""Changes the members of a group in batches. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How many members may change at once.

    :param max_size: maximum number of members that are made or changed in one batch.
    :param min_in_service: minimum number of members that stay unchanged meanwhile, if the group has so many.
    :param pause_s: seconds between two batches.
    """

    max_size: int = 1
    min_in_service: int = 0
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    """The next state of a group.

    :param members: their names.
    :param renewed: those that get their final definition in this batch, new ones included.
    """

    members: tuple[str, ...]
    renewed: frozenset[str]


def is_finished(members: Collection[str], current: Collection[str], size: int) -> bool:
    """Return True if a group has its final size and all its members have their final definition."""
    return len(members) == size and all(name in current for name in members)


def next_batch(
    members: Sequence[str],
    current: Collection[str],
    size: int,
    policy: BatchPolicy,
    fresh: Iterator[str],
    *,
    failed: Collection[str] = (),
    leaving: Collection[str] = (),
) -> Batch:
    """Return the next batch on the way to the final state of a group.

    Failed members are renewed before all others, and all at once: they are not in service and change in any case. If
    fewer members than the minimum would stay unchanged, temporary ones are added; they are removed with the last
    change.

    :param members: the names of the present members; the first is changed, or removed, first.
    :param current: the names of members with their final definition.
    :param size: the final number of members.
    :param fresh: yields names for new members.
    :param failed: the names of members that do not work.
    :param leaving: the names of members without a place in the final state: they are not changed any more.
    """
    staying = [name for name in members if name not in leaving]
    broken = [name for name in staying if name in failed and name not in current]
    if broken and len(members) <= size:
        return Batch(tuple(members), frozenset(broken))
    good = [name for name in staying if name in current]
    outdated = [name for name in staying if name not in current and name not in broken]
    count = min(policy.max_size, max(size - len(good), 0))
    most = count + max(min(len(members), size - count), min(policy.min_in_service, size, len(members)))
    going = [*(name for name in members if name in leaving), *broken, *outdated, *good][: max(len(members) - most, 0)]
    kept = [name for name in members if name not in going]
    added = list(islice(fresh, most - len(kept)))
    changed = [name for name in (*broken, *outdated) if name in kept][: max(count - len(added), len(broken))]
    return Batch((*kept, *added), frozenset((*added, *changed)))
