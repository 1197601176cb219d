"""How the members of a group are changed a few at a time. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How many members may be changed at once.

    :param max_size: how many are made or changed in one batch, at most.
    :param min_in_service: how many are to be left alone meanwhile, as far as there are so many.
    :param pause_s: seconds between two batches.
    """

    max_size: int = 1
    min_in_service: int = 0
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    """What a group should be next.

    :param members: their names.
    :param renewed: those among them that are to be as all should be in the end, which includes the new ones.
    """

    members: tuple[str, ...]
    renewed: frozenset[str]


def is_finished(members: Collection[str], current: Collection[str], size: int) -> bool:
    """Whether a group has the size that it should have, and all its members are as they should be."""
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
    """The next step from what a group is to what it should be.

    Members that failed are renewed before all others, and all at once: they serve nobody, and are made again with
    whatever change there is. Where fewer members than must stay in service would be left alone, others are added for
    the time being; they are taken away when the last change is made.

    :param members: the names of those that are there; who stands first is changed, or removed, first.
    :param current: the names of those that are as they should be.
    :param size: how many members there should be in the end.
    :param fresh: gives names for members that are added.
    :param failed: the names of members that do not work.
    :param leaving: the names of members that will not be there in the end: they are not changed any more.
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
