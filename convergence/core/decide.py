"""Decides the step for one resource of a goal, from its row, its definition and the difference between them.

A worker carries the step out, and a preview shows it to the user; both call this module. If a preview does not know the
difference yet, it calls the module for every possible one: a step that all answers share is certain.

A replacement has a second route, which no preview knows: the resource type raises `ReplacementNeeded` during the
action. `worker.attempts.runner` turns that into the result `NeedsReplacement`, `core.finish` stores it, and
`worker.checks.node_checks` makes the new row with `core.replacement`.

`convergence.core.begin` contains the cases that a preview cannot know: an action has killed too many workers, the
inputs of a node are too large or cannot be read, or the node pauses at a hook.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from convergence.core.model import PERFORMED, Action, Change, Definition, Restriction, Status
from convergence.core.nesting import is_doubted
from convergence.core.object_state import (
    Made,
    brings_nested,
    is_adopted,
    is_asleep,
    is_going_on,
    is_offered,
    is_put_off,
    made,
    may_still_sleep,
    object_of,
    refusal,
    was_never_made,
)
from convergence.core.rows import Resource
from convergence.values import quickly_made


class StepKind(StrEnum):
    """The step for a row.

    * `RESUME`: resume a suspended object, then decide again.
    * `DROP_SNAPSHOT`: cancel an unfinished snapshot, then decide again.
    * `FINISH`: finish the action that an earlier operation left unfinished, then decide again.
    * `REFUSE`: fail the resource and leave the row unchanged.
    * `CREATE`, `ADOPT`, `UPDATE`, `REPLACE`: the action of this name.
    * `KEEP`: change only the row, not the object.
    * `CLEAR`: finish the deletion of its object, so that another one can be created in the row.
    * `RECLAIM`: let its object reclaim the parts that it released for a replacement, then decide again.
    * `REPAIR`: compare the object, because the row failed or the operation observes; then keep, update or replace it.
    """

    RESUME = 'RESUME'
    DROP_SNAPSHOT = 'DROP_SNAPSHOT'
    FINISH = 'FINISH'
    REFUSE = 'REFUSE'
    CREATE = 'CREATE'
    ADOPT = 'ADOPT'
    UPDATE = 'UPDATE'
    REPLACE = 'REPLACE'
    KEEP = 'KEEP'
    REPAIR = 'REPAIR'
    CLEAR = 'CLEAR'
    RECLAIM = 'RECLAIM'


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step, with a reason for users if the properties alone do not explain it."""

    kind: StepKind
    reason: str = ''


@quickly_made
@dataclass(frozen=True, slots=True)
class ResourceGoal:
    """The goal of an operation for one resource, as far as the decision depends on it.

    :param adopts: True if the operation creates the stack from existing objects.
    :param repeats: True if the unfinished action of the row has the same definition and the same inputs as the goal.
    :param recreated: see `convergence.core.claim.Creation.is_repeated`.
    :param nests: True if the object is a nested stack: it accepts another goal in any state and while it is busy.
    :param observes: True if the operation compares the object even without a change.
    :param woken: True if this operation has already tried to resume the object.
    """

    definition: Definition
    adopts: bool = False
    repeats: bool = False
    recreated: bool = False
    nests: bool = False
    observes: bool = False
    woken: bool = False


def decide(row: Resource | None, goal: ResourceGoal, change: Change) -> PlannedStep:
    """Return the step for a row whose difference from the goal is known."""
    if row is None:
        return PlannedStep(StepKind.ADOPT if goal.definition.external_id is not None else StepKind.CREATE)
    return before_comparing(row, goal) or after_comparing(row, goal, change)


def possible(
    row: Resource | None, goals: Collection[ResourceGoal], changes: Collection[Change]
) -> frozenset[PlannedStep]:
    """Return all answers of `decide` for the given goals and differences. A single answer is certain."""
    return frozenset(decide(row, goal, change) for goal in goals for change in changes)


