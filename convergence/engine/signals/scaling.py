"""Scales groups when their policies are signalled.

The nested stack of the group gets another goal in one transaction that has locked that stack and the group's row. So
the second of two simultaneous signals counts from the result of the first, or is refused because the group is being
scaled. The group's row is not claimed for that, and the parent stack does not take part. Only the row's values about
the members become outdated, so that the next update reads them again.

The history of the nested stack shows when the group was scaled last, and so the end of its cooldown. If the policy has
another cooldown than the group, an output of that stack records it: it is stored with the goal, in the same
transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from convergence import errors
from convergence.core.effects import Decision, Effect, InsertEvents, UpdateResources
from convergence.core.model import Action, Goal, Json, Status, TraversalStatus
from convergence.core.request import Request
from convergence.core.rows import Event, Resource, Stack, Traversal
from convergence.core.scaling import Scaling
from convergence.core.views import PlanView, SignalView
from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.db.scopes import SignalledResource
from convergence.db.transaction import Transactions
from convergence.engine.callers.permits import Permits
from convergence.engine.nesting.desired import DesiredStacks, is_referred, members_of
from convergence.engine.nesting.starts import NestedStarts
from convergence.engine.traversals.refusals import may_get_goal
from convergence.engine.traversals.traversals import ROUNDS, Overtaken
from convergence.resources.invocation import Subject, build_call
from convergence.resources.nesting import Member
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.scaling import (
    Adjustment,
    PolicyType,
    ScaledType,
    adjusted,
    told_by,
)

LOG = logging.getLogger(__name__)

REMEMBERED = 20
"""Number of a nested stack's latest operations that are searched for the last scaling."""

May = Callable[[Resource], None]


@dataclass(frozen=True, slots=True)
class _Policy:
    """A signalled policy, and the adjustment that it requests."""

    stack: Stack
    row: Resource
    group: str
    adjustment: Adjustment
    said: str


@dataclass(frozen=True, slots=True)
class _Group:
    """A group to be scaled.

    :param stack: its nested stack.
    """

    row: Resource
    stack: Stack
    kind: ScaledType[Any]


class NoAction(Exception):
    """A signal has no effect; the text says why.

    :param size: how many members the group has, where they were counted.
    """

    def __init__(self, why: str, size: int | None = None) -> None:
        super().__init__(why)
        self.size = size


