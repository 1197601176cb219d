"""The next members of a group: their number, their names, and the ones to renew. Pure.

The oldest member is removed first, and members that do not work before all others. Outputs of the nested stack record
the last request and the progress.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from convergence.core.model import Json
from convergence.resources.builtin.groups.batches import Batch, BatchPolicy, is_finished, next_batch
from convergence.resources.builtin.groups.members import GroupMember, nested_template, output_of, present_members
from convergence.resources.nesting import DesiredStack, NestingContext
from convergence.resources.scaling import COOLDOWNS
from convergence.values import replace

DESIRED = 'desired_capacity'
"""The output with the number of members that was requested last."""
ROLLING = 'rolling_update'
"""The output that says, in the middle of a change a few members at a time, which step was taken last, and how many
members there are to be at its end."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The desired state of a group.

    :param token: of the group's resource; the names of its members derive from it.
    :param member: the definition of new members.
    :param size: number of members.
    :param rolling: how present members get the new definition; None: they keep theirs.
    :param desired: number of members that the template sets; None: it sets none.
    :param types: see `DesiredStack`.
    """

    token: str
    member: GroupMember
    size: int
    rolling: BatchPolicy | None = None
    desired: int | None = None
    types: Mapping[str, str] = field(default_factory=dict)


def stack_of(context: NestingContext, wanted: Membership, cooldowns: Mapping[str, Json] | None = None) -> DesiredStack:
    """Return the next desired stack of a group.

    :param cooldowns: the new value of the output of that name; None: its present value.
    """
    if context.adopted is not None:
        return _stack(context, wanted, dict.fromkeys(context.adopted, wanted.member), {}, cooldowns)
    present = present_members(context)
    order = oldest_first(context, present)
    noted = output_of(context, ROLLING)
    if isinstance(noted, dict) and (noted.get('goal'), noted.get('step')) == (context.goal, context.step):
        # The step was taken already, and its answer was lost.
        return _stack(context, wanted, present, noted, cooldowns)
    current = {name for name, member in present.items() if member == wanted.member}
    fresh = names(wanted.token, present)
    if wanted.rolling is None or current.issuperset(order):
        return _stack(context, wanted, _resized(present, order, wanted, fresh), {}, cooldowns)
    if context.at_once:
        members = dict.fromkeys(_resized(present, order, wanted, fresh), wanted.member)
        return _stack(context, wanted, members, {}, cooldowns)
    failed = {member.name for member in context.members() if member.failed}
    leaving = order[: max(len(order) - wanted.size, 0)]
    batch = next_batch(order, current, wanted.size, wanted.rolling, fresh, failed=failed, leaving=leaving)
    more = not is_finished(batch.members, current | batch.renewed, wanted.size)
    note: dict[str, Json] = {}
    if more:
        note = {'goal': context.goal, 'step': context.step, 'pause_s': wanted.rolling.pause_s, 'size': wanted.size}
    return _stack(context, wanted, _after(present, batch, wanted), note, cooldowns)


def _resized(
    present: Mapping[str, GroupMember], order: list[str], wanted: Membership, fresh: Iterator[str]
) -> dict[str, GroupMember]:
    kept = order[-wanted.size :] if wanted.size else []
    members = {name: present[name] for name in kept}
    return members | dict.fromkeys(itertools.islice(fresh, wanted.size - len(kept)), wanted.member)


def _after(present: Mapping[str, GroupMember], batch: Batch, wanted: Membership) -> dict[str, GroupMember]:
    return {name: wanted.member if name in batch.renewed else present[name] for name in batch.members}


def _stack(
    context: NestingContext,
    wanted: Membership,
    members: Mapping[str, GroupMember],
    rolling: Mapping[str, Json],
    cooldowns: Mapping[str, Json] | None,
) -> DesiredStack:
    kept = output_of(context, COOLDOWNS) if cooldowns is None else dict(cooldowns)
    outputs: dict[str, Json] = {DESIRED: wanted.desired, COOLDOWNS: kept or None, ROLLING: dict(rolling) or None}
    told = {name: value for name, value in outputs.items() if value is not None}
    pause_s = float(str(rolling.get('pause_s', 0.0)))
    return replace(nested_template(members, told, more=bool(rolling), pause_s=pause_s), types=wanted.types)


def oldest_first(context: NestingContext, present: Collection[str]) -> list[str]:
    """Return the members in the order in which they are removed or renewed."""
    rows = {member.name: member for member in context.members()}
    places = {name: place for place, name in enumerate(present)}

    def rank(name: str) -> tuple[bool, float, int]:
        row = rows.get(name)
        return (row is None or not row.failed, row.made_at if row is not None else float('inf'), places[name])

    return sorted(places, key=rank)


def next_size(context: NestingContext, desired: int | None, otherwise: int) -> int:
    """Return the number of members without a signal: the number in the template, once; then the group keeps its size.

    During a change in batches it is the final size: meanwhile the group may have more members, or fewer.

    :param otherwise: for a new group without a number in its template.
    """
    if context.present is None:
        return desired or otherwise
    if desired is not None and desired != output_of(context, DESIRED):
        return desired
    noted = output_of(context, ROLLING)
    aimed = noted.get('size') if isinstance(noted, dict) else None
    return aimed if isinstance(aimed, int) else len(present_members(context))


def names(token: str, present: Collection[str]) -> Iterator[str]:
    """Names for new members, other ones whenever others are there. No end."""
    seed = '\n'.join((token, *sorted(present)))
    for number in itertools.count():
        made = hashlib.sha256(f'{seed}\n{number}'.encode()).digest()
        name = base64.b32encode(made).decode().lower()[:12]
        if name not in present:
            yield name
