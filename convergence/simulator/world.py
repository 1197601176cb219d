"""Engines and workers of the real code, on a store, a clock and a network that are simulated.

What can happen next is a list, and something chooses from it; so a run is decided by its choices alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from convergence import template
from convergence.concurrency import Task
from convergence.core.claim import Worker as CoreWorker
from convergence.core.effects import Decision
from convergence.core.model import Status
from convergence.db.memory import MemoryStore, Tables
from convergence.db.memory_queries import MemoryReader, MemoryRoster, MemorySweeps
from convergence.db.queries import Reader
from convergence.db.roster import Roster
from convergence.db.sweeps import Sweeps
from convergence.db.transaction import Transactions
from convergence.dispatch import Dispatcher
from convergence.engine.stacks import StackLimits, Stacks
from convergence.engine.sweeper import Sweeper, SweepOptions
from convergence.engine.traversals import Traversals
from convergence.resources.registry import Registry
from convergence.simulator.checker import Checker
from convergence.simulator.choices import Choices
from convergence.simulator.goals import SimulatedGoals
from convergence.simulator.groups import InlineGroups
from convergence.simulator.kernel import Crashed, Fiber, Kernel, Process
from convergence.simulator.reality import TYPE, Reality, Thing
from convergence.worker.runner import Pace
from convergence.worker.service import Clockwork, Rows, WorkerOptions, WorkerService

PROJECT = 'simulated'
LOST = 'nobody'
"""Who gets a message that is lost, in a story."""

LEASE_S = 30.0
SWEEP_S = 5.0


@dataclass(frozen=True, slots=True)
class Faults:
    """How often things go wrong: rates between 0 and 1.

    :param drop: of the messages that are sent.
    :param double: of the messages that are delivered.
    :param crash: of the points at which a process could die.
    :param most_crashes: after so many nothing crashes any more, so that every run comes to an end.
    """

    drop: float = 0.0
    double: float = 0.0
    crash: float = 0.0
    most_crashes: int = 3

    @property
    def any(self) -> bool:
        """Whether anything may go wrong at all."""
        return bool(self.drop or self.double or self.crash)


@dataclass(eq=False, slots=True)
class Message:
    """A message in flight."""

    kind: str
    traversal_id: str
    number: int = -1
    stack_id: str = ''

    def __str__(self) -> str:
        return f'{self.kind} {self.number}' if self.kind == 'check_resource' else self.kind


@dataclass(slots=True)
class Context:
    """Who asks for an operation."""

    request_id: str = 'req-simulated'
    project_id: str = PROJECT


@dataclass(eq=False)
class Engine:
    """An engine process: the real services on the simulated store."""

    process: Process
    stacks: Stacks
    traversals: Traversals
    sweeper: Sweeper


@dataclass(eq=False)
class Worker:
    """A worker process: the real service on the simulated store."""

    process: Process
    service: WorkerService


@dataclass
class Watch:
    """Who is told what happens. Each is called with the world and what it is about."""

    commits: list[Callable[[World, Decision[Any]], None]] = field(default_factory=list)
    story: Callable[[str, str | Message, str], None] = lambda who, what, whom: None


class SimulatedStore(Transactions, Protocol):
    """A store in whose transactions others may go on, and whose rows can be looked at.

    The variables are as those of `convergence.db.memory.MemoryStore`.
    """

    pause: Callable[[str], None]
    block: Callable[[], None]
    released: Callable[[], None]
    committed: Callable[[Decision[Any]], None]

    @property
    def tables(self) -> Tables:
        """The rows, as they are committed."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The database of a world, as its processes use it."""

    store: SimulatedStore
    reader: Reader
    roster: Roster
    sweeps: Sweeps
    close: Callable[[], None] = lambda: None


def in_memory(clock: Callable[[], float]) -> Storage:
    """Rows in dictionaries, with modelled locks."""
    store = MemoryStore(clock)
    roster = MemoryRoster(store)
    return Storage(store, MemoryReader(store), roster, MemorySweeps(store, roster))


@dataclass(frozen=True, slots=True)
class Shape:
    """Which processes a world has, and how they work.

    :param visit_unchanged: whether traversals visit what has not changed, as the prototype did.
    :param window: how many nodes of a stack are cast at once.
    """

    engines: int = 2
    workers: int = 3
    visit_unchanged: bool = False
    window: int = 64


