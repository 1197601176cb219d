"""A world: engines and workers of production on a simulated store, clock and network.

The world offers a list of possible next steps, and the run chooses from it. So a run is determined by its choices
alone.
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
    """The caller of an operation."""

    request_id: str = 'req-simulated'
    project_id: str = PROJECT


@dataclass(eq=False)
class SimulatedEngine:
    """An engine process: the services of production on the simulated store, built at the first request.

    Many short runs never need them.
    """

    process: SimulatedProcess
    wire: Callable[[], EngineParts]

    @cached_property
    def parts(self) -> EngineParts:
        """The services of the engine."""
        return self.wire()


@dataclass(eq=False)
class SimulatedWorker:
    """A worker process: the service of production on the simulated store.

    :ivar holds_until: end of its lease, as far as the worker knows.
    :ivar loss: commits that the database has lost, until the next heartbeat of the worker notices it.
    """

    process: SimulatedProcess
    service: WorkerService
    holds_until: float
    loss: LostCommits | None = None


@dataclass
class Watch:
    """Callbacks for the events of a world.

    :param commits: called with the world and the decision of each commit.
    :param losses: called when commits are lost.
    :param story: called with actor, event and recipient.
    """

    commits: list[Callable[[World, Decision[Any]], None]] = field(default_factory=list)
    losses: list[Callable[[], None]] = field(default_factory=list)
    story: Callable[[str, str | MessageInFlight, str], None] = lambda who, what, whom: None


@dataclass(frozen=True, slots=True)
class WorldShape:
    """Number of processes of a world, and their options.

    :param planner: plans the traversals; see `convergence_simulator.world.planning`.
    :param window: dispatch window: number of nodes of a stack that are dispatched at once.
    :param threads: number of checks that a worker runs at a time.
    :param max_inline_nodes: maximum number of nodes that a thread runs one after the other.
    """

    engines: int = 2
    workers: int = 3
    threads: int = 8
    max_inline_nodes: int = 1
    planner: type[Planner] = Planner
    window: int = DISPATCH_WINDOW


class World(Passing):
    """The processes, the database, the network and the objects of one run.

    :param choices: decides every random event.
    :param checker: makes the checker of the invariants.
    :param shape: number and options of the processes.
    :param storage: makes the database, on the clock of this world.
    :ivar skew_s: seconds by which the clock of the database is ahead of the clock of the processes.
    :ivar groups: task groups of each worker; `alarms`: scheduled calls of processes.
    :ivar trouble: random faults and current outages.
    :ivar checker: checks the invariants at every event.
    :ivar observers: observers of objects; may be empty.
    :ivar lost: True after the first loss or crash; from then on the sweeper has work.
    :ivar losses: number of times that the database has lost commits.
    :ivar skips_unchanged: True if traversals leave out unchanged nodes.
    :ivar left_stacks: ids of nested stacks that were kept on request when their resources were removed.
    :ivar dropped: number of messages lost by chance; `doubled`: of messages delivered twice; `crashes`: of crashed
        processes; `commits`: of commits.
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
        """End the world: kill its processes and close its database."""
        for process in {id(fiber.process): fiber.process for fiber in self.kernel.fibers}.values():
            self.kernel.kill(process)
        self.kernel.bury()
        self._storage.close()

    def clock(self) -> float:
        """Return the time of the database, in seconds since the epoch."""
        return self.kernel.now + self.skew_s

    def _block(self, duration_s: float | None) -> None:
        self.trouble.excuses = True
        self.kernel.sleep(None, math.inf if duration_s is None else duration_s)

    def _rest(self, duration_s: float) -> None:
        self.kernel.sleep(Task('rest'), duration_s)

    def new_id(self) -> str:
        """Return a new unique id. The sequence of ids is the same in every run."""
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
                    # A standstill of the machine is no outage here.
                    sweep=SweepOptions(SWEEP_S, SWEEP_S, lease_s=math.inf, clock=lambda: self.kernel.now),
                    dispatch_window=self._shape.window,
                    # Observations are not spread over time here: a scheduled observation is due at once.
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
        """Kill a process, and start another one in its place."""
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
        """Let a process stand still for a while; it continues without knowing about the pause."""
        self.watch.story(process.name, f'stands still for {duration_s:g} s', '')
        process.frozen_until = max(process.frozen_until, self.kernel.now + duration_s)
        self.trouble.excuses |= duration_s + SWEEP_S >= LEASE_S
        self.trouble.happened(process.frozen_until)

    # --- network ----------------------------------------------------------------------------------------------

    def send(self, message: MessageInFlight) -> bool:
        """Send a message, or lose it by chance. Called from a fiber. Return False if the sender notices the loss."""
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
        """Hand a message to a process, which begins to work on it. By chance, the message is delivered again later."""
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
        """Start work of a process in a fiber. If the database is unavailable, the work ends without an error."""

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
    """Return the later of two times: the choices of a run decide about chance, not the worker."""
    return high_s