def before_comparing(row: Resource, goal: ResourceGoal) -> PlannedStep | None:
    """Return the step that the row requires for any properties; None if the step depends on the difference."""
    definition = goal.definition
    if row.damaged:
        return PlannedStep(StepKind.REFUSE, unreadable(row))
    if is_adopted(row):
        return _of_others(row, definition)
    if is_asleep(row):
        return PlannedStep(StepKind.RESUME, 'it is suspended and is resumed first')
    if may_still_sleep(row) and not goal.woken and not goal.nests:
        # A comparison cannot show if the object is suspended. A nested stack resumes its resources by itself.
        return PlannedStep(StepKind.RESUME, 'its RESUME failed; it is resumed again first')
    if row.action is Action.SNAPSHOT and row.status is Status.IN_PROGRESS:
        return PlannedStep(StepKind.DROP_SNAPSHOT)
    if goal.adopts and row.action is Action.INIT and not (brings_nested(row) if goal.nests else is_offered(row)):
        missing = 'The resources of the nested stack were' if goal.nests else 'Resource ID was'
        return PlannedStep(StepKind.REFUSE, f'{missing} not provided.')
    if row.is_cleared:
        return PlannedStep(StepKind.CLEAR, 'it is being removed to make room for another one')
    if row.action is Action.DELETE:
        return PlannedStep(StepKind.REPLACE, 'its deletion was begun')
    if goal.nests and is_overtaken(row, goal.repeats):
        return None
    if not is_offered(row) and is_unfinished(row, goal.repeats, goal.recreated):
        return PlannedStep(StepKind.FINISH, f'its {row.action} is unfinished and is finished first')
    if row.handover is not None:
        return PlannedStep(StepKind.RECLAIM, 'its object first reclaims the parts that it released for a replacement')
    return _of_others(row, definition) if definition.external_id is not None else None


def _of_others(row: Resource, definition: Definition) -> PlannedStep | None:
    """Return the step for a foreign object, which a stack uses but never changes."""
    reason = refusal(row, definition)
    if reason is not None:
        return PlannedStep(StepKind.REFUSE, reason)
    if not is_adopted(row):
        return PlannedStep(StepKind.ADOPT)
    if row.type != definition.type:
        return PlannedStep(StepKind.REPLACE, f'its type was {row.type}')
    return PlannedStep(StepKind.KEEP if row.status is Status.COMPLETE else StepKind.ADOPT)


def after_comparing(row: Resource, goal: ResourceGoal, change: Change) -> PlannedStep:
    """Return the step from the existing object to the goal.

    :param change: the result of `difference`.
    """
    definition = goal.definition
    if is_offered(row):
        return PlannedStep(StepKind.ADOPT)
    if row.action is Action.INIT or was_never_made(row) or is_put_off(row):
        # A failed creation begins again, even if its type guarantees that it created nothing.
        return PlannedStep(StepKind.CREATE)
    if row.type != definition.type:
        return _restricted(row, definition, PlannedStep(StepKind.REPLACE, f'its type was {row.type}'))
    if goal.nests and change is not Change.REPLACE and row.status is not Status.COMPLETE:
        # The nested stack itself handles its failed and running resources.
        return _restricted(row, definition, _of_a_stack(row))
    if (row.action, row.status) == (Action.CHECK, Status.FAILED) and not row.repairable:
        return _restricted(row, definition, PlannedStep(StepKind.REPLACE, f'it is not healthy: {row.status_reason}'))
    if change is Change.REPLACE:
        return _restricted(row, definition, PlannedStep(StepKind.REPLACE))
    if (row.action, row.status) == (Action.SNAPSHOT, Status.FAILED):
        # The object should be unchanged; an update applies its properties again to be sure.
        reason = 'its SNAPSHOT failed; its properties are applied again' if change is Change.NONE else ''
        return _restricted(row, definition, PlannedStep(StepKind.UPDATE, reason))
    if change is Change.IN_PLACE and Restriction.UPDATE in definition.restrictions:
        return PlannedStep(StepKind.REFUSE, restricted(Restriction.UPDATE))
    if row.status is not Status.COMPLETE:
        return PlannedStep(StepKind.REPAIR, f'its {row.action} failed')
    if change is Change.NONE and goal.nests and is_doubted(row):
        return PlannedStep(StepKind.UPDATE, 'it has leftovers to clean up')
    if goal.observes:
        # A nested stack compares its own resources.
        return PlannedStep(StepKind.UPDATE if goal.nests else StepKind.REPAIR, 'it is compared with reality')
    return PlannedStep(StepKind.KEEP if change is Change.NONE else StepKind.UPDATE)


