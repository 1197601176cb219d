"""Plays a scenario on a crew. User and final comparison are those of a simulated world; real threads do the rest."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from typing_extensions import override

from convergence.core.model import PERFORMED, Status
from convergence.core.rows import Traversal
from convergence.db.repositories.wiring import ports_of
from convergence.db.statements.store import Store
from convergence.values import replace
from convergence_simulator.crew.crew import Crew
from convergence_simulator.memory.look import Tables
from convergence_simulator.runs.ending import FinalComparison
from convergence_simulator.runs.playing import PlayedRun
from convergence_simulator.runs.requests import waiting
from convergence_simulator.runs.user import User
from convergence_simulator.scenarios.language import QueuedCall, Scenario
from convergence_simulator.scenarios.templates import Template
from convergence_simulator.scenarios.verification import Violation
from convergence_simulator.stores.database import all_rows
from convergence_simulator.world.kernel import SimulatedProcess

AGAIN_S = 0.1
"""Seconds before a request is repeated that an engine was too busy for."""

LEFT_OUT = frozenset(
    {
        *('drop', 'double', 'broker_away', 'database_away', 'database_goes_back', 'clock_jumps', 'harms'),
        'crash_observer',
    }
)
"""Verbs that are not played on a crew. Messages are lost and doubled by chance."""


@dataclass
class SeenSoFar:
    """Facts about a run, read from the rows at several moments; see `convergence_simulator.world.place.Memories`.

    Much can happen between two moments. So the completed goals are taken from the rows, which a simulated world does
    not trust.
    """

    templates: dict[str | None, Template] = field(default_factory=lambda: {None: Template()})
    good: dict[str, str | None] = field(default_factory=dict)
    given: dict[str, Traversal] = field(default_factory=dict)
    changed: dict[str, Traversal] = field(default_factory=dict)
    known_to: dict[str, set[SimulatedProcess]] = field(default_factory=dict)

    def look(self, tables: Tables) -> None:
        """Update the facts from the rows."""
        for row in tables.template.values():
            if row.id not in self.templates:
                document, environment = row.content['template'], row.content['environment']
                assert isinstance(document, dict)
                assert isinstance(environment, dict)
                self.templates[row.id] = Template.from_document(document, environment)
        current = {stack.traversal_id for stack in tables.stack.values()}
        goals = [each for each in tables.traversal.values() if each.action not in PERFORMED]
        # Two may have begun at the same moment: the current one of a stack is its last.
        for goal in sorted(goals, key=lambda each: (each.started_at, each.id in current)):
            self.given[goal.stack_id] = self.changed[goal.stack_id] = goal
        self.good.update((stack.id, stack.last_good_template_id) for stack in tables.stack.values())


class CrewPlace:
    """The parts of a crew that user and checks read; see `convergence_simulator.world.place.WatchedPlace`.

    :ivar tables: the rows as they were read last.
    """

    losses = crashes = 0

    def __init__(self, crew: Crew, store: Store) -> None:
        ports = ports_of(store)
        self.reader, self.snapshots = ports.reader, ports.snapshots
        self.reality = crew.reality
        self.checker = SeenSoFar()
        self.tables = Tables()
        self._crew = crew
        self._store = store

    @property
    def store(self) -> CrewPlace:
        """Itself: it has the rows."""
        return self

    @property
    def left_stacks(self) -> Collection[str]:
        """See `convergence_simulator.world.place.WatchedPlace`."""
        return self._crew.belongings.left_stacks

    def look(self) -> Tables:
        """Read all rows at one moment."""
        self.tables = all_rows(self._store)
        self.checker.look(self.tables)
        return self.tables


class CrewRun(PlayedRun):
    """One scenario on one crew."""

    def __init__(self, scenario: Scenario, crew: Crew, store: Store, *, limit_s: float = 60.0) -> None:
        super().__init__(scenario, crew.reality, crew, LEFT_OUT, limit_s=limit_s)
        self._crew = crew
        self._place = CrewPlace(crew, store)
        self._user = User(self._place)
        self._user.tolerant = scenario.tolerant
        self._ending = FinalComparison(self._place, self._user)
        self._attended: set[tuple[object, ...]] = set()

    @override
    def _prefers(self, call: QueuedCall) -> None:
        self._user.prefers(call)

    @override
    def _ask(self, call: QueuedCall) -> None:
        """Send a request to one of the engines, as a client does over RPC; repeat it while the engine is too busy.

        :raises Violation: the engine is still too busy at the limit.
        """
        ends = time.monotonic() + self._limit_s
        while True:
            self._place.look()
            self._user.turned_away = False
            self._user.ask(self._crew.engine(), call)
            if not self._user.turned_away:
                return
            if time.monotonic() > ends:
                raise Violation('liveness', f'{call.verb} of {call.arguments[0]} was postponed for {self._limit_s:g} s')
            self._look()  # the obstacle may be a resource that waits for this user
            time.sleep(AGAIN_S)
            call = replace(call, again=True)

    @override
    def _busy(self) -> Iterator[str]:
        tables = self._place.look()
        for stack in tables.stack.values():
            if stack.status is Status.IN_PROGRESS:
                yield f'{stack.name} is {stack.action}_{stack.status}'
            if stack.id in self._place.left_stacks and stack.deleted_at is None and stack.parent_id is not None:
                yield f'{stack.name} lost its resource, and is not a root stack yet'
        yield from (f'{row.name} is claimed' for row in tables.resource.values() if row.owner is not None)

    @override
    def _look(self) -> None:
        """Check the present state, and send the signals for which resources wait."""
        before, ledger = self._crew.at_rest(), self._crew.ledger
        tables = self._place.look()
        ledger.look(tables)
        if before is not None and before == self._crew.at_rest() and not self._crew.lost:
            ledger.rest(tables)
        ledger.raise_any()
        for name, row, hook in waiting(self._place):
            key = (row.id, row.hook_traversal_id if hook else row.traversal_id, hook)
            if self._user.ids.get(name) == row.stack_id and key not in self._attended:
                self._attended.add(key)
                self._ask(
                    QueuedCall('clear_hook', (name, row.name, hook)) if hook else QueuedCall('signal', (name, row.name))
                )

    @override
    def _scenario_function(self, call: QueuedCall, rested: bool) -> None:
        if not self._reality.late:  # after a late change the state is not predictable; the final comparison decides
            super()._scenario_function(call, rested)

    @override
    def _end(self) -> None:
        """Compare as in a simulated world: failed goals can be reached after all faults have stopped."""
        self._compare()
        calls = self._ending.failed()
        if not calls:
            return
        self._crew.calm_down()
        self._reality.behaves_well()
        self._user.starts_afresh()
        for call in calls:
            self._carry_out(call)
        self._rest()
        self._compare()

    def _compare(self) -> None:
        self._crew.belongings.set_aside(self._place.look())
        self._ending.check()
