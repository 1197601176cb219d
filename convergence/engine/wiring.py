"""Put an engine together: daemons, the simulator and the tests all do it here, on ports of their own."""

from __future__ import annotations

from collections.abc import Mapping
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
from convergence.engine.nesting.converger import NestingLimits
from convergence.engine.nesting.operations import Nesting
from convergence.engine.operations.abandonment import Abandonment
from convergence.engine.operations.actions import Actions, Present
from convergence.engine.operations.options import StackLimits
from convergence.engine.operations.rollbacks import Rollbacks
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
    """How an engine works.

    :param window: how many nodes of a stack are cast at once.
    :param together: of how many of them workers are told in one message, at most.
    :param visit_unchanged: see `Planner`.
    :param max_snapshots: how many snapshots a stack may have; None: no limit.
    :param max_signal_bytes: what the signals of one resource may say in all, as it is stored.
    :param observed: longest pause in seconds between two looks at an object, by type; others are not observed.
    :param may_abandon: whether a stack may be forgotten while its objects stay.
    """

    limits: template.Limits = field(default_factory=template.Limits)
    stacks: StackLimits = field(default_factory=StackLimits)
    sweep: SweepOptions = field(default_factory=SweepOptions)
    window: int = DISPATCH_WINDOW
    together: int = MAX_BATCH_NODES
    visit_unchanged: bool = False
    max_snapshots: int | None = None
    max_signal_bytes: int = MOST_BYTES
    may_abandon: bool = False
    nesting: NestingLimits = field(default_factory=NestingLimits)
    observed: Mapping[str, float] = field(default_factory=dict)
    repairs: RepairOptions = field(default_factory=RepairOptions)


@dataclass(frozen=True, slots=True)
class EngineParts:
    """What carries an engine's operations out, and its sweeper.

    :param drift: what does what people ask to be done about objects that changed outside of their stacks.
    """

    dispatcher: Dispatcher
    enrolment: ObservationScheduler
    compiler: TemplateCompiler
    traversals: Traversals
    stacks: Stacks
    rollbacks: Rollbacks
    actions: Actions
    snapshots: Snapshots
    abandonment: Abandonment
    signals: SignalOperations
    drift: tuple[DriftPolicyChanges, DriftAcceptance, ResourceRepairs]
    nesting: Nesting
    sweeper: Sweeper


def wire_engine(
    ports: Ports,
    messenger: Messenger,
    types: Registry,
    options: EngineOptions,
    myself: Worker,
    *,
    compiler_of: type[TemplateCompiler] = TemplateCompiler,
    tasks_of: type[SweepTasks] = SweepTasks,
) -> EngineParts:
    """The parts of one engine, each knowing the others that it needs. Nothing runs yet.

    :param messenger: sends to the workers.
    :param myself: the engine as it takes rows from dead workers, and the source of its ids.
    """
    store, reader, new_id = ports.store, ports.reader, myself.new_id
    dispatcher = Dispatcher(store, messenger, new_id, options.together, options.window)
    compiler = compiler_of(reader, types, options.limits, deepest=options.nesting.max_depth)
    most, visits = options.nesting.max_resources, options.visit_unchanged
    planner = Planner(new_id, options.window, visits, types.is_exclusive, most, types.gives_way)
    traversals = Traversals(store, reader, compiler, dispatcher, planner)
    nesting = Nesting(ports, compiler, traversals, types, options.nesting, new_id)
    stacks = Stacks(reader, compiler, traversals, options.stacks, new_id, ports.credentials, nesting.release)
    scaling = GroupScaling(store, reader, nesting, types, new_id)
    enrolment = ObservationScheduler(ports.observations, reader, options.observed, options.sweep.limit)
    repairs = DriftRepairs(ports.observations, reader, compiler, traversals, types, new_id, options.repairs)
    doing = (dispatcher, traversals, options.sweep, myself, nesting, enrolment, repairs)
    tasks = tasks_of(store, ports.sweeps, ports.roster, *doing, ports.pending, options.repairs.pauses)
    return EngineParts(
        dispatcher,
        enrolment,
        compiler,
        traversals,
        stacks,
        Rollbacks(stacks, traversals),
        Actions(store, reader, stacks, Present(reader, compiler), traversals, new_id),
        Snapshots(stacks, compiler, traversals, ports.snapshots, new_id, most=options.max_snapshots),
        Abandonment(stacks, compiler, traversals, enabled=options.may_abandon),
        SignalOperations(ports, stacks, types, dispatcher, scaling, new_id, most_bytes=options.max_signal_bytes),
        (
            DriftPolicyChanges(stacks, traversals),
            DriftAcceptance(store, stacks, ports.observations, new_id),
            ResourceRepairs(stacks, traversals, ports.observations),
        ),
        nesting,
        Sweeper(ports.sweeps, tasks, options.sweep, myself),
    )
