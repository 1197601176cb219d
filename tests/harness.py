"""The whole engine in one process and one thread, so that a test decides what happens when.

Messages are queued; a test delivers, drops, doubles or reorders them. The resources are those of `tests.reality`.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from convergence_simulator.memory.store import MemoryStore
from convergence_simulator.stores.storage import ports as memory_ports

from convergence.core.claim import Worker
from convergence.core.model import MAX_BATCH_NODES, NodeStatus, Status
from convergence.core.rows import Resource, Stack
from convergence.db.connections.database import connect
from convergence.db.repositories.reads.stacks import in_service
from convergence.db.repositories.wiring import ports_of
from convergence.db.schema.columns import database_now
from convergence.db.schema.migration import DUTIES
from convergence.db.schema.models import DUTY, METADATA, RESOURCE, SNAPSHOT_ITEM, TRAVERSAL
from convergence.db.statements.store import Store
from convergence.engine.nesting.converger import NestingLimits
from convergence.engine.operations.stacks import StackLimits
from convergence.engine.reads.nested_values import NestedReads
from convergence.engine.signals.addresses import SignalAddresses
from convergence.engine.sweeper.sweeper import Sweeper
from convergence.engine.sweeper.tasks import SweepOptions, SweepTasks
from convergence.engine.wiring import EngineOptions, wire_engine
from convergence.resources.builtin.addressed import addressed_types
from convergence.resources.registry import Registry
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.attempts.nested import EngineNesting
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.wiring import WorkerRuntime, wire_worker
from tests.inline_groups import InlineGroups
from tests.reality import EnforcedThing, HolderThing, KeptThing, PlainThing, Reality, Thing, TokenThing

NEVER_IN_THE_WAY = PollPolicy(poll_interval_min_s=0.0, poll_interval_max_s=0.0, park_after_s=-1.0, transient_attempts=3)
"""Nothing ever waits: an action that is not done at once is parked, and due again immediately."""


API = 'https://api.example.org/v1'


@dataclass
class Messages:
    """What was sent to the workers and not delivered yet.

    :ivar lost: while true, whatever is sent vanishes.
    :ivar sent: how many messages with checks were ever sent.
    """

    checks: list[tuple[str, int]] = field(default_factory=list)
    cancels: list[tuple[str, str]] = field(default_factory=list)
    lost: bool = False
    sent: int = 0

    def can_send(self) -> bool:
        """The broker is there, whatever becomes of what it takes."""
        return True

    def check_resource(self, traversal_id: str, node: int, hops: int = 0) -> bool:
        """Queue a check."""
        self.sent += 1
        if not self.lost:
            self.checks.append((traversal_id, node))
        return not self.lost

    def check_resources(self, traversal_id: str, nodes: Sequence[int]) -> bool:
        """Queue some checks: one message."""
        taken = [self.check_resource(traversal_id, node) for node in nodes]
        self.sent -= len(nodes) - 1
        return all(taken)

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Queue a cancel."""
        if not self.lost:
            self.cancels.append((stack_id, traversal_id))
        return not self.lost


@dataclass(frozen=True)
class Context:
    """Who asks."""

    project_id: str = 'p'
    request_id: str = 'r'


_HARNESSES = itertools.count(1)


class Numbered:
    """Ids that can be read, and that no other harness of the process gives out.

    Suites share a database. A thread that an earlier test has left behind finds none of its rows there: with the same
    ids it once wrote into those of another test.
    """

    def __init__(self) -> None:
        self._prefix = f'{next(_HARNESSES):04d}'
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        return f'{self._prefix}{next(self._numbers):08d}'


class Crash(BaseException):
    """The process is gone, in the middle of whatever it did."""