def _of_a_stack(row: Resource) -> PlannedStep:
    said = 'is not finished yet and is overtaken' if row.status is Status.IN_PROGRESS else 'failed'
    begins = StepKind.CREATE if row.action is Action.CREATE else StepKind.UPDATE
    return PlannedStep(begins, f'its {row.action} {said}')


def difference(row: Resource, definition: Definition, change: Change, template_id: str | None, renewed: bool) -> Change:
    """Return the required change of an object: that of its properties, or one that the operation itself requires.

    :param change: the difference between the last applied properties and the desired ones.
    :param template_id: id of the template of the operation.
    :param renewed: True if each update replaces objects of this type.
    """
    if definition.external_id is not None:
        return Change.NONE  # a template need not describe the properties of a foreign object
    if change is not Change.NONE:
        return change
    if row.definition is not None and definition.nested != row.definition.nested:
        return Change.IN_PLACE
    before = row.definition.restored_from if row.definition is not None else None
    if definition.restored_from is not None and definition.restored_from != before:
        return Change.IN_PLACE  # the type restores its snapshot data for any properties
    return Change.REPLACE if renewed and row.definition is not None and row.template_id != template_id else change


def unreadable(row: Resource) -> str:
    """Return the reason why no action on the object of a damaged row is possible, with the remedy."""
    columns = ', '.join(row.damaged)
    return (
        f'its stored data cannot be read ({columns}); its object: {object_of(row)}. Put back the key that '
        f'sealed it, or delete the stack and leave {row.name} (--leave {row.name}): its object then stays'
    )


RESTRICTED = 'ResourceActionRestricted: '
"""Prefix in the reason of a stack, before the path of a resource that must not be changed."""


def restricted(restriction: Restriction, cause: str = '') -> str:
    """Return the reason of an update that fails because the environment restricts the required change."""
    because = f' ({cause})' if cause else ''
    return f'{RESTRICTED}{restriction} is restricted for resource.{because}'


def is_left_in_the_middle(row: Resource, recreated: bool = False) -> bool:
    """Return True if an action of the row is unfinished; a goal that repeats it can continue it.

    :param recreated: see `ResourceGoal`. If True, a failed creation counts as unfinished if it may have an object.
    """
    failed = row.action is Action.CREATE and row.status is Status.FAILED
    if recreated and failed and made(row) is Made.PERHAPS:
        return True
    return row.progress is not None or (row.status is Status.IN_PROGRESS and row.retry is not None)


def is_unfinished(row: Resource, repeats: bool, recreated: bool = False) -> bool:
    """Return True if an action must end before another step.

    An action that only waits for a retry is dropped if the goal has changed. An exception is an action such as SUSPEND:
    neither a comparison nor an update would show if the object is suspended. A creation that still runs in the service
    must end too while its object has no known id, because only this creation can report it.
    """
    if repeats and is_left_in_the_middle(row, recreated):
        return True
    if is_going_on(row) and made(row) is Made.PERHAPS:
        return True
    backing_off = row.retry is not None and row.retry.clean and row.progress is None
    return row.status is Status.IN_PROGRESS and (row.action in PERFORMED or not backing_off)


def is_overtaken(row: Resource, repeats: bool) -> bool:
    """Return True if a nested stack gets the new goal while its operation runs.

    A suspend and a delete must end first: no other operation supersedes them.
    """
    return row.status is Status.IN_PROGRESS and not repeats and row.action not in (Action.SUSPEND, Action.DELETE)


def may_replace(row: Resource, definition: Definition) -> bool:
    """Return True if the environment allows to replace a row.

    The restriction protects objects in use. It does not apply to a row whose creation has not ended and has no known
    object.
    """
    return Restriction.REPLACE not in definition.restrictions or (
        row.action is Action.CREATE and made(row) is not Made.OBJECT
    )


def _restricted(row: Resource, definition: Definition, planned: PlannedStep) -> PlannedStep:
    if planned.kind is not StepKind.REPLACE:
        forbidden = Restriction.UPDATE if Restriction.UPDATE in definition.restrictions else None
    else:
        forbidden = None if may_replace(row, definition) else Restriction.REPLACE
    return PlannedStep(StepKind.REFUSE, restricted(forbidden)) if forbidden is not None else planned
