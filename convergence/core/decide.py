"""Decides the step for one desired resource, from its row, its definition and the difference between them.

A worker carries the step out, and a preview shows it to the user: both call this module. If a preview does not know the
difference yet, it calls it for each possible one; the properties that all answers share are certain.

A replacement has a second route, which no preview knows: the resource type raises `ReplacementNeeded` during the
action. `worker.attempts.runner` turns that into the result `NeedsReplacement`, `core.finish` stores it, and
`worker.checks.node_checks` makes the new row with `core.replacement`.

Three more facts are not known to a preview, and are in `convergence.core.begin`: an action has killed too many workers;
the inputs of a node are too large or unreadable; a hook waits for a user.
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
    """What is done about a row.

    * `RESUME`, `DROP_SNAPSHOT`, `FINISH`: what an earlier operation has left comes to its end, then the row is
      decided about again. A suspended object is resumed, a snapshot is given up, any other action is finished.
    * `REFUSE`: the resource fails, and the row stays as it is.
    * `CREATE`, `ADOPT`, `UPDATE`, `REPLACE`, `KEEP`: as they say; `KEEP` touches nothing but the row.
    * `CLEAR`: the removal of its object, for another one to be made in the row, comes to its end.
    * `RECLAIM`: its object gets back what it gave up for a replacement, then the row is decided about again.
    * `REPAIR`: the type looks at the object, of a failed row or because reality is asked: it is kept, updated in place,
      or replaced.
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
    """A course, with the reason that a user is told where it is not what the properties alone lead to."""

    kind: StepKind
    reason: str = ''


@quickly_made
@dataclass(frozen=True, slots=True)
class ResourceGoal:
    """What an operation wants of a resource, as far as the decision depends on it.

    :param adopts: whether the stack is being made of objects that are there already.
    :param repeats: whether the action that the row was left in the middle of leads to just this definition and these
        inputs.
    :param recreated: see `convergence.core.claim.Creation.is_repeated`.
    :param nests: whether the object is a stack: that can be given another goal while it is busy with one, and goes on
        from whatever state it is in.
    :param observes: whether the object is looked at even where nothing seems to have changed.
    :param woken: whether this operation has tried already to resume the object.
    """

    definition: Definition
    adopts: bool = False
    repeats: bool = False
    recreated: bool = False
    nests: bool = False
    observes: bool = False
    woken: bool = False


def decide(row: Resource | None, goal: ResourceGoal, change: Change) -> PlannedStep:
    """What is done about a row whose difference from the goal is known."""
    if row is None:
        return PlannedStep(StepKind.ADOPT if goal.definition.external_id is not None else StepKind.CREATE)
    return before_comparing(row, goal) or after_comparing(row, goal, change)


def possible(
    row: Resource | None, goals: Collection[ResourceGoal], changes: Collection[Change]
) -> frozenset[PlannedStep]:
    """Every answer of `decide` to one of the goals and one of the differences. One alone is certain."""
    return frozenset(decide(row, goal, change) for goal in goals for change in changes)


def before_comparing(row: Resource, goal: ResourceGoal) -> PlannedStep | None:
    """What the row alone demands, whatever its properties should be; None where the difference decides."""
    definition = goal.definition
    if row.damaged:
        return PlannedStep(StepKind.REFUSE, unreadable(row))
    if is_adopted(row):
        return _of_others(row, definition)
    if is_asleep(row):
        return PlannedStep(StepKind.RESUME, 'it is suspended and is resumed first')
    if may_still_sleep(row) and not goal.woken and not goal.nests:
        # No look at it would show whether it sleeps. A stack wakes what is in it when it gets a goal.
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
        return PlannedStep(StepKind.FINISH, f'its {row.action} is not finished yet and comes to its end first')
    if row.handover is not None:
        return PlannedStep(StepKind.RECLAIM, 'it first takes back what it gave up for a replacement')
    return _of_others(row, definition) if definition.external_id is not None else None


def _of_others(row: Resource, definition: Definition) -> PlannedStep | None:
    """Objects that others have made are used, and never touched."""
    reason = refusal(row, definition)
    if reason is not None:
        return PlannedStep(StepKind.REFUSE, reason)
    if not is_adopted(row):
        return PlannedStep(StepKind.ADOPT)
    if row.type != definition.type:
        return PlannedStep(StepKind.REPLACE, f'its type was {row.type}')
    return PlannedStep(StepKind.KEEP if row.status is Status.COMPLETE else StepKind.ADOPT)


