"""Runs a scenario against an installation of real processes, and checks the final state.

The installation decides the order of events. Verbs that only a simulated network has, or that this user does not have,
are left out and named in the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.rows import Stack
from convergence.db.statements.store import Store
from convergence.rpc.client import EngineClient
from convergence_simulator.cloud.reality import Reality
from convergence_simulator.runs.playing import PlayedRun, ProcessControl
from convergence_simulator.scenarios.language import QueuedCall, Scenario
from convergence_simulator.scenarios.templates import Template
from convergence_simulator.scenarios.verification import Violation, verify
from convergence_simulator.stores.database import all_rows

LEFT_OUT = frozenset(
    {
        *('drop', 'double', 'broker_away', 'database_away', 'database_goes_back', 'clock_jumps', 'crash_observer'),
        *('harms', 'signal', 'clear_hook', 'snapshot_stack', 'restore_stack', 'delete_snapshot', 'go_back'),
        *('abandon_stack', 'adopt_stack'),
    }
)
"""Verbs that are not played on real processes."""


@dataclass(frozen=True, slots=True)
class RealInstallation:
    """Running processes, as a scenario uses them.

    :param client: receives the requests, with the methods of `convergence.rpc.client.EngineClient`.
    :param context: the caller of the requests, with its own project.
    """

    client: EngineClient
    context: Any
    store: Store
    reality: Reality
    processes: ProcessControl


@dataclass
class ExpectedStack:
    """The possible results for a stack.

    :ivar goals: templates; one of them has to be real at the end. Usually there is only one.
    :ivar before: templates of the completed goals that were possible before the last operation.
    :ivar anything: True if any result is possible after a cancel or a failure.
    """

    goals: list[Template]
    before: list[Template] = field(default_factory=list)
    anything: bool = False


class RealUser:
    """Sends requests for operations, and records the possible results for each stack.

    :ivar wishes: expected results, by the scenario's name of the stack.
    """

    def __init__(self, installation: RealInstallation) -> None:
        self._at = installation
        self._names: dict[str, str] = {}
        self._rollback: set[str] = set()
        self._minutes: dict[str, int] = {}
        self.wishes: dict[str, ExpectedStack] = {}

    def prefers(self, call: QueuedCall) -> None:
        """Set the options of the next operations."""
        name = call.arguments[0]
        if call.verb == 'rollback_on_failure':
            self._rollback.add(name)
        else:
            self._minutes[name] = call.arguments[1]

    def ask(self, call: QueuedCall) -> None:
        """Request an operation; a request that comes too late has no effect."""
        name = call.arguments[0]
        try:
            match call.verb:
                case 'create_stack':
                    self._create(name, call.arguments[1])
                case 'update_stack':
                    self._update(name, call.arguments[1])
                case 'rollback_stack':
                    self._roll_back(name)
                case 'delete_stack':
                    self.wishes[name] = ExpectedStack([Template()])
                    self._at.client.delete_stack(self._at.context, self._identity(name))
                case 'cancel' | 'cancel_patiently' | 'cancel_and_roll_back':
                    self.wishes[name].anything = True
                    back, now = call.verb == 'cancel_and_roll_back', call.verb == 'cancel'
                    self._at.client.stack_cancel_update(self._at.context, self._identity(name), back, now)
                case 'suspend_stack' | 'resume_stack' | 'check_stack':
                    act = getattr(self._at.client, f'stack_{call.verb.partition("_")[0]}')
                    act(self._at.context, self._identity(name))
                case 'says_broken':
                    self._at.client.resource_mark_unhealthy(
                        self._at.context, self._identity(name), call.arguments[1], True
                    )
                case 'refuses':
                    self._is_refused(*call.arguments)
                case _:
                    raise AssertionError(f'unknown verb {call.verb}')
        except (errors.NotSupported, errors.EntityNotFound):
            if call.verb not in ('cancel', 'cancel_patiently', 'cancel_and_roll_back', 'delete_stack'):
                raise

    def _is_refused(self, name: str, verb: str, *arguments: Any) -> None:
        client, context = self._at.client, self._at.context
        try:
            if verb == 'create_stack':
                client.create_stack(context, name, arguments[0].document())
            elif verb == 'update_stack':
                client.update_stack(context, self._identity(name), arguments[0].document())
            else:
                client.stack_cancel_update(context, self._identity(name), verb == 'cancel_and_roll_back', now=True)
        except errors.ConvergenceError:
            return
        raise Violation('refusal', f'{verb} of {name} was accepted')

    def _create(self, name: str, wanted: Template) -> None:
        self.wishes[name] = ExpectedStack([wanted])
        created = self._at.client.create_stack(self._at.context, name, wanted.document(), args=self._arguments(name))
        self._names[name] = created['stack_id']

    def _update(self, name: str, wanted: Template) -> None:
        self.wishes[name] = ExpectedStack([wanted], self._certain(name))
        self._at.client.update_stack(
            self._at.context, self._identity(name), wanted.document(), args=self._arguments(name)
        )

    def _roll_back(self, name: str) -> None:
        """Restore the earlier goal: by a rollback if the update is in progress, otherwise by an update."""
        target = self.wishes[name].before or [Template()]
        self.wishes[name] = ExpectedStack(target)
        goal_id = self.stack(name).template_id
        try:
            self._at.client.stack_cancel_update(self._at.context, self._identity(name), True)
            in_time = self.stack(name).template_id != goal_id
        except errors.NotSupported:
            in_time = False
        # After the new goal was completed, a rollback returns to this goal.
        if not in_time:
            self.wishes[name] = ExpectedStack([target[-1]])
            self._at.client.update_stack(self._at.context, self._identity(name), target[-1].document())

    def _certain(self, name: str) -> list[Template]:
        """Return the templates that may be the last completed goal when the next operation is accepted."""
        wish, stack = self.wishes[name], self.stack(name)
        if stack.status is Status.COMPLETE:
            return wish.goals if stack.action is not Action.ROLLBACK else wish.before
        return [*wish.before, *(wish.goals if stack.status is Status.IN_PROGRESS else [])]

    def _arguments(self, name: str) -> dict[str, Any]:
        limited = {'timeout_mins': self._minutes[name]} if name in self._minutes else {}
        return {'disable_rollback': name not in self._rollback, **limited}

    def limited(self, name: str) -> bool:
        """Return True if operations on a stack may exceed their time limit."""
        return name in self._minutes

    def _identity(self, name: str) -> dict[str, Any]:
        return {'stack_id': self._names[name], 'stack_name': name, 'tenant': self._at.context.project_id}

    def stack(self, name: str) -> Stack:
        """Return the row of a stack."""
        return all_rows(self._at.store).stack[self._names[name]]

    def busy(self) -> Iterator[str]:
        """Yield a description of each activity in the stacks."""
        tables = all_rows(self._at.store)
        for name, stack_id in self._names.items():
            stack = tables.stack[stack_id]
            if stack.status is Status.IN_PROGRESS:
                yield f'{name} is {stack.action}_{stack.status}'
            yield from (f'{row.name} is claimed' for row in tables.resources_of(stack_id) if row.owner is not None)


class RealRun(PlayedRun):
    """One scenario on one installation."""

    def __init__(self, scenario: Scenario, installation: RealInstallation, *, limit_s: float = 120.0) -> None:
        super().__init__(scenario, installation.reality, installation.processes, LEFT_OUT, limit_s=limit_s)
        self._user = RealUser(installation)

    @override
    def _prefers(self, call: QueuedCall) -> None:
        self._user.prefers(call)

    @override
    def _ask(self, call: QueuedCall) -> None:
        if call.verb == 'delete_stack' and call.arguments[1:]:
            self.left_out.append('leave')  # the kept objects cannot be distinguished later
        self._user.ask(call)

    @override
    def _busy(self) -> Iterator[str]:
        return self._user.busy()

    @override
    def _look(self) -> None:
        """Check nothing: the state inside real processes is not observable."""

    @override
    def _end(self) -> None:
        for name, wish in self._user.wishes.items():
            stack = self._user.stack(name)
            may_fail = self._misbehaving or self._user.limited(name)
            open_end = wish.anything or (may_fail and stack.status is Status.FAILED)
            if open_end:
                continue
            if stack.status is Status.FAILED:
                raise Violation('end state', f'{name} is {stack.action}_FAILED: {stack.status_reason}')
            may_have_gone_back = may_fail and stack.action is Action.ROLLBACK
            self._check_goals((wish.before or [Template()]) if may_have_gone_back else wish.goals, stack.id)

    def _check_goals(self, goals: list[Template], stack_id: str) -> None:
        """Require that one of the goals is real.

        :raises Violation: none is; the text is about the last goal.
        """
        for number, goal in enumerate(goals, 1):
            try:
                verify(self._reality, goal, stack_id)
                return
            except Violation:
                if number == len(goals):
                    raise
