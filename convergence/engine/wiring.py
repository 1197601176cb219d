"""Put an engine together: daemons, the simulator and the tests all do it here, on ports of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from convergence import template
from convergence.core.claim import Worker
from convergence.core.model import DISPATCH_WINDOW, MAX_BATCH_NODES
from convergence.core.request import Planner
from convergence.db.ports import Ports
from convergence.dispatch import Dispatcher, Messenger
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.drift.acceptance import DriftAcceptance
from convergence.engine.drift.automatic_repairs import DriftRepairs
from convergence.engine.drift.observation_schedule import ObservationScheduler
from convergence.engine.drift.policies import DriftPolicyChanges
from convergence.engine.drift.requested_repairs import RepairOptions, ResourceRepairs
from convergence.engine.nesting.converger import NestedConverger, NestingLimits
from convergence.engine.nesting.desired import DesiredStacks
from convergence.engine.nesting.operations import NestedOperations
from convergence.engine.nesting.releases import Releases
from convergence.engine.nesting.snapshots import NestedSnapshots
from convergence.engine.nesting.starts import NestedStarts
from convergence.engine.nesting.stops import NestedStops
from convergence.engine.operations.abandonment import Abandonment
from convergence.engine.operations.actions import Actions, Present
from convergence.engine.operations.options import StackLimits
from convergence.engine.operations.rollbacks import Rollbacks
from convergence.engine.operations.snapshot_plans import SnapshotPlans
from convergence.engine.operations.snapshots import Snapshots
from convergence.engine.operations.stacks import Stacks
from convergence.engine.signals.scaling import GroupScaling
from convergence.engine.signals.signals import MOST_BYTES, SignalOperations
from convergence.engine.sweeper.sweeper import Sweeper
from convergence.engine.sweeper.tasks import SweepOptions, SweepTasks
from convergence.engine.traversals.traversals import Traversals
from convergence.resources.registry import Registry


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options of an engine.

    Fields with the name of an option hold its value; see `convergence.settings`.

    :param observed: maximum number of seconds between two observations of an object, by type; others are not observed.
    """

    limits: template.Limits = field(default_factory=template.Limits)
    stacks: StackLimits = field(default_factory=StackLimits)
    sweep: SweepOptions = field(default_factory=SweepOptions)
    dispatch_window: int = DISPATCH_WINDOW
    max_batch_nodes: int = MAX_BATCH_NODES
    max_snapshots_per_stack: int | None = None
    max_signal_bytes: int = MOST_BYTES
    enable_stack_abandon: bool = False
    nesting: NestingLimits = field(default_factory=NestingLimits)
    observed: Mapping[str, float] = field(default_factory=dict)
    repairs: RepairOptions = field(default_factory=RepairOptions)


@dataclass(frozen=True, slots=True)
class EngineParts:
    """The parts of an engine: its operations and its sweeper.

    :param drift: operations on drift: policies, acceptance, repairs.
    """

    dispatcher: Dispatcher
    observation_scheduler: ObservationScheduler
    compiler: TemplateCompiler
    traversals: Traversals
    stacks: Stacks
    rollbacks: Rollbacks
    actions: Actions
    snapshots: Snapshots
    abandonment: Abandonment
    signals: SignalOperations
    drift: tuple[DriftPolicyChanges, DriftAcceptance, ResourceRepairs]
    nesting: NestedOperations
    nested_stops: NestedStops
    sweeper: Sweeper


@dataclass(frozen=True, slots=True)
class EngineClasses:
    """The classes of those parts of an engine that the simulator replaces."""

    compiler: type[TemplateCompiler] = TemplateCompiler
    planner: type[Planner] = Planner
    tasks: type[SweepTasks] = SweepTasks


def wire_engine(
    ports: Ports,
    messenger: Messenger,
    types: Registry,
    options: EngineOptions,
    myself: Worker,
    classes: EngineClasses = EngineClasses(),
) -> EngineParts:
    """Construct the parts of one engine. Nothing runs yet.

    :param messenger: sends to the workers.
    :param myself: the engine as it takes rows from dead workers, and the source of its ids.
    """
    store, reader, new_id = ports.store, ports.reader, myself.new_id
    dispatcher = Dispatcher(store, messenger, new_id, options.max_batch_nodes, options.dispatch_window)
    compiler = classes.compiler(reader, types, options.limits, deepest=options.nesting.max_depth)
    planner = classes.planner(
        new_id, options.dispatch_window, types.is_exclusive, options.nesting.max_resources, types.gives_way
    )
    traversals = Traversals(store, reader, compiler, dispatcher, planner)
    releases = Releases(ports, types, traversals)
    stops = NestedStops(reader, traversals, releases)
    nesting, scaling = _wire_nesting(ports, compiler, traversals, types, options.nesting, new_id, releases)
    stacks = Stacks(reader, compiler, traversals, options.stacks, new_id, releases.release, ports.credentials)
    scheduler = ObservationScheduler(ports.observations, reader, options.observed, options.sweep.limit)
    repairs = DriftRepairs(ports.observations, reader, compiler, traversals, types, new_id, options.repairs)
    doing = (dispatcher, traversals, options.sweep, myself, stops, scheduler, repairs)
    tasks = classes.tasks(store, ports.sweeps, ports.roster, *doing, ports.pending, options.repairs.pauses)
    return EngineParts(
        dispatcher,
        scheduler,
        compiler,
        traversals,
        stacks,
        Rollbacks(stacks, traversals),
        Actions(store, reader, stacks, Present(reader, compiler), traversals, new_id),
        Snapshots(stacks, compiler, traversals, ports.snapshots, new_id, most=options.max_snapshots_per_stack),
        Abandonment(stacks, compiler, traversals, enabled=options.enable_stack_abandon),
        SignalOperations(ports, stacks, types, dispatcher, scaling, new_id, most_bytes=options.max_signal_bytes),
        (
            DriftPolicyChanges(stacks, traversals),
            DriftAcceptance(store, stacks, ports.observations, new_id),
            ResourceRepairs(stacks, traversals, ports.observations),
        ),
        nesting,
        stops,
        Sweeper(ports.sweeps, tasks, options.sweep, myself),
    )


def _wire_nesting(
    ports: Ports,
    compiler: TemplateCompiler,
    traversals: Traversals,
    types: Registry,
    limits: NestingLimits,
    new_id: Callable[[], str],
    releases: Releases,
) -> tuple[NestedOperations, GroupScaling]:
    store, reader = ports.store, ports.reader
    starts, desired = NestedStarts(traversals, compiler, types, new_id), DesiredStacks(reader, compiler, types)
    snapshots = NestedSnapshots(SnapshotPlans(reader, compiler, ports.snapshots), ports.snapshots, traversals, starts)
    converger = NestedConverger(reader, desired, snapshots, starts, limits)
    nesting = NestedOperations(reader, converger, snapshots, starts, releases, Present(reader, compiler))
    return nesting, GroupScaling(store, reader, desired, starts, types, new_id)