def after_comparing(row: Resource, goal: ResourceGoal, change: Change) -> PlannedStep:
    """How to get from what is there to what is wanted.

    :param change: what `difference` says.
    """
    definition = goal.definition
    if is_offered(row):
        return PlannedStep(StepKind.ADOPT)
    if row.action is Action.INIT or was_never_made(row) or is_put_off(row):
        # Of what has failed its type is asked once more, even where it has promised that nothing was made.
        return PlannedStep(StepKind.CREATE)
    if row.type != definition.type:
        return _restricted(row, definition, PlannedStep(StepKind.REPLACE, f'its type was {row.type}'))
    if goal.nests and change is not Change.REPLACE and row.status is not Status.COMPLETE:
        # What has failed in a stack, or is under way there, the stack itself sees to.
        return _restricted(row, definition, _of_a_stack(row))
    if (row.action, row.status) == (Action.CHECK, Status.FAILED) and not row.repairable:
        return _restricted(row, definition, PlannedStep(StepKind.REPLACE, f'it is not healthy: {row.status_reason}'))
    if change is Change.REPLACE:
        return _restricted(row, definition, PlannedStep(StepKind.REPLACE))
    if (row.action, row.status) == (Action.SNAPSHOT, Status.FAILED):
        # Nobody has changed the object; to apply its properties again makes sure of it.
        reason = 'its SNAPSHOT failed; its properties are applied again' if change is Change.NONE else ''
        return _restricted(row, definition, PlannedStep(StepKind.UPDATE, reason))
    if change is Change.IN_PLACE and Restriction.UPDATE in definition.restrictions:
        return PlannedStep(StepKind.REFUSE, restricted(Restriction.UPDATE))
    if row.status is not Status.COMPLETE:
        return PlannedStep(StepKind.REPAIR, f'its {row.action} failed')
    if change is Change.NONE and goal.nests and is_doubted(row):
        return PlannedStep(StepKind.UPDATE, 'there is something to tidy up in it')
    if goal.observes:
        # What is in a stack, the stack itself compares.
        return PlannedStep(StepKind.UPDATE if goal.nests else StepKind.REPAIR, 'it is compared with reality')
    return PlannedStep(StepKind.KEEP if change is Change.NONE else StepKind.UPDATE)


def _of_a_stack(row: Resource) -> PlannedStep:
    said = 'is not finished yet and is overtaken' if row.status is Status.IN_PROGRESS else 'failed'
    begins = StepKind.CREATE if row.action is Action.CREATE else StepKind.UPDATE
    return PlannedStep(begins, f'its {row.action} {said}')


def difference(row: Resource, definition: Definition, change: Change, template_id: str | None, renewed: bool) -> Change:
    """What the properties lead to, and what the operation itself demands.

    :param change: the difference between the properties as last applied and the wanted ones.
    :param template_id: the template of the operation.
    :param renewed: whether each update makes objects of this type anew.
    """
    if definition.external_id is not None:
        return Change.NONE  # of an object that belongs to others the template need not say how it was made
    if change is not Change.NONE:
        return change
    if row.definition is not None and definition.nested != row.definition.nested:
        return Change.IN_PLACE
    before = row.definition.restored_from if row.definition is not None else None
    if definition.restored_from is not None and definition.restored_from != before:
        return Change.IN_PLACE  # the type restores what it has kept for a snapshot, whatever the properties are
    return Change.REPLACE if renewed and row.definition is not None and row.template_id != template_id else change


def unreadable(row: Resource) -> str:
    """Why nothing can be done with the object of a damaged row, and what the user can do."""
    columns = ', '.join(row.damaged)
    return (
        f'what is stored of it cannot be read ({columns}); its object: {object_of(row)}. Put back the key that '
        f'sealed it, or delete the stack and leave {row.name} (--leave {row.name}): its object then stays'
    )


RESTRICTED = 'ResourceActionRestricted: '
"""What the reason of a stack says before the path of a resource that may not be changed."""


def restricted(restriction: Restriction, cause: str = '') -> str:
    """Why an update fails: the environment does not let it do what it would have to."""
    because = f' ({cause})' if cause else ''
    return f'{RESTRICTED}{restriction} is restricted for resource.{because}'


def is_left_in_the_middle(row: Resource, recreated: bool = False) -> bool:
    """Whether an action of the row has not come to its end: it may go on for a goal that repeats it.

    :param recreated: see `ResourceGoal`. Then a creation that failed is repeated, unless it has certainly made nothing.
    """
    failed = row.action is Action.CREATE and row.status is Status.FAILED
    if recreated and failed and made(row) is Made.PERHAPS:
        return True
    return row.progress is not None or (row.status is Status.IN_PROGRESS and row.retry is not None)


def is_unfinished(row: Resource, repeats: bool, recreated: bool = False) -> bool:
    """Whether an action has to be brought to its end before anything else can be done.

    What only waits to be tried again is given up for something else that is wanted now. Not so what is done to an
    object as it is: to look at that, or to change it, does not tell whether it sleeps. A creation that goes on by
    itself is the only one who knows of its object, as long as its id is not known.
    """
    if repeats and is_left_in_the_middle(row, recreated):
        return True
    if is_going_on(row) and made(row) is Made.PERHAPS:
        return True
    backing_off = row.retry is not None and row.retry.clean and row.progress is None
    return row.status is Status.IN_PROGRESS and (row.action in PERFORMED or not backing_off)


def is_overtaken(row: Resource, repeats: bool) -> bool:
    """Whether the stack that is the object of a row gets another goal in the middle of what it does.

    Only to suspend it comes to its end first: nothing takes over from that.
    """
    return row.status is Status.IN_PROGRESS and not repeats and row.action not in (Action.SUSPEND, Action.DELETE)


def may_replace(row: Resource, definition: Definition) -> bool:
    """Whether the environment lets a row be replaced.

    What it protects is what people use. A row whose creation has never come to its end, and of which no object is
    known, is nothing of that kind.
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
