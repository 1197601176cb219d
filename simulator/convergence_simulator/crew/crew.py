"""Engines and workers in real threads, on a real database server, which decides the order of transactions.

The code is that of production, with its own statements and locks; only the cloud and the messages are simulated. A seed
decides about lost and doubled messages and about the places at which threads pause inside their transactions, so that
several transactions are open at once. The seed does not repeat a run exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from typing_extensions import override

from convergence.concurrency import Lock, ThreadEvent, start_thread
from convergence.core.claim import Worker as CoreWorker
from convergence.core.model import DISPATCH_WINDOW
from convergence.db.connections.database import Database
from convergence.db.ports import Ports
from convergence.db.repositories.wiring import ports_of
from convergence.db.statements.store import Store
from convergence.dispatch import Dispatcher
from convergence.engine.operations.options import StackLimits
from convergence.engine.sweeper.tasks import SweepOptions
from convergence.engine.wiring import EngineClasses, EngineOptions, EngineParts, wire_engine
from convergence.errors import ConvergenceError, NoAnswer
from convergence.randomness import new_id
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.attempts.nested import EngineNesting
from convergence.worker.service import WorkerOptions, WorkerService
from convergence.worker.wiring import WorkerRuntime, wire_worker
from convergence_simulator.cloud.kinds import registry
from convergence_simulator.cloud.trees import FOR_EVER_S
from convergence_simulator.crew.belongings import Belongings
from convergence_simulator.crew.ledger import CommitLedger
from convergence_simulator.crew.lingering import CrewStore, Gone, Moments, ThreadedReality
from convergence_simulator.runs.playing import SPEED
from convergence_simulator.scenarios.language import PATIENCE_S
from convergence_simulator.world.compiling import SimulatedCompiler
from convergence_simulator.world.engines import AskedEngines
from convergence_simulator.world.faults import NONE, Faults
from convergence_simulator.world.place import AnEngine
from convergence_simulator.world.world import Context

BEAT_S, LEASE_S, UNATTENDED_S, STOP_S = 0.3, 3.0, 1.5, 10.0
SETTLES_S = 60.0 / SPEED
"""Seconds for which an interrupted creation may still create an object; scenarios wait for it."""


@dataclass(eq=False)
class CrewEngine:
    """An engine process."""

    store: CrewStore
    parts: EngineParts


@dataclass(eq=False)
class CrewWorker:
    """A worker process. `timers` contains its scheduled calls with their times."""

    store: CrewStore
    service: WorkerService
    ports: Ports
    timers: list[tuple[float, Callable[[], object]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Order:
    """Options of a crew. See `convergence_simulator.runs.plan.RunPlan`."""

    seed: int = 0
    faults: Faults = NONE
    engines: int = 2
    workers: int = 3
    threads: int = 8
    max_inline_nodes: int = 1
    window: int = DISPATCH_WINDOW


class Crew:
    """All processes of one run, each with its own threads, store and connections.

    :param database: an empty database with the newest schema.
    :ivar lost: True after the first loss or crash; from then on the sweepers have work.
    """

    def __init__(self, database: Database, order: Order) -> None:
        self.moments = Moments(order.seed)
        self.ledger = CommitLedger()
        self.reality = ThreadedReality(self.moments)
        self.belongings = Belongings(self.reality, ports_of(Store(database)).reader)
        self.reality.changed = self.belongings.happened
        self.lost = False
        self._database = database
        self._order = order
        self._registry = registry(self.reality)
        self._over = ThreadEvent()
        self._lock = Lock()
        self._active = 0
        self._begun = 0
        self._accidents = 0
        self._dead: list[CrewWorker] = []
        self.engines = [self._engine() for _ in range(order.engines)]
        self.workers = [self._worker() for _ in range(order.workers)]

    def _store(self) -> CrewStore:
        return CrewStore(self._database, self.moments, self.ledger, self.belongings)

    def _engine(self) -> CrewEngine:
        store = self._store()
        options = EngineOptions(
            stacks=StackLimits(None, enable_stack_adopt=True, cancel_patience_s=PATIENCE_S / SPEED),
            sweep=SweepOptions(BEAT_S, UNATTENDED_S),
            dispatch_window=self._order.window,
            enable_stack_abandon=True,
        )
        window = self._order.window
        myself = CoreWorker(new_id(), new_id, window, creation=lambda name: self._registry.creation(name, SETTLES_S))
        classes = EngineClasses(SimulatedCompiler)
        parts = wire_engine(ports_of(store), self, self._registry, options, myself, classes)
        engine = CrewEngine(store, parts)
        self._loop(store, lambda: self._swept(engine))
        return engine

    def _swept(self, engine: CrewEngine) -> None:
        with suppress(ConvergenceError):
            engine.parts.sweeper.sweep()

    def _worker(self) -> CrewWorker:
        store = self._store()
        ports = ports_of(store)
        timers: list[tuple[float, Callable[[], object]]] = []

        def later(delay_s: float, traversal_id: str, number: int) -> None:
            if delay_s >= FOR_EVER_S:
                return
            timers.append((time.monotonic() + delay_s, partial(self.check_resource, traversal_id, number)))

        def soon(delay_s: float, call: Callable[[], object]) -> None:
            timers.append((time.monotonic() + delay_s, call))

        pace = PollPolicy(poll_interval_min_s=0.02, poll_interval_max_s=0.2, park_after_s=0.1, transient_attempts=3)
        options = WorkerOptions(
            'crew',
            'simulated',
            pace,
            BEAT_S,
            LEASE_S,
            1.0,
            None,
            threads=self._order.threads,
            max_inline_nodes=self._order.max_inline_nodes,
            create_ambiguity_s=SETTLES_S,
            dispatch_window=self._order.window,
        )
        service = wire_worker(
            ports,
            Dispatcher(store, self, new_id, window=self._order.window),
            self._registry,
            self,
            options,
            new_id,
            WorkerRuntime(retry_later=later, call_later=soon),
            EngineNesting(CrewEngines(self, store), ports.reader, lambda project_id, request_id: Context()),
        )
        ports.roster.register(service.id, 'worker', 'crew', 'simulated', LEASE_S)
        worker = CrewWorker(store, service, ports, timers)
        store.accident = lambda: self._accident(worker)
        self._loop(store, lambda: self._beaten(worker))
        return worker

    def _beaten(self, worker: CrewWorker) -> None:
        due = [timer for timer in list(worker.timers) if timer[0] <= time.monotonic()]
        for timer in due:
            worker.timers.remove(timer)
            timer[1]()
        with suppress(ConvergenceError):
            if not worker.ports.roster.beat(worker.service.id):
                worker.service.give_up()
                worker.ports.roster.register(worker.service.id, 'worker', 'crew', 'simulated', LEASE_S)
            worker.service.reconcile()

    def _loop(self, store: CrewStore, turn: Callable[[], None]) -> None:
        """Call `turn` again and again in a new thread, until the process is dead or the run is over."""

        def loop() -> None:
            try:
                while not self._over.wait(BEAT_S):
                    with self._busy():
                        turn()
            except Gone:
                pass
            except Exception as error:  # noqa: BLE001 - no operator reads a log here; the run has to fail
                self.ledger.note('error', f'{type(error).__name__}: {error}')

        start_thread('crew', loop)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        with self._lock:
            self._active += 1
            self._begun += 1
        try:
            yield
        finally:
            with self._lock:
                self._active -= 1

    # --- messages ---------------------------------------------------------------------------------------------

    def can_send(self) -> bool:
        """Return True: the broker is never away, but it loses messages."""
        return True

    def check_resource(self, traversal_id: str, node: int, hops: int = 0) -> bool:
        """Let one worker check a node; by chance no worker or two.

        No worker does after the end: each would forward the node to another one.
        """
        for _ in range(0 if self._over.is_set() else self._copies()):
            worker = self.workers[self.moments.below(len(self.workers))]
            if not worker.store.dead:
                worker.service.check_resource(None, traversal_id, node, hops)
        return True

    def check_resources(self, traversal_id: str, nodes: Sequence[int]) -> bool:
        """Send the message for each of several nodes."""
        sent = [self.check_resource(traversal_id, node) for node in nodes]
        return all(sent)

    def cancel(self, stack_id: str, traversal_id: str) -> bool:
        """Let all workers stop working on a traversal."""
        if self._copies():
            for worker in self.workers:
                worker.service.cancel(None, stack_id, traversal_id)
        return True

    def settle(self, stack_id: str, traversal_id: str) -> bool:
        """Let one of the engines settle a traversal after a failed node, in a separate thread."""
        engine = self.engine()

        def settle() -> None:
            with suppress(ConvergenceError, Gone):
                engine.parts.traversals.settle(stack_id, traversal_id)
            with self._lock:
                self._active -= 1

        if self._copies():
            with self._lock:
                self._active += 1
                self._begun += 1
            start_thread('settle', settle)
        return True

    def _copies(self) -> int:
        if self.loses():
            return 0
        return 2 if self.moments.happens(self._order.faults.double) else 1

    # --- control by a scenario --------------------------------------------------------------------------------

    def engine(self) -> CrewEngine:
        """Return one of the engines, by chance."""
        return self.engines[self.moments.below(len(self.engines))]

    def crash(self, kind: str) -> None:
        """Kill the oldest process of this kind, and start another one in its place."""
        self.lost = True
        if kind == 'engine':
            self.engines.pop(0).store.dead = True
            self.engines.append(self._engine())
        else:
            self._replace(self.workers[0])

    def freeze(self, kind: str, duration_s: float) -> None:
        """Let the oldest process of this kind stand still for a while."""
        self.lost = True
        process: CrewEngine | CrewWorker = self.engines[0] if kind == 'engine' else self.workers[0]
        process.store.frozen_until = time.monotonic() + duration_s

    def _accident(self, worker: CrewWorker) -> None:
        """Decide by chance, before a transaction of a worker, if it dies or stands still within its lease or beyond."""
        faults = self._order.faults
        if self._accidents >= faults.most_crashes or worker.store.dead:
            return
        if self.moments.happens(faults.crash):
            self._accidents += 1
            self._replace(worker)
        elif self.moments.happens(faults.freeze):
            self._accidents += 1
            self.lost = True
            worker.store.frozen_until = time.monotonic() + (LEASE_S / 3, LEASE_S * 1.5)[self.moments.below(2)]

    def _replace(self, worker: CrewWorker) -> None:
        self.lost = worker.store.dead = True
        self._dead.append(worker)
        fresh = self._worker()
        with self._lock:
            self.workers = [*(each for each in self.workers if each is not worker), fresh]

    def calm_down(self) -> None:
        """Stop all faults by chance."""
        self._order = replace(self._order, faults=NONE)

    def loses(self) -> bool:
        """Decide by chance if a message is lost; True if it is."""
        is_lost = self.moments.happens(self._order.faults.drop)
        self.lost |= is_lost
        return is_lost

    def ended(self) -> list[str]:
        """Return an empty list: threads do not end by themselves."""
        return []

    # --- moments of rest --------------------------------------------------------------------------------------

    def at_rest(self) -> int | None:
        """Return a number that does not change while no thread works; None while one does."""
        with self._lock:
            if self._active:
                return None
            begun = self._begun
        for worker in self.workers:
            load = worker.service.load()
            if load['busy'] or load['waiting'] or worker.timers:
                return None
        return begun + self.ledger.count

    def stop(self) -> None:
        """End all threads, except those that are stuck."""
        self._over.set()
        for worker in (*self.workers, *self._dead):
            worker.service.begin_to_stop(1.0)
        for worker in self.workers:
            worker.service.wait(STOP_S)
        for store in [*(engine.store for engine in self.engines), *(worker.store for worker in self.workers)]:
            store.dead = True
        ends = time.monotonic() + STOP_S
        while self._active and time.monotonic() < ends:
            time.sleep(0.01)


class CrewEngines(AskedEngines):
    """The engines of a crew, as one of its workers calls them.

    :param store: the store of the worker.
    """

    def __init__(self, crew: Crew, store: CrewStore) -> None:
        super().__init__(ports_of(store).reader)
        self._crew = crew

    @override
    @contextmanager
    def _asking(self) -> Iterator[AnEngine]:
        if self._crew.loses():
            raise NoAnswer('the request is lost')
        try:
            yield self._crew.engine()
        except Gone:
            raise NoAnswer('the engine has died') from None
        if self._crew.loses():
            raise NoAnswer('the answer is lost')