class Watched:
    """Calls back before or after certain transactions, and can be as dead as its process.

    :ivar commits: how many transactions there were.
    :ivar crash_after: the number of the commit after which the process is gone.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commits = 0
        self.crash_after = 0
        self.dead = False
        self._before: list[tuple[type, Callable[[], object]]] = []
        self._after: list[tuple[type, Callable[[], object]]] = []

    def before(self, scope: type, step: Callable[[], object]) -> None:
        """Do something, once, just before the next transaction on such a scope begins."""
        self._before.append((scope, step))

    def after(self, scope: type, step: Callable[[], object]) -> None:
        """Do something, once, just after the next transaction on such a scope has committed."""
        self._after.append((scope, step))

    def transact(self, scope: Any, decide: Any, following: Any = None) -> Any:
        """As always, with what was asked for around it."""
        return self._watched(scope, lambda: super(Watched, self).transact(scope, decide, following))  # type: ignore[misc]

    def decide_free(self, nodes: Any, decide: Any) -> Any:
        """The same."""
        return self._watched(nodes, lambda: super(Watched, self).decide_free(nodes, decide))  # type: ignore[misc]

    def _watched(self, scope: Any, transaction: Callable[[], Any]) -> Any:
        if self.dead:
            raise Crash
        self._take(self._before, scope)
        committed = transaction()
        self.commits += 1
        if self.commits == self.crash_after:
            self.dead = True
            raise Crash
        self._take(self._after, scope)
        return committed

    @staticmethod
    def _take(steps: list[tuple[type, Callable[[], object]]], scope: Any) -> None:
        for entry in steps:
            if entry[0] is type(scope):
                steps.remove(entry)
                entry[1]()
                return


class WatchedStore(Watched, Store):
    """On a database."""


class WatchedMemory(Watched, MemoryStore):
    """In memory."""


class Harness:
    """An engine, two workers and a sweeper on one database.

    :param engine: None for a store in memory.
    """

    def __init__(
        self,
        engine: Any,
        *,
        pace: PollPolicy = NEVER_IN_THE_WAY,
        window: int = 64,
        together: int = MAX_BATCH_NODES,
        max_inline_nodes: int = 1,
        new_id: Callable[[], str] | None = None,
        max_input_bytes: int | None = None,
        nesting: NestingLimits | None = None,
    ) -> None:
        self.new_id = new_id or Numbered()
        self.engine = engine
        self.store: Any = WatchedMemory(time.time) if engine is None else WatchedStore(engine, interval_s=0.0)
        self.reality, self.messages, self.context = Reality(), Messages(), Context()
        self.registry = Registry.builtin(
            more={
                'Test::Thing': Thing(self.reality),
                'Test::Enforced': EnforcedThing(self.reality),
                'Test::Kept': KeptThing(self.reality),
                'Test::Token': TokenThing(self.reality),
                'Test::Plain': PlainThing(self.reality),
                'Test::Holder': HolderThing(self.reality),
                **addressed_types(lambda: API),
            }
        )
        self.ports = ports = memory_ports(self.store) if engine is None else ports_of(self.store)
        self.reader, self.roster, self.sweeps, self.kept = ports.reader, ports.roster, ports.sweeps, ports.snapshots
        self.pending = ports.pending
        stacks = StackLimits(enable_stack_adopt=True)
        limits = nesting or NestingLimits()
        options = EngineOptions(
            stacks=stacks,
            nesting=limits,
            dispatch_window=window,
            max_batch_nodes=together,
            max_snapshots_per_stack=3,
            enable_stack_abandon=True,
        )
        parts = wire_engine(ports, self.messages, self.registry, options, Worker('engine', self.new_id))
        self.dispatcher, self.compiler, self.traversals = parts.dispatcher, parts.compiler, parts.traversals
        self.stacks, self.actions, self.signals = parts.stacks, parts.actions, parts.signals
        self.rollbacks = parts.rollbacks
        self.snapshots, self.abandonment = parts.snapshots, parts.abandonment
        self.nesting, self.nested_stops = parts.nesting, parts.nested_stops
        self.addresses = SignalAddresses(self.store, self.reader, self.signals, self.new_id, lambda: API)
        self._options = WorkerOptions(
            'host',
            '1',
            pace,
            dispatch_window=window,
            max_inline_nodes=max_inline_nodes,
            unattended_s=None,
            max_input_bytes=max_input_bytes,
        )
        self.workers = [self.new_worker(), self.new_worker()]
        self.settling = True

    # --- parts ------------------------------------------------------------------------------------------------

    def new_worker(self) -> WorkerService:
        """Another worker, known to the others."""
        timing = WorkerRuntime(threads=lambda threads, left: InlineGroups())
        parts = (self.ports, self.dispatcher, self.registry, self, self._options, self.new_id, timing)
        worker = wire_worker(*parts, EngineNesting(self, self.reader, lambda project_id, request_id: self.context))
        self.roster.register(worker.id, 'worker', 'host', '1', 1e6)
        return worker

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """A worker says that a traversal has failed. Lost where `settling` is false."""
        if self.settling:
            self.traversals.settle(stack_id, traversal_id)
        return self.settling

    def act_on_nested_stack(
        self, context: Any, resource_id: str, fence: int, step: int = 0, node: Any = None, ends: Any = None
    ) -> Any:
        """A worker asks for it."""
        return self.nesting.act_on_nested_stack(context, resource_id, fence, step, node, ends)

    def act_on_nested_stacks(self, context: Any, asked: Any) -> Any:
        """A worker asks for it."""
        return self.nesting.act_on_nested_stacks(context, asked)

    def cancel_nested_stack(self, context: Any, resource_id: str, fence: int) -> None:
        """A worker asks for it."""
        self.nested_stops.cancel_nested_stack(context, resource_id, fence)

    def delete_nested_snapshot(self, context: Any, stack_id: str, snapshot_id: str) -> None:
        """A worker asks for it."""
        self.nesting.snapshots.delete_nested_snapshot(context, stack_id, snapshot_id)

    def read_nested_stack(self, context: Any, stack_id: str) -> Any:
        """A worker asks for it."""
        return NestedReads(self.reader, self.compiler).read_nested_stack(context, stack_id)

    def die(self, worker: WorkerService) -> None:
        """A worker is gone, whatever it holds."""
        self.roster.leave(worker.id)

    def restart(self) -> None:
        """All processes are gone, and so are their messages; new ones start."""
        for worker in self.workers:
            self.die(worker)
        self.store.dead, self.store.crash_after = False, 0
        self.messages.checks.clear()
        self.messages.cancels.clear()
        self.workers = [self.new_worker(), self.new_worker()]

    def recover(self, *, sweeps: int = 50) -> None:
        """Sweep and deliver until there is nothing left to do."""
        for _ in range(sweeps):
            self.run()
            if not self.sweep() and not self.messages.checks and not self.let_time_pass():
                return
        raise AssertionError(f'still not quiet after {sweeps} sweeps')

    def let_time_pass(self) -> int:
        """Whatever is to be looked at later is due now; how many rows that were."""
        if self.engine is None:
            return self._let_time_pass_in_memory()
        waiting = (RESOURCE.c.wake_at > database_now()) | (RESOURCE.c.search_until > database_now())
        with self.store.writing() as connection:
            due = connection.execute(RESOURCE.update().where(waiting).values(wake_at=0.0, search_until=0.0)).rowcount
            connection.commit()
        return due

    def _let_time_pass_in_memory(self) -> int:
        rows, now = self.store.tables.resource, time.time()
        due = [row for row in rows.values() if max(row.wake_at or 0.0, row.search_until or 0.0) > now]
        for row in due:
            rows[row.id] = replace(row, wake_at=0.0, search_until=0.0)
        return len(due)

    def let_attempts_age(self) -> None:
        """What could not be deleted for a snapshot is due again."""
        with self.store.writing() as connection:
            connection.execute(SNAPSHOT_ITEM.update().values(attempted_at=0.0))
            connection.commit()

    def expire(self, traversal_id: str) -> None:
        """The deadline of a traversal is over."""
        with self.store.writing() as connection:
            connection.execute(TRAVERSAL.update().where(TRAVERSAL.c.id == traversal_id).values(deadline=0.0))
            connection.commit()

    def sweep(self) -> int:
        """One sweep, in which everything counts as old."""
        options = SweepOptions(older_than_s=-1.0)
        return self.sweeper(options).sweep()

    def sweep_tasks(self, options: SweepOptions) -> SweepTasks:
        """What a sweeper does."""
        parts = (self.store, self.sweeps, self.roster, self.dispatcher, self.traversals, options)
        return SweepTasks(*parts, Worker('sweeper', self.new_id), self.nested_stops, pending=self.pending)

    def sweeper(self, options: SweepOptions) -> Sweeper:
        """A sweeper of its own."""
        return Sweeper(self.sweeps, self.sweep_tasks(options), options, Worker('sweeper', self.new_id))

    # --- delivering -------------------------------------------------------------------------------------------

    def deliver(self, position: int = 0, worker: int = 0) -> None:
        """Deliver one of the waiting checks."""
        self.check(*self.messages.checks.pop(position), worker=worker)

    def check(self, traversal_id: str, number: int, worker: int = 0) -> None:
        """Deliver a check, whether it was sent or not."""
        self.workers[worker].check_resource(None, traversal_id, number)

    def fire_timers(self) -> None:
        """Cast the parked nodes whose time has come."""
        for worker in self.workers:
            worker._parts.timers._call_due()

    def deliver_cancels(self) -> None:
        """Deliver the waiting cancels to every worker."""
        while self.messages.cancels:
            cancelled = self.messages.cancels.pop(0)
            for worker in self.workers:
                worker.cancel(None, *cancelled)

    def run(self, *, limit: int = 3000, shuffle: random.Random | None = None, doubled: bool = False) -> None:
        """Deliver until nothing is left to deliver. No sweep: a lost wake-up stays lost.

        :param shuffle: delivers in another order. :param doubled: delivers everything twice, the second time later.
        """
        copies: list[tuple[str, int]] = []
        for _ in range(limit):
            self.deliver_cancels()
            self.fire_timers()
            if not self.messages.checks:
                if not copies:
                    return
                self.messages.checks, copies = copies, []
                doubled = False
            position = shuffle.randrange(len(self.messages.checks)) if shuffle else 0
            if doubled:
                copies.append(self.messages.checks[position])
                if shuffle and shuffle.random() < 0.5:
                    self.messages.checks.append(copies.pop())
            self.deliver(position, worker=shuffle.randrange(2) if shuffle else 0)
        raise AssertionError(f'still not quiet after {limit} messages')

    # --- operations -------------------------------------------------------------------------------------------

    def create(self, resources: Mapping[str, Any], name: str = 's', **args: Any) -> str:
        """Accept a stack; its id. For `resources` see `hot`."""
        identity = self.stacks.create_stack(self.context, name, hot(resources), args=args)
        return str(identity['stack_id'])

    def created(self, resources: Mapping[str, Any], name: str = 's', **args: Any) -> str:
        """A stack that is complete; its id."""
        stack_id = self.create(resources, name, **args)
        self.run()
        assert self.state(stack_id) == 'CREATE_COMPLETE', self.stack(stack_id).status_reason
        return stack_id

    def update(self, stack_id: str, resources: Mapping[str, Any], **args: Any) -> str:
        """Accept an update; the id of its traversal."""
        self.stacks.update_stack(self.context, {'stack_id': stack_id}, hot(resources), args=args)
        return self.stack(stack_id).traversal_id or ''

    def act(self, stack_id: str, action: str) -> str:
        """Accept ``suspend``, ``resume`` or ``check``; the id of its traversal."""
        getattr(self.actions, f'stack_{action}')(self.context, {'stack_id': stack_id})
        return self.stack(stack_id).traversal_id or ''

    def acted(self, stack_id: str, action: str) -> None:
        """Have it done."""
        self.act(stack_id, action)
        self.run()
        assert self.state(stack_id) == f'{action.upper()}_COMPLETE', self.stack(stack_id).status_reason

    def delete(self, stack_id: str) -> str:
        """Accept a delete; the id of its traversal."""
        self.stacks.delete_stack(self.context, {'stack_id': stack_id})
        return self.stack(stack_id).traversal_id or ''

    def cancel(self, stack_id: str, *, rollback: bool, now: bool = True) -> None:
        """Accept a cancel."""
        self.stacks.stack_cancel_update(self.context, {'stack_id': stack_id}, rollback, now=now)

    # --- looking ----------------------------------------------------------------------------------------------

    def stack(self, stack_id: str) -> Stack:
        """The stack as it is stored."""
        stack = self.reader.stack(stack_id)
        assert stack is not None
        return stack

    def state(self, stack_id: str) -> str:
        """The stack's state, for example ``CREATE_COMPLETE``."""
        stack = self.stack(stack_id)
        return f'{stack.action}_{stack.status}'

    def rows(self, stack_id: str, name: str | None = None) -> list[Resource]:
        """The resource rows, of one name or all."""
        return [row for row in self.reader.resources(stack_id) if name in (None, row.name)]

    def row(self, stack_id: str, name: str) -> Resource:
        """The one row of a name."""
        (row,) = self.rows(stack_id, name)
        return row

    def node(self, stack_id: str, name: str, phase: str = 'UPDATE') -> tuple[str, int]:
        """Address of a node of the current traversal."""
        traversal_id = self.stack(stack_id).traversal_id or ''
        (found,) = [node for node in self.reader.nodes(traversal_id) if node.name == name and node.phase.value == phase]
        return traversal_id, found.number

    def events(self, stack_id: str, name: str | None = None) -> list[str]:
        """What happened to the stack itself, or to a resource: ``CREATE_COMPLETE`` …"""
        return [
            f'{event.action}_{event.status}' for event in self.reader.events(stack_id) if event.resource_name == name
        ]

    def assert_quiet(self) -> None:
        """Nobody holds a row, nothing waits to be delivered."""
        assert self.messages.checks == []
        held = [row for worker in self.workers for row in self.roster.held_by(worker.id)]
        assert held == []

    def assert_converged(self, stack_id: str, values: Mapping[str, Any], state: str) -> None:
        """The invariant: one object per wanted resource, with the wanted value, and nothing else, in reality or rows."""
        self.assert_quiet()
        stack = self.stack(stack_id)
        assert self.state(stack_id) == state, stack.status_reason
        assert self.reality.values() == dict(values)
        rows = self.rows(stack_id)
        assert sorted(row.name for row in rows) == sorted(values)
        assert {row.physical_id for row in rows} == set(self.reality.objects)
        assert {row.status for row in rows} <= {Status.COMPLETE}
        assert set(in_service(rows, stack.template_id)) == set(values)
        running = self.reader.node_counts(stack.traversal_id or '')
        assert set(running) <= {NodeStatus.DONE.value}, running


