"""Repairs on request: an update to the present goal that visits only the given resources."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.observation import repair_pause_s
from convergence.core.request import Request
from convergence.core.rows import Resource, Stack
from convergence.core.views import PlanView
from convergence.db.ports import RepairsPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.operations.stacks import Stacks
from convergence.engine.reads.formats import identity
from convergence.engine.traversals.refusals import may_repair
from convergence.engine.traversals.traversals import ROUNDS, Overtaken, Traversals
from convergence.settings import EngineSettings

_SETTINGS = EngineSettings()

_COUNTED = ' (repair '


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """How often objects are repaired; see the options of ``[engine]`` of the same names."""

    repair_attempts: int = _SETTINGS.repair_attempts
    repair_pause_s: float = _SETTINGS.repair_pause_s

    @property
    def pauses(self) -> tuple[float, ...]:
        """Pauses in seconds after the first failed repair, after the second, and so on."""
        return tuple(repair_pause_s(self.repair_pause_s, each) for each in range(1, self.repair_attempts))


def cause_of(what: str, attempt: int, most: int) -> str:
    """The cause of an automatic repair, with its number in the row of repairs.

    :param what: the reason, or the cause of the repair before.
    """
    return f'{what.rpartition(_COUNTED)[0] or what}{_COUNTED}{attempt} of {most})'


def repair_of(
    compiler: TemplateCompiler,
    stack: Stack,
    visits: Collection[str],
    cause: str,
    request_id: str = '',
    attempt: int = 0,
    also: Callable[[PlanView], None] = lambda view: None,
) -> Request:
    """A request for an update to the present goal that compares some resources, and their dependents, with reality.

    Its guard raises `Overtaken` unless the stack is still as it was read: complete, or failed by the repair before this
    one, with the same goal.

    :param visits: names of the resources; incomplete ones are visited in any case.
    :param cause: for the status reason of the stack.
    :param attempt: see `Traversal.repair_attempt`; 0: a user has requested it.
    :param also: called with the locked stack; raises `Overtaken` if the repair must not begin.
    :raises Overtaken: the stack has another goal.
    """
    if stack.template_id is None or stack.template_id != stack.last_good_template_id:
        raise Overtaken(f'the goal of stack {stack.name} was never in service')
    row, compiled = compiler.stored(stack, stack.template_id)
    at_rest = (Status.COMPLETE, Status.FAILED) if attempt > 1 else (Status.COMPLETE,)

    def guard(view: PlanView) -> None:
        now = view.stack
        before = (stack.traversal_id, row.id, row.id)
        same = now is not None and (now.traversal_id, now.template_id, now.last_good_template_id) == before
        rests = now is not None and now.status is stack.status and now.status in at_rest and now.deleted_at is None
        if now is None or not same or not rests or now.action in (Action.SUSPEND, Action.DELETE):
            raise Overtaken(f'stack {stack.name} has moved on')
        also(view)

    return Request(
        Action.UPDATE,
        compiled.goal,
        guard,
        template=row,
        cause=cause,
        observes=True,
        visits=frozenset(visits),
        request_id=request_id,
        repair_attempt=attempt,
    )


class ResourceRepairs:
    """Accepts repairs of single resources. An accepted repair is in the database before a method returns."""

    def __init__(self, stacks: Stacks, traversals: Traversals, rows: RepairsPort) -> None:
        self._stacks = stacks
        self._traversals = traversals
        self._rows = rows

    def repair_resource(self, context: Caller, stack_identity: Document, resource_name: str) -> Document:
        """Begin to compare one resource, and its dependents, with reality, and to repair drift; the stack.

        It begins under any drift policy, also without an observation. The count of earlier repairs starts again, so a
        resource that was given up can be repaired again.

        :raises ActionInProgress: another operation of the stack is in progress.
        :raises ResourceNotFound: its goal has no such resource.
        :raises NotSupported: the stack is nested or in a wrong state, or the type cannot compare the resource.
        """
        for _ in range(ROUNDS):
            stack = self._stacks.find(context, stack_identity)
            if stack.root_id is not None:
                raise errors.NotSupported(
                    f'Stack {stack.name} is nested; have the resource repaired in which it is, in the stack at the top.'
                )
            may_repair(stack)
            row = self._comparable(stack, resource_name)
            try:
                request = repair_of(
                    self._stacks.compiler,
                    stack,
                    [row.name],
                    f'a repair of {row.name} was requested',
                    context.request_id,
                )
                self._traversals.start(stack, request)
            except Overtaken:
                continue
            self._rows.forget_repairs([row.id])
            return identity(stack)
        raise errors.ActionInProgress(f'Stack {stack.name} keeps changing; repeat the request.')

    def _comparable(self, stack: Stack, name: str) -> Resource:
        """The row of a resource whose object can be compared.

        :raises ResourceNotFound: there is none.
        :raises NotSupported: its type cannot observe, or the object belongs to others.
        """
        row = in_service(self._stacks.reader.resources_named(stack.id, [name]), stack.template_id).get(name)
        if row is None or row.definition is None:
            raise errors.ResourceNotFound(f'The Resource ({name}) could not be found in Stack {stack.name}.')
        if row.definition.external_id is not None:
            raise errors.NotSupported(
                f'Resource {name} of stack {stack.name} stands for an object that belongs to others: never changed.'
            )
        types = self._stacks.compiler.types
        if not types.nests(row.type) and not types.get(row.type).implements('observe'):
            raise errors.NotSupported(
                f'Resource {name} of stack {stack.name} cannot be compared: the type {row.shown_type} does not observe '
                'its objects. If the object is broken, mark it unhealthy and update the stack.'
            )
        return row
