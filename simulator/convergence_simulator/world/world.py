"""Engines and workers of the real code, on a store, a clock and a network that are simulated.

What can happen next is a list, and something chooses from it; so a run is decided by its choices alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from typing_extensions import override

from convergence.concurrency import Task
from convergence.core.claim import Worker as CoreWorker
from convergence.core.effects import Decision
from convergence.core.model import DISPATCH_WINDOW
from convergence.core.request import Planner
from convergence.db.repositories.witness import LostCommits
from convergence.dispatch import Dispatcher
from convergence.engine.drift.requested_repairs import RepairOptions
from convergence.engine.operations.options import StackLimits
from convergence.engine.sweeper.tasks import SweepOptions
from convergence.engine.wiring import EngineClasses, EngineOptions, EngineParts, wire_engine
from convergence.errors import Conflict, DatabaseUnavailable
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.attempts.nested import EngineNesting
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.wiring import WorkerRuntime, wire_worker
from convergence_simulator.cloud.kinds import registry
from convergence_simulator.cloud.reality import Reality
from convergence_simulator.cloud.trees import FOR_EVER_S
from convergence_simulator.memory.store import MemoryStore
from convergence_simulator.scenarios.language import PATIENCE_S
from convergence_simulator.stores.storage import Storage, in_memory
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.compiling import SimulatedCompiler
from convergence_simulator.world.engines import SimulatedEngines
from convergence_simulator.world.faults import LAGS, LEASE_S, NONE, SWEEP_S, Faults, Trouble
from convergence_simulator.world.kernel import Kernel, SimulatedProcess
from convergence_simulator.world.meddling import REPAIR_ATTEMPTS
from convergence_simulator.world.network import LOST, MessageInFlight, SimulatedMessenger
from convergence_simulator.world.observing import SimulatedObserver, observe
from convergence_simulator.world.passing import Alarm, Passing
from convergence_simulator.world.place import Checker
from convergence_simulator.world.rewinding import LOSSES
from convergence_simulator.world.sweeping import CandidTasks
from convergence_simulator.world.threads import FiberGroups

PROJECT = 'simulated'


@dataclass(slots=True)
class Context:
    """Who asks for an operation."""

    request_id: str = 'req-simulated'
    project_id: str = PROJECT


@dataclass(eq=False)
class SimulatedEngine:
    """An engine process: the real services on the simulated store, put together when it is asked for something first.

    In many short runs it never is.
    """

    process: SimulatedProcess
    wire: Callable[[], EngineParts]

    @cached_property
    def parts(self) -> EngineParts:
        """Its services."""
        return self.wire()


@dataclass(eq=False)
class SimulatedWorker:
    """A worker process: the real service on the simulated store.

    :ivar holds_until: when its lease runs out, as far as it knows itself.
    :ivar loss: what the database has lost, until the next heartbeat notices it.
    """

    process: SimulatedProcess
    service: WorkerService
    holds_until: float
    loss: LostCommits | None = None


@dataclass
class Watch:
    """Who is told what happens: of commits, with the world and what it is about; of losses of commits."""

    commits: list[Callable[[World, Decision[Any]], None]] = field(default_factory=list)
    losses: list[Callable[[], None]] = field(default_factory=list)
    story: Callable[[str, str | MessageInFlight, str], None] = lambda who, what, whom: None


@dataclass(frozen=True, slots=True)
class WorldShape:
    """Which processes a world has, and how they work.

    :param planner: plans the traversals; see `convergence_simulator.world.planning`.
    :param window: how many nodes of a stack are cast at once.
    :param threads: how many checks a worker works on at a time.
    :param max_inline_nodes: maximum number of nodes that a thread runs one after the other.
    """

    engines: int = 2
    workers: int = 3
    threads: int = 8
    max_inline_nodes: int = 1
    planner: type[Planner] = Planner
    window: int = DISPATCH_WINDOW


class World(Passing):
    """Everything there is in one run.

    :param choices: decides every accident.
    :param checker: makes the checker of the invariants.
    :param shape: which processes there are, and how they work.
    :param storage: makes the database, on the clock of this world.
    :ivar skew_s: how far the clock of the database is ahead of that of the processes.
    :ivar groups: what each worker works on; `alarms`: what processes have set themselves to do later.
    :ivar trouble: what goes wrong by chance, and what is away.
    :ivar checker: looks over everything that happens.
    :ivar observers: whoever looks at what was made, if anybody does.
    :ivar lost: whether anything has been lost or has crashed so far; then the sweeper has work.
    :ivar losses: how often the database has lost commits.
    :ivar skips_unchanged: whether traversals leave out what has not changed.
    :ivar left_stacks: ids of nested stacks that stayed when their resources were left behind, as was asked for.
    :ivar dropped: how many messages were lost by chance; `doubled`, `crashes`, `commits`: as it says.
    """

    def __init__(
        self,
        choices: Choices,
        checker: Callable[[World], Checker],
        *,
        faults: Faults = NONE,
        shape: WorldShape = WorldShape(),
        watch: Watch | None = None,
        storage: Callable[[Callable[[], float]], Storage] = in_memory,
    ) -> None:
        self.choices = choices
        self.faults = faults
        self.kernel = Kernel()
        self.skew_s = 0.0
        self._storage = storage(self.clock)
        self.store, self._ports = self._storage.store, self._storage.ports
        self.reader, self.roster, self.snapshots = self._ports.reader, self._ports.roster, self._ports.snapshots
        self.observations = self._ports.observations
        self.reality = Reality(now=self.kernel.clock)
        self.registry = registry(self.reality)
        self.watch = watch or Watch()
        self.bag: list[MessageInFlight] = []
        self.timers: list[tuple[float, MessageInFlight]] = []
        self.lost = False
        self.crashes = self.dropped = self.doubled = self.commits = 0
        self.left_stacks: set[str] = set()
        self.losses = 0
        self._ids = 0
        self._shape = shape
        self.skips_unchanged = shape.planner is Planner
        self.alarms: list[Alarm] = []
        self.groups: dict[SimulatedProcess, FiberGroups] = {}
        self.trouble = Trouble(self, faults)
        self.next_sweep = self.kernel.now + SWEEP_S
        self.checker = checker(self)
        self._connect()
        self.engines = [self._engine(f'engine-{number}') for number in range(1, shape.engines + 1)]
        self.workers = [self._worker(f'worker-{number}') for number in range(1, shape.workers + 1)]
        self.observers: list[SimulatedObserver] = []
        if faults.drift:
            observe(self)

    def _connect(self) -> None:
        self.store.pause = self.kernel.pause
        self.store.block = self.kernel.block
        self.store.released = self.kernel.unblock
        self.store.committed = self._committed
        self.reality.pause = self.kernel.pause
        self.reality.block = self._block
        self.reality.changed = self.checker.happened
        if isinstance(self.store, MemoryStore):
            self.store.rest = self._rest
        if self.faults.lag or self.faults.back:
            self.store.spread(max(*LAGS, *LOSSES))
        if self.faults.lag:
            self.store.lag = self.trouble.lag

    def close(self) -> None:
        """The world ends: everybody in it, and its database."""
        for process in {id(fiber.process): fiber.process for fiber in self.kernel.fibers}.values():
            self.kernel.kill(process)
        self.kernel.bury()
        self._storage.close()

    def clock(self) -> float:
        """The time according to the database, in seconds since the epoch."""
        return self.kernel.now + self.skew_s

    def _block(self, duration_s: float | None) -> None:
        self.trouble.excuses = True
        self.kernel.sleep(None, math.inf if duration_s is None else duration_s)

    def _rest(self, duration_s: float) -> None:
        self.kernel.sleep(Task('rest'), duration_s)

    def new_id(self) -> str:
        """An id that was never used before, the same in every run."""
        self._ids += 1
        return f'{self._ids:06d}'

    # --- processes --------------------------------------------------------------------------------------------

    def _engine(self, name: str) -> SimulatedEngine:
        def wire() -> EngineParts:
            return wire_engine(
                self._ports,
                SimulatedMessenger(self),
                self.registry,
                EngineOptions(
                    stacks=StackLimits(None, enable_stack_adopt=True, cancel_patience_s=PATIENCE_S),
                    # A machine that stands still is no outage here.
                    sweep=SweepOptions(SWEEP_S, SWEEP_S, lease_s=math.inf, clock=lambda: self.kernel.now),
                    dispatch_window=self._shape.window,
                    # Nothing here is spread over time: what is enrolled is due at once.
                    observed=dict.fromkeys(self.registry.observed_every_s(1.0, {}), 0.0),
                    repairs=RepairOptions(REPAIR_ATTEMPTS, SWEEP_S),
                    enable_stack_abandon=True,
                ),
                CoreWorker(name, self.new_id),
                EngineClasses(SimulatedCompiler, self._shape.planner, CandidTasks),
            )

        return SimulatedEngine(SimulatedProcess(name), wire)

    def _worker(self, name: str) -> SimulatedWorker:
        process, messenger = SimulatedProcess(name), SimulatedMessenger(self)

        def later(delay_s: float, traversal_id: str, number: int) -> None:
            if delay_s >= FOR_EVER_S:
                return
            self.timers.append((self.kernel.now + delay_s, MessageInFlight('check_resource', traversal_id, number)))

        def soon(delay_s: float, call: Callable[[], object]) -> None:
            def fiber() -> None:
                self.kernel.sleep(Task('soon'), delay_s)
                call()

            self.kernel.spawn(process, 'soon', fiber)

        def pause(duration_s: float) -> None:
            self.kernel.sleep(Task('pause'), duration_s)

        pace = PollPolicy(1.0, 30.0, 2.0, 3, latest)
        shape = self._shape
        options = WorkerOptions(
            name,
            'simulated',
            pace,
            SWEEP_S,
            LEASE_S,
            unattended_s=None,
            threads=shape.threads,
            dispatch_window=shape.window,
            max_inline_nodes=shape.max_inline_nodes,
        )
        service = wire_worker(
            self._ports,
            Dispatcher(self.store, messenger, self.new_id, window=shape.window),
            self.registry,
            messenger,
            options,
            self.new_id,
            WorkerRuntime(
                self.kernel.sleep, later, soon, partial(FiberGroups, self, process), pause, self.kernel.clock
            ),
            EngineNesting(SimulatedEngines(self), self.reader, lambda project_id, request_id: Context()),
        )
        self.roster.register(service.id, 'worker', name, 'simulated', LEASE_S)
        return SimulatedWorker(process, service, self.kernel.now + LEASE_S)

    def crash(self, process: SimulatedProcess) -> None:
        """A process dies at once, and another one is started in its place."""
        self.trouble.happened()
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
        for observer in self.observers:
            if observer.process is process:
                self.observers[self.observers.index(observer)] = SimulatedObserver.of(self, name)

    def freeze(self, process: SimulatedProcess, duration_s: float) -> None:
        """A process stands still for a while, and then goes on as if nothing had been."""
        self.watch.story(process.name, f'stands still for {duration_s:g} s', '')
        process.frozen_until = max(process.frozen_until, self.kernel.now + duration_s)
        self.trouble.excuses |= duration_s + SWEEP_S >= LEASE_S
        self.trouble.happened(process.frozen_until)

    # --- network ----------------------------------------------------------------------------------------------

    def send(self, message: MessageInFlight) -> bool:
        """Called from a fiber: a message is on its way, or lost; False where that can be told."""
        self.kernel.pause('send')
        away = self.trouble.broker_is_away
        if away or (self.faults.drop and self.choices.happens(self.faults.drop)):
            self.trouble.happened()
            self.dropped += 1
            self.watch.story('broker', message, LOST)
        else:
            self.bag.append(message)
        self.kernel.pause('sent')
        return not away

    def deliver(self, message: MessageInFlight) -> None:
        """Hand a message to a process, which begins to work on it; it may be delivered once more later."""
        if self.faults.double and self.choices.happens(self.faults.double):
            self.doubled += 1
        else:
            self.bag.remove(message)
        if message.kind == 'settle':
            engine = self.engines[self.choices.pick(len(self.engines))]
            self.watch.story('broker', message, engine.process.name)
            self.handle(
                engine.process, 'settle', lambda: engine.parts.traversals.settle(message.stack_id, message.traversal_id)
            )
        elif message.kind == 'cancel':
            self.watch.story('broker', message, 'workers')
            for worker in self.workers:
                worker.service.cancel(None, message.stack_id, message.traversal_id)
        else:
            worker = self.workers[self.choices.pick(len(self.workers))]
            self.watch.story('broker', message, worker.process.name)
            self.handle(
                worker.process,
                f'node {message.number}',
                lambda: worker.service.check_resource(None, message.traversal_id, message.number, message.hops),
            )

    @override
    def handle(self, process: SimulatedProcess, name: str, work: Callable[[], object]) -> None:
        """A process does something of its own: without the database it does not, and says so in its log."""

        def attempt() -> None:
            try:
                work()
            except DatabaseUnavailable:
                pass
            except Conflict:
                if not self.lost:
                    raise

        self.kernel.spawn(process, name, attempt)

    def _committed(self, decision: Decision[Any]) -> None:
        self.commits += 1
        self.checker.committed(self, decision)
        for watcher in self.watch.commits:
            watcher(self, decision)


def latest(low_s: float, high_s: float) -> float:
    """The later of two times: chance is left to the choices of a run."""
    return high_s
