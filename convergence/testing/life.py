"""Plays the life of one resource with the code of the engine: it decides, calls the hooks and stores.

There is no database, broker or template: the row of the resource is kept here, and goes through JSON. Each call gets a
fresh type, as if another process made it. The worker may be killed after any call, and the answer to any call may be
lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar

from convergence.concurrency import Task, TaskKilled
from convergence.core.begin import begin
from convergence.core.changes import ResourceChange
from convergence.core.claim import Claim, Desired, Step, Worker
from convergence.core.effects import Decision, DeleteResource, FinishNode, InsertEvents, UpdateResource
from convergence.core.finish import finish
from convergence.core.held import escalate, record, release
from convergence.core.model import (
    Action,
    Change,
    Definition,
    Handover,
    Json,
    NodeStatus,
    Phase,
    Status,
    TraversalStatus,
)
from convergence.core.replacement import replacement
from convergence.core.results import Failed, NeedsReplacement, Parked, Postponed
from convergence.core.rows import Node, Pending, ReceivedSignal, Resource, Retry, Stack, Traversal
from convergence.core.views import FinishView, NodeView
from convergence.documents import AnyJson
from convergence.randomness import new_id
from convergence.resources.attributes import attribute_names
from convergence.resources.comparison import compare
from convergence.resources.contract import Call, ResourceType, Signal
from convergence.resources.invocation import Subject, build_call
from convergence.resources.registry import Registry
from convergence.resources.software import ProjectSoftware
from convergence.testing.fixture import Fixture
from convergence.worker.attempts.attempt import ClaimLost, PollPolicy
from convergence.worker.attempts.port import WorkerPort
from convergence.worker.attempts.runner import Runner

R = TypeVar('R')

VALUE_LIMIT_BYTES = 1024 * 1024
TYPE = 'Conformance::Type'
SETTLES_S = 60.0
COUNTED = frozenset({'prepare', 'create', 'update', 'delete', 'poll', 'release_for_replacement', 'reclaim'})
"""The calls after which a worker may die."""
PACE = PollPolicy(poll_interval_min_s=0.05, poll_interval_max_s=30.0, park_after_s=-1.0, transient_attempts=3)


class Loss(Enum):
    """How the answer to a call is lost: with the worker, which is killed, or on its way from the service."""

    WORKER = 'the worker was killed'
    ANSWER = 'the answer was lost'


class AnswerLost(ConnectionError):
    """Stands for any error of a client that does not know the outcome of its request."""


class ActionFailed(Exception):
    """The engine says that an action has failed."""


class MadeAnew(ActionFailed):
    """The engine would make another object, because the first creation recorded something and got no further."""


class WorkerDied(Exception):
    """The worker died, and no other one continues its work."""


class _Fresh:
    """Stands for the type: a fresh one for each call, as if each were made by another process."""

    def __init__(self, make: Callable[[], ResourceType[Any]], made: Callable[[str, Callable[[], Any]], Any]) -> None:
        self._make = make
        self._made = made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._make(), name)
        if name not in COUNTED:
            return found
        return lambda *arguments: self._made(name, lambda: found(*arguments))


class _OneType(Registry):
    """The type that is tried out, and no other."""

    def __init__(self, kind: Any) -> None:
        self._types = {TYPE: kind}


class Life:
    """One resource.

    :param lose: number of the call, counted from 1, whose answer is lost once; None loses none.
    :param loss: how it is lost.
    :param resource_id: key of its row.
    :ivar calls: number of calls so far after which an answer can be lost.
    :ivar told: the reasons of the events of the resource.
    """

    def __init__(
        self, fixture: Fixture, lose: int | None = None, loss: Loss = Loss.WORKER, resource_id: str = 'resource-id'
    ) -> None:
        self.fixture, self.calls = fixture, 0
        self.received: list[Signal] = []
        self.told: list[str] = []
        self._lose, self._loss = lose, loss
        self._now = 1e9
        self._tried: Pending | None = None
        self._goes_on = True
        self._wanted: Mapping[str, Json] = fixture.properties
        self._registry = _OneType(_Fresh(fixture.make, self._made))
        self._worker = Worker('worker', new_id, creation=lambda name: self._registry.creation(name, SETTLES_S))
        around = WorkerPort(
            self._record,
            self._escalate,
            lambda: False,
            lambda claim: True,
            lambda task, wait_s: False,
            self._heard,
            software=fixture.software,
            credentials=lambda stack_id: fixture.credentials(),
        )
        self._runner = Runner(self._registry, PACE, around)
        self._row: Resource | None = Resource(
            resource_id, 'stack-id', 'thing', TYPE, Action.INIT, Status.COMPLETE, self._now, template_id='template'
        )
        self._last = self._row
        self._rivals: tuple[Resource, ...] = ()

    @property
    def physical_id(self) -> str | None:
        """The id that is stored."""
        return self._last.physical_id

    # --- operations ------------------------------------------------------------------------------------

    def create(self) -> None:
        """Create, and continue after the death of a worker, until the object exists.

        :raises ActionFailed: the creation has failed.
        :raises AssertionError: it could not be completed, or only by making another object.
        """
        self._converge(Phase.UPDATE, self.fixture.properties, Change.NONE)

    def create_again(self) -> None:
        """Have a creation repeated with the same token, as if nothing were known of the first one."""
        self._keep(
            {
                'action': Action.CREATE,
                'status': Status.IN_PROGRESS,
                'physical_id': None,
                'data': {},
                'output': None,
                'pending': self._tried,
                'retry': Retry(1, 'again', clean=True),
            }
        )
        self.create()

    def update(self, properties: Mapping[str, Json]) -> None:
        """Update in place to `properties`, from any state."""
        self._converge(Phase.UPDATE, properties, Change.IN_PLACE)

    def make_anew(self, properties: Mapping[str, Json]) -> None:
        """Have the object removed, and another one made in its place."""
        self._converge(Phase.UPDATE, properties, Change.REPLACE)

    def release_for_replacement(self, properties: Mapping[str, Json]) -> None:
        """Have the object give up what one of `properties` needs, up to the moment in which that would be made."""
        self._converge(Phase.UPDATE, properties, Change.REPLACE)

    def reclaim(self, rival: Life) -> None:
        """Take the object into use again, in place of the one that `rival` has made."""
        self._rivals = (rival._last,)
        self._converge(Phase.UPDATE, self.fixture.properties, Change.NONE)

    def delete(self) -> None:
        """Delete, from any state."""
        if self._row is not None:
            self._converge(Phase.CLEANUP, self.fixture.properties, Change.NONE)

    def delete_at_last(self) -> None:
        """Delete; and once more where that has failed, as a user would."""
        try:
            self.delete()
        except ActionFailed:
            self.delete()

    def create_until_lost(self) -> None:
        """Create; if the worker dies, no other one continues."""
        self._goes_on = False
        with suppress(WorkerDied):
            self.create()
        self._goes_on = True

    def lose_next(self, loss: Loss = Loss.WORKER) -> None:
        """Lose the answer to the next call."""
        self._lose, self._loss = self.calls + 1, loss

    # --- questions about the type ------------------------------------------------------------------------

    def kind(self) -> ResourceType[Any]:
        """The type, as a process that has never seen it before would have it."""
        return self.fixture.make()

    def attributes(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        """All attributes, each checked to be JSON of a sane size."""
        read = {name: self.kind().attribute(self.call(properties), name) for name in attribute_names(self.kind())}
        return {name: carried(value, f'attribute {name}') for name, value in read.items()}

    def call(self, properties: Mapping[str, Json], previous: Mapping[str, Json] | None = None) -> Call[Any]:
        """Return the argument of a hook."""
        row = self._last
        subject = Subject(
            row.name, 'conformance', row.stack_id, 'project-id', row.id, row.token or '', row.physical_id, row.data
        )
        signals = {**self.fixture.heard, row.name: tuple(self.received)}
        software = ProjectSoftware(self.fixture.software, subject.project_id)
        call = build_call(self.kind(), subject, properties, previous=previous, signals=lambda: signals)
        return replace(call, software=software, credentials=self.fixture.credentials)

    # --- the engine -------------------------------------------------------------------------------------------

    def _converge(self, phase: Phase, properties: Mapping[str, Json], change: Change) -> None:
        """Have a node checked until it is done."""
        self._wanted, self._polls = properties, 0
        definition = Definition('thing', TYPE, dict(properties)) if phase is Phase.UPDATE else None
        asked = ('',) if phase is Phase.UPDATE else ()
        node = Node(new_id(), 0, phase, NodeStatus.READY, 'thing', self._last.id, definition, asked)
        traversal = Traversal(
            node.traversal_id, 'stack-id', Action.UPDATE, TraversalStatus.RUNNING, 'template', False, self._now, 1e12
        )
        stack = Stack(
            'stack-id', 'conformance', 'project-id', Action.UPDATE, Status.IN_PROGRESS, '', 'template', None,
            traversal.id, 60, True, self._now,
        )  # fmt: skip
        while not self._check(node, traversal, stack, change):
            if self._polls > self.fixture.poll_limit:
                raise AssertionError(f'{self._last.action} is not done after {self.fixture.poll_limit} polls')

    def _check(self, node: Node, traversal: Traversal, stack: Stack, change: Change) -> bool:
        """Check the node once, as `convergence.worker.checks.node_checks` does; whether it is done."""
        view = NodeView(self._now, node, traversal, stack, self._row, rivals=self._rivals)
        begun = self._take(begin(view, self._worker, lambda _: self._assess(change)))
        if begun.step is Step.NOTHING:
            return True
        if begun.step is Step.REPLACE and self._row is not None and self._is_first_prepared(view, self._row):
            return self._last.handover is Handover.RELEASED
        if begun.step is Step.REPLACE:
            raise AssertionError(f'the engine would make another object: {self._last.status_reason}')
        if begun.step is Step.FAIL:
            raise ActionFailed(self.told[-1] if self.told else 'refused')
        assert begun.claim is not None
        return self._act(begun.claim)

    def _act(self, claim: Claim) -> bool:
        self._tried = claim.pending or self._tried
        try:
            result = self._runner.run(claim, Task(claim.resource.name))
        except (TaskKilled, ClaimLost):
            self._take(release(self._view(claim), claim.resource.fence, self._worker, lost=True))
            if not self._goes_on:
                raise WorkerDied from None
            return False
        decision = finish(self._view(claim), claim, result, self._worker)
        self._take(decision)
        if isinstance(result, Failed):
            raise ActionFailed(f'{claim.action} failed: {result.reason}')
        if isinstance(result, NeedsReplacement) and self._row is not None:
            view = NodeView(self._now, claim.node, claim.traversal, claim.stack, self._row)
            if self._is_first_prepared(view, self._row):
                return False
        lacks_something = claim.action is Action.CREATE and result.physical_id is not None
        if isinstance(result, NeedsReplacement) and (
            lacks_something or (self._last.data and self._last.physical_id is None)
        ):
            raise MadeAnew(result.reason)
        if isinstance(result, NeedsReplacement):
            raise AssertionError(  # noqa: TRY004 - the verdict of a test
                f'the engine would make another object: {result.reason}. Write find(), let create() answer with the '
                'same object where token_enforced says so, or declare Recovery.NONE'
            )
        if isinstance(result, (Parked, Postponed)):
            self._let_pass(result)
        return any(isinstance(effect, FinishNode) for effect in decision.effects)

    def _is_first_prepared(self, view: NodeView, row: Resource) -> bool:
        """Begin a step that comes before the replacement of the object. Return False if there is none."""
        if not (self.kind().delete_before_create or self.kind().implements('release_for_replacement')):
            return False
        if row.handover is not Handover.RELEASED or row.traversal_id != view.traversal.id:
            self._take(replacement(view, self._worker, row.id))
        return True

    def _view(self, claim: Claim) -> FinishView:
        return FinishView(self._now, self._row, claim.node, claim.traversal, claim.stack)

    def _let_pass(self, result: Parked | Postponed) -> None:
        """Let the time pass that the row waits; a search is repeated at once."""
        if isinstance(result, Postponed) or result.progress is not None:
            self._polls += 1
            self.fixture.wait(result.after_s)
        self._now += result.after_s

    def _assess(self, change: Change) -> Desired:
        if self._row is not None and self._row.definition is not None and change is Change.NONE:
            change = compare(
                self.kind(),
                self._row.properties,
                self._wanted,
                lambda: self.call(self._wanted, self._last.properties),
                self._row.data,
            )
        return Desired(self._wanted, change)

    def _take(self, decision: Decision[R]) -> R:
        """Apply a decision about the row."""
        for effect in decision.effects:
            if isinstance(effect, UpdateResource):
                self._keep(effect.changes)
            elif isinstance(effect, DeleteResource):
                self._row = None
            elif isinstance(effect, InsertEvents):
                self.told += [event.reason for event in effect.events]
        return decision.verdict

    def _keep(self, changes: ResourceChange) -> None:
        assert self._row is not None
        kept: ResourceChange = {**changes}
        if 'data' in kept:
            kept['data'] = carried(kept['data'], 'data')
        if kept.get('progress') is not None:
            kept['progress'] = carried(kept['progress'], 'progress')
        self._row = self._last = replace(self._row, **kept)

    def _record(self, claim: Claim, known: Parked) -> bool:
        stored = bool(self._take(record(self._view(claim), claim, known)))
        self.calls += 1
        if self.calls == self._lose and self._loss is Loss.WORKER:
            raise TaskKilled
        return stored

    def _escalate(self, claim: Claim) -> bool:
        return bool(self._take(escalate(self._view(claim), claim, self._worker)))

    def _heard(self, resource_ids: Sequence[str]) -> list[tuple[str, ReceivedSignal]]:
        told = {**self.fixture.heard, 'thing': tuple(self.received)}
        return [
            (name, ReceivedSignal('signal', 'stack-id', each.resource_id, each.at, each.details))
            for name, signals in told.items()
            for each in signals
        ]

    def _made(self, name: str, call: Callable[[], R]) -> R:
        self.calls += 1
        number = self.calls
        answer = call()
        if number != self._lose:
            return answer
        if self._loss is Loss.WORKER:
            raise TaskKilled
        raise AnswerLost(f'the answer to {name} was lost')


def carried(value: Any, what: str) -> AnyJson:
    """`value` after a trip through JSON.

    :raises AssertionError: it does not survive the trip, or is too large for a row.
    """
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise AssertionError(f'{what} is not JSON: {error}') from error
    if len(text) > VALUE_LIMIT_BYTES:
        raise AssertionError(f'{what} is larger than {VALUE_LIMIT_BYTES} bytes')
    back = json.loads(text)
    if json.dumps(back, sort_keys=True) != json.dumps(value, sort_keys=True):
        raise AssertionError(f'{what} changes on its way through JSON')
    return back
