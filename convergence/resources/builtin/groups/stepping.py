"""The steps of the nested stack of a group towards its desired members: at once, or batch by batch. Pure.

The description of the template records the last step. So a step that is repeated because its answer was lost is the
same, also if its members have changed since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from convergence.core.model import Json
from convergence.resources.builtin.groups.batches import BatchPolicy, is_finished, next_batch
from convergence.resources.builtin.groups.members import GroupMember, hidden_names, nested_template, present_members
from convergence.resources.nesting import DesiredStack, NestingContext
from convergence.values import replace

_ABOUT = 'The members of a group'
_TOLD = re.compile(rf'{_ABOUT}: step (?P<step>\d+) towards template (?P<goal>.*)')


def number_of(name: str) -> tuple[int, int, str]:
    """Return the sort key of the name of a member: numbers by their value, before all other names."""
    return (0, int(name), '') if name.isdecimal() else (1, 0, name)


@dataclass(frozen=True, slots=True)
class MembersWanted:
    """The desired state of a group.

    :param members: by name.
    :param policy: the batches; None: all at once.
    :param others: makes temporary members.
    :param outputs: of the nested stack, by name.
    :param removed: names of members that are removed at once, against the policy.
    """

    members: Mapping[str, GroupMember]
    policy: BatchPolicy | None = None
    others: Iterable[tuple[str, GroupMember]] = ()
    outputs: Mapping[str, Json] | None = None
    removed: frozenset[str] = frozenset()


def is_repeated(context: NestingContext) -> bool:
    """Return True if this step, or a later one, has been stored already."""
    told = _TOLD.fullmatch(str((context.present or {}).get('description', '')))
    return told is not None and told['goal'] == context.goal and int(told['step']) > context.step


def next_stack(context: NestingContext, wanted: Callable[[], MembersWanted]) -> DesiredStack:
    """The stack of the present step."""
    goal = wanted()
    if context.adopted is not None or context.at_once:
        goal = replace(goal, policy=None)
    present = {name: each for name, each in present_members(context).items() if name not in goal.removed}
    if is_repeated(context):
        assert context.present is not None
        again = DesiredStack(context.present, context.present_parameters, hidden=hidden_names(context.present))
        return _and_then(again, present, goal)
    members = goal.members
    if goal.policy is not None and (context.action == 'CREATE' or _outdated(present, goal)):
        members = _batch(context, present, goal, goal.policy)
    return _and_then(nested_template(members, goal.outputs, description=_step(context)), members, goal)


def _step(context: NestingContext) -> str:
    return f'{_ABOUT}: step {context.step + 1} towards template {context.goal}'


def _and_then(stack: DesiredStack, members: Mapping[str, GroupMember], goal: MembersWanted) -> DesiredStack:
    if goal.policy is None or is_finished(members, _current(members, goal), len(goal.members)):
        return stack
    return replace(stack, more=True, pause_s=goal.policy.pause_s)


def _current(members: Mapping[str, GroupMember], goal: MembersWanted) -> set[str]:
    """Return the names of members with their final definition."""
    return {name for name, each in members.items() if name in goal.members and each.body == goal.members[name].body}


def _outdated(present: Mapping[str, GroupMember], goal: MembersWanted) -> bool:
    return any(name in goal.members and each.body != goal.members[name].body for name, each in present.items())


def _batch(
    context: NestingContext, present: Mapping[str, GroupMember], goal: MembersWanted, policy: BatchPolicy
) -> dict[str, GroupMember]:
    good = {each.name for each in context.members() if not each.failed}
    others: dict[str, GroupMember] = {}

    def fresh() -> Iterator[str]:
        yield from (name for name in goal.members if name not in present)
        for name, each in goal.others:
            if name not in present and name not in goal.members:
                others[name] = each
                yield name

    batch = next_batch(
        sorted(present, key=number_of, reverse=True),
        _current(present, goal),
        len(goal.members),
        policy,
        fresh(),
        failed={name for name in present if name not in good},
        leaving={name for name in present if name not in goal.members},
    )
    known = {**others, **present}
    return {
        name: goal.members[name] if name in goal.members and name in batch.renewed else known[name]
        for name in sorted(batch.members, key=number_of)
    }