class GroupScaling:
    """Scales groups when their policies are signalled."""

    def __init__(
        self,
        store: Transactions,
        reader: ReaderPort,
        desired: DesiredStacks,
        starts: NestedStarts,
        types: Registry,
        new_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._reader = reader
        self._desired = desired
        self._starts = starts
        self._types = types
        self._new_id = new_id

    def signal(self, stack: Stack, row: Resource, kind: PolicyType[Any], details: Json, may: May) -> str:
        """Scale the group of a signalled policy, if that is possible now. An event of the policy and the answer say the
        result.

        :param row: of the policy.
        :param may: raises an error for the sender if it may not signal the row.
        :raises EntityNotFound: there is no such group.
        :raises Conflict: the group keeps changing.
        """
        call = build_call(kind, Subject.of(stack, row), row.properties, strictness=Strictness.LENIENT)
        policy = _Policy(stack, row, kind.group(call), kind.adjustment(call), told_by(details))
        may(self._reader.resource(row.id) or row)
        try:
            # Ignore the state of the alarm: its author has chosen the states in which it signals the policy.
            return self._scale(policy)
        except NoAction as no:
            suppressed = _asked(policy, no.size, no.size, str(no))
        told = f'Signal: {policy.said}; no action required: {suppressed.message}'
        self._tell(policy, told, suppressed)
        return told

    def _scale(self, policy: _Policy) -> str:
        for _ in range(ROUNDS):
            try:
                return self._start(policy, self._group(policy))
            except Overtaken:
                continue
        raise errors.Conflict(f'the group {policy.group} keeps changing')

    # --- checks -----------------------------------------------------------------------------------------------

    def _group(self, policy: _Policy) -> _Group:
        """The group that a policy refers to, in the same stack.

        :raises NoAction: it is busy, or not in a state to be scaled.
        """
        row = self._referred(policy)
        kind = self._types.get(row.type) if row is not None and row.type in self._types else None
        if row is None or not isinstance(kind, ScaledType):
            raise errors.EntityNotFound(f'Alarm {policy.row.name} could not find scaling group named "{policy.group}"')
        if not _is_at_rest(row):
            raise NoAction(f'the group {row.name} is {row.action}_{row.status}')
        stack = self._reader.stack(row.token or '')
        if stack is None or stack.deleted_at is not None:
            raise NoAction(f'the nested stack of {row.name} was deleted')
        if stack.status is Status.IN_PROGRESS:
            raise NoAction('due to scaling activity')
        return _Group(row, stack, kind)

    def _referred(self, policy: _Policy) -> Resource | None:
        names = [*(policy.row.definition.requires if policy.row.definition is not None else ())]
        rows = in_service(self._reader.resources_named(policy.stack.id, names), policy.stack.template_id).values()
        found = [row for row in rows if is_referred(row, policy.group)]
        if not found:
            every = in_service(self._reader.resources(policy.stack.id), policy.stack.template_id).values()
            found = [row for row in every if is_referred(row, policy.group)]
        return found[0] if found else None

    def _require_no_cooldown(self, group: _Group, size: int, cooldowns: Mapping[str, float], default_s: float) -> None:
        """Check that the group is in no cooldown.

        :raises NoAction: it is.
        """
        history = self._reader.traversals(group.stack.id, newest=REMEMBERED)
        until, cooldown_s = cooldown_end(history, cooldowns, default_s)
        if until > self._reader.now():
            raise NoAction(f'due to cooldown, cooldown {cooldown_s:g}', size)

    # --- doing ------------------------------------------------------------------------------------------------

    def _start(self, policy: _Policy, group: _Group) -> str:
        resting = self._desired.resting(policy.stack, group.row, group.stack)
        bounds, size = group.kind.bounds(resting.call), resting.size()
        wanted = adjusted(size, policy.adjustment, bounds)
        if wanted == size:
            raise NoAction(f'there is no change in capacity, the group {group.row.name} has {size}', size)
        cooldowns = resting.cooldowns()
        self._require_no_cooldown(group, size, cooldowns, bounds.cooldown_s)
        traversal_id = self._new_id()
        if policy.adjustment.cooldown_s is not None:
            cooldowns[traversal_id] = policy.adjustment.cooldown_s
        history = {traversal_id, *(each.id for each in self._reader.traversals(group.stack.id, newest=REMEMBERED))}
        kept: dict[str, Json] = {key: value for key, value in cooldowns.items() if key in history}
        submission = resting.submission(lambda: group.kind.resized(resting.call, resting.context, wanted, kept))
        told = f'group {group.row.name} is scaled from {size} to {wanted} ({policy.adjustment.told()})'
        self._starts.give(
            group.stack,
            submission,
            Permits(policy.stack.type_rules),
            Request(
                Action.UPDATE,
                Goal(),
                self._guard(group, resting.members),
                beside=lambda view: self._beside(view, policy, group, told),
                traversal_id=traversal_id,
                cause=f'{policy.row.name}: {policy.adjustment.told()}',
                scaling=_asked(policy, size, wanted, told),
            ),
            group.row.id,
        )
        LOG.info('Policy %s scaled its group: %s', policy.row.name, told)
        return f'Signal: {policy.said}; {told}'

    @staticmethod
    def _guard(group: _Group, members: tuple[Member, ...]) -> Callable[[PlanView], None]:
        def guard(view: PlanView) -> None:
            now, parent = view.stack, view.parent
            if now is None or now.deleted_at is not None or now.traversal_id != group.stack.traversal_id:
                raise Overtaken(f'stack {group.stack.name} has moved on')
            if parent is None or parent.fence != group.row.fence or not _is_at_rest(parent):
                raise Overtaken(f'the group {group.row.name} has moved on')
            if members_of(view.resources, now.template_id) != members:
                # Read from a server of the database that lags behind.
                raise Overtaken(f'the members of {group.row.name} have changed')
            may_get_goal(now)

        return guard

    def _beside(self, view: PlanView, policy: _Policy, group: _Group, told: str) -> tuple[Effect, ...]:
        """Effects in the same transaction: the policy's event, and the group's row marked as outdated."""
        return (
            UpdateResources((group.row.id,), {'digest': None}),
            InsertEvents((self._event(policy, f'Signal: {policy.said}; {told}', view.now),)),
        )

    def _tell(self, policy: _Policy, told: str, suppressed: Scaling) -> None:
        def decide(view: SignalView) -> Decision[None]:
            event = self._event(policy, told, view.now)
            return Decision(None, (InsertEvents((event,), suppressed=suppressed),))

        self._store.transact(SignalledResource(policy.stack.id, policy.row.id), decide)
        LOG.info('Policy %s left its group unchanged: %s', policy.row.name, told)

    def _event(self, policy: _Policy, told: str, at: float) -> Event:
        return Event.of_resource(self._new_id(), policy.row, Action.SIGNAL, policy.row.status, told, at)


def _asked(policy: _Policy, before: int | None, after: int | None, message: str) -> Scaling:
    """The notification about a policy's adjustment."""
    wanted, amount = policy.adjustment, policy.adjustment.amount
    exact = int(amount) if float(amount).is_integer() else amount
    return Scaling(policy.stack.id, policy.group, exact, wanted.written or wanted.type, before, after, message)


def _is_at_rest(row: Resource) -> bool:
    is_up = row.action not in (Action.INIT, Action.SUSPEND, Action.DELETE)
    return is_up and row.status is Status.COMPLETE and row.owner is None


def cooldown_end(history: Iterable[Traversal], cooldowns: Mapping[str, float], default_s: float) -> tuple[float, float]:
    """The end of a group's cooldown in seconds since the epoch, and its length.

    :param history: the operations of its nested stack; those that scaled it count.
    :param cooldowns: cooldowns in seconds of some of them, by id.
    :param default_s: the cooldown after all others.
    """
    ends = [(0.0, 0.0)]
    for each in history:
        gives = each.action in (Action.CREATE, Action.UPDATE) and each.status is TraversalStatus.COMPLETE
        cooldown_s = max(0.0, cooldowns.get(each.id, default_s))
        if gives and each.finished_at is not None:
            ends.append((each.finished_at + cooldown_s, cooldown_s))
    return max(ends)