class World:
    """Everything there is in one run.

    :param choices: decides every accident.
    :param shape: which processes there are, and how they work.
    :param storage: makes the database, on the clock of this world.
    :ivar frozen: whether any process has stood still and gone on, so that it did things late.
    :ivar checker: looks over everything that happens.
    :ivar lost: whether anything has been lost or has crashed so far; then the sweeper has work.
    :ivar dropped: how many messages were lost by chance; `doubled`, `crashes`: as it says.
    """

    def __init__(
        self,
        choices: Choices,
        *,
        faults: Faults = Faults(),
        shape: Shape = Shape(),
        watch: Watch | None = None,
        storage: Callable[[Callable[[], float]], Storage] = in_memory,
    ) -> None:
        self.choices = choices
        self.faults = faults
        self.kernel = Kernel()
        rows = self._storage = storage(self.kernel.clock)
        self.store, self.reader, self.roster, self.sweeps = rows.store, rows.reader, rows.roster, rows.sweeps
        self.reality = Reality(now=self.kernel.clock)
        self.registry = Registry({TYPE: Thing(self.reality)})
        self.watch = watch or Watch()
        self.bag: list[Message] = []
        self.timers: list[tuple[float, Message]] = []
        self.lost = False
        self.frozen = False
        self.crashes = self.dropped = self.doubled = 0
        self._ids = 0
        self._visit_unchanged = shape.visit_unchanged
        self._window = shape.window
        self.next_sweep = self.kernel.now + SWEEP_S
        self.checker = Checker(self)
        self._connect()
        self.engines = [self._engine(f'engine-{number}') for number in range(1, shape.engines + 1)]
        self.workers = [self._worker(f'worker-{number}') for number in range(1, shape.workers + 1)]

    def _connect(self) -> None:
        self.store.pause = self.kernel.pause
        self.store.block = self.kernel.block
        self.store.released = self.kernel.unblock
        self.store.committed = self._committed
        self.reality.pause = self.kernel.pause
        self.reality.changed = self.checker.happened
        self.kernel.at_point = self._at_point

    def close(self) -> None:
        """The world ends: everybody in it, and its database."""
        for process in {id(fiber.process): fiber.process for fiber in self.kernel.fibers}.values():
            self.kernel.kill(process)
        self.kernel.bury()
        self._storage.close()

    def new_id(self) -> str:
        """An id that was never used before, the same in every run."""
        self._ids += 1
        return f'{self._ids:06d}'

    # --- processes --------------------------------------------------------------------------------------------

    def _engine(self, name: str) -> Engine:
        process = Process(name)
        dispatcher = Dispatcher(self.store, _Messenger(self), self.new_id)
        goals = SimulatedGoals(self.reader, self.registry, template.Limits())
        traversals = Traversals(self.store, self.reader, goals, dispatcher, self.new_id, window=self._window)
        traversals.visit_unchanged = self._visit_unchanged
        stacks = Stacks(self.reader, goals, traversals, StackLimits(None), self.new_id)
        sweeper = Sweeper(
            self.store, self.sweeps, self.roster, dispatcher, traversals, SweepOptions(SWEEP_S, SWEEP_S),
            CoreWorker(name, self.new_id),
        )
        return Engine(process, stacks, traversals, sweeper)

    def _worker(self, name: str) -> Worker:
        messenger = _Messenger(self)

        def later(delay_s: float, traversal_id: str, number: int) -> None:
            self.timers.append((self.kernel.now + delay_s, Message('check_resource', traversal_id, number)))

        def pause(duration_s: float) -> None:
            self.kernel.sleep(Task('pause'), duration_s)

        pace = Pace(1.0, 30.0, 2.0, 3, latest)
        options = WorkerOptions(name, 'simulated', pace, 5.0, LEASE_S, dispatch_window=self._window)
        service = WorkerService(
            Rows(self.store, self.reader, self.roster),
            Dispatcher(self.store, messenger, self.new_id),
            self.registry,
            messenger,
            options,
            self.new_id,
            Clockwork(wait=self.kernel.sleep, later=later, groups=InlineGroups(), pause=pause),
        )
        self.roster.register(service.id, 'worker', name, 'simulated', LEASE_S)
        return Worker(Process(name), service)

    def crash(self, process: Process) -> None:
        """A process dies at once, and another one is started in its place."""
        self.lost = True
        self.crashes += 1
        self.watch.story(process.name, 'crashes', '')
        self.kernel.kill(process)
        name = f'{process.name}+'
        for engine in self.engines:
            if engine.process is process:
                self.engines[self.engines.index(engine)] = self._engine(name)
        for worker in self.workers:
            if worker.process is process:
                self.workers[self.workers.index(worker)] = self._worker(name)

    def _at_point(self, fiber: Fiber, point: str) -> None:
        may = self.faults.crash and self.crashes < self.faults.most_crashes and fiber.process.name != 'user'
        if may and self.choices.happens(self.faults.crash):
            self.crash(fiber.process)
            raise Crashed

    # --- network ----------------------------------------------------------------------------------------------

    def send(self, message: Message) -> bool:
        """Called from a fiber: a message is on its way, or lost."""
        self.kernel.pause('send')
        if self.faults.drop and self.choices.happens(self.faults.drop):
            self.lost = True
            self.dropped += 1
            self.watch.story('broker', message, LOST)
        else:
            self.bag.append(message)
        self.kernel.pause('sent')
        return True

    def deliver(self, message: Message) -> None:
        """Hand a message to a process, which begins to work on it; it may be delivered once more later."""
        if self.faults.double and self.choices.happens(self.faults.double):
            self.doubled += 1
        else:
            self.bag.remove(message)
        if message.kind == 'settle':
            engine = self.engines[self.choices.pick(len(self.engines))]
            self.watch.story('broker', message, engine.process.name)
            self.kernel.spawn(
                engine.process, 'settle', lambda: engine.traversals.settle(message.stack_id, message.traversal_id)
            )
        elif message.kind == 'cancel':
            self.watch.story('broker', message, 'workers')
            for worker in self.workers:
                worker.service.cancel(None, message.stack_id, message.traversal_id)
        else:
            worker = self.workers[self.choices.pick(len(self.workers))]
            self.watch.story('broker', message, worker.process.name)
            self.kernel.spawn(
                worker.process,
                f'node {message.number}',
                lambda: worker.service.check_resource(None, message.traversal_id, message.number),
            )

    def _committed(self, decision: Decision[Any]) -> None:
        self.checker.committed(self, decision)
        for watcher in self.watch.commits:
            watcher(self, decision)

    # --- time -------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Let time pass until something happens by itself: a timer, a sleeper, a heartbeat or a sweep."""
        moments = [self.next_sweep, *(when for when, _ in self.timers), *self.kernel.sleepers()]
        self.kernel.now = max(self.kernel.now, min(moments))
        due = [message for when, message in self.timers if when <= self.kernel.now]
        self.timers = [(when, message) for when, message in self.timers if when > self.kernel.now]
        self.bag += due
        if self.next_sweep <= self.kernel.now:
            self.next_sweep = self.kernel.now + SWEEP_S
            for worker in self.workers:
                if worker.process.frozen_until <= self.kernel.now:
                    _beat(self, worker)
            for engine in self.engines:
                self.kernel.spawn(engine.process, 'sweep', engine.sweeper.sweep)

    def waits_briefly(self) -> bool:
        """Whether a timer or a sleeper will go on before the next sweep."""
        moments = [*(when for when, _ in self.timers), *self.kernel.sleepers()]
        return any(when <= self.next_sweep for when in moments)

    def is_idle(self) -> bool:
        """Whether nothing is left to process: no message, no fiber, no timer, and every stack is final."""
        if self.bag or self.timers or self.kernel.fibers:
            return False
        return all(stack.status is not Status.IN_PROGRESS for stack in self.store.tables.stack.values())


def _beat(world: World, worker: Worker) -> None:
    """As a heartbeat does it: whoever finds that its lease has run out stops its work and comes back."""
    service, roster = worker.service, world.roster
    expired = world.frozen and not any(each.id == service.id and each.is_up for each in roster.services())
    if expired or not roster.beat(service.id):
        service.give_up()
        roster.register(service.id, 'worker', worker.process.name, 'simulated', LEASE_S)
    world.kernel.spawn(worker.process, 'heartbeat', service.reconcile)


def latest(low_s: float, high_s: float) -> float:
    """The later of two times: chance is left to the choices of a run."""
    return high_s


class _Messenger:
    """The network, as a dispatcher and a worker use it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def check_resource(self, traversal_id: str, node: int) -> bool:
        """Somebody should look at this node."""
        return self._world.send(Message('check_resource', traversal_id, node))

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Everybody should stop working on this traversal."""
        return self._world.send(Message('cancel', traversal_id, stack_id=stack_id))

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """A node of the traversal has failed."""
        return self._world.send(Message('settle', traversal_id, stack_id=stack_id))
