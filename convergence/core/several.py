"""Decisions about several stacks that come true in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar

from convergence.core.effects import Decision, Effect, InsertStack, NotifyNode, RequireRoom
from convergence.values import replace

V = TypeVar('V')


def joined(decisions: Sequence[Decision[V] | None]) -> Decision[tuple[V | None, ...]]:
    """All of them in one; None stands for a stack about which nothing is decided.

    New stacks come first: what is refused because there is such a stack is refused before anything else is written.
    Nodes of the stack around that are told of come after all else, in the order in which everybody locks them. The room
    in their tree comes last, and once: everybody in the tree waits for whoever has it.
    """
    made = [each for each in decisions if each is not None]
    effects = tuple(chain.from_iterable(each.effects for each in made))
    new = [each for each in effects if isinstance(each, InsertStack)]
    others = [each for each in effects if not isinstance(each, InsertStack | NotifyNode | RequireRoom)]
    told = (each for each in effects if isinstance(each, NotifyNode))
    in_order = sorted(told, key=lambda each: (each.traversal_id, each.number))
    rooms = _in_all(each for each in effects if isinstance(each, RequireRoom))
    verdict = tuple(None if each is None else each.verdict for each in decisions)
    return Decision(verdict, (*new, *others, *in_order, *rooms), tuple(chain.from_iterable(each.wake for each in made)))


def _in_all(rooms: Iterable[RequireRoom]) -> list[Effect]:
    """One for each tree and limit."""
    wanted: dict[tuple[str, int | None], RequireRoom] = {}
    for room in rooms:
        before = wanted.get((room.root_id, room.most))
        wanted[room.root_id, room.most] = room if before is None else replace(before, more=before.more + room.more)
    return list(wanted.values())