def hot(resources: Mapping[str, Any], **sections: Any) -> str:
    """A template of things: ``{'a': 'value', 'b': {'value': 'x', 'after': ['a'], 'key': …, 'link': …}}``."""
    body: dict[str, Any] = {}
    for name, wanted in resources.items():
        properties = {'value': wanted} if isinstance(wanted, str) else dict(wanted)
        entry: dict[str, Any] = {'type': properties.pop('type', 'Test::Thing')}
        after = properties.pop('after', [])
        if after:
            entry['depends_on'] = list(after)
        for key in ('deletion_policy', 'metadata', 'external_id', 'condition', 'description'):
            if key in properties:
                entry[key] = properties.pop(key)
        body[name] = {**entry, 'properties': properties}
    document = {'heat_template_version': '2018-08-31', **sections}
    if body:
        document['resources'] = body
    return yaml.safe_dump(document, sort_keys=False)


def database(url: str) -> Any:
    """An engine on an empty database, with the tables and duties of the present version."""
    engine = connect(url, pool_size=16, idle_before_look_s=math.inf, idle_before_ping_s=math.inf)
    METADATA.create_all(engine)
    with engine.connect() as connection:
        connection.execute(DUTY.insert(), [{'name': name, 'holder': None, 'until': 0.0} for name in DUTIES])
        connection.commit()
    return engine


def emptied(engine: Any) -> Any:
    """The same database, with nothing in it."""
    with engine.connect() as connection:
        for table in METADATA.sorted_tables:
            connection.execute(table.delete())
        connection.execute(DUTY.insert(), [{'name': name, 'holder': None, 'until': 0.0} for name in DUTIES])
        connection.commit()
    return engine


def things(names: Iterable[str], value: str = 'x') -> dict[str, Any]:
    """Independent things."""
    return {name: {'value': value} for name in names}
