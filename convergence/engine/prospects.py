"""What would become of each resource if a stack got another goal, decided by the code that would do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from convergence import errors, template
from convergence.core import adoption, graph, plan
from convergence.core.check import restricted
from convergence.core.model import Action, Change, Definition, Json, Output, Restriction, Status
from convergence.core.rows import Resource, Stack
from convergence.expressions import evaluator
from convergence.resources.comparison import compare
from convergence.resources.contract import ResourceType
from convergence.resources.invocation import Subject, build_call
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema


class Fate(StrEnum):
    """What an update does to a resource; the names of the lists in a preview."""

    UNCHANGED = 'unchanged'
    UPDATED = 'updated'
    REPLACED = 'replaced'
    ADDED = 'added'
    DELETED = 'deleted'


_RESTRICTIONS: Mapping[Fate, Restriction] = {Fate.UPDATED: Restriction.UPDATE, Fate.REPLACED: Restriction.REPLACE}


class Certainty(StrEnum):
    """Whether the fate is settled, or depends on what is only known during the update."""

    CERTAIN = 'certain'
    POSSIBLE = 'possible'


@dataclass(frozen=True, slots=True)
class Prospect:
    """What would become of one resource.

    :param changed: names of the properties that change, or may change.
    :param output: as far as it is known what the resource hands to others.
    :param wanted: its properties, `template.UNKNOWN` where they cannot be known yet.
    """

    fate: Fate
    certainty: Certainty = Certainty.CERTAIN
    reason: str = ''
    changed: tuple[str, ...] = ()
    output: Output | None = None
    wanted: Any = field(default_factory=dict)


class Prospects:
    """Looks at resources in the order in which an update would get to them.

    :param rows: all resource rows of the stack.
    :ivar chosen: the row that the update would use for each wanted name that has a usable one.
    """

    def __init__(
        self, stack: Stack, rows: Sequence[Resource], compiled: template.Compiled, registry: Registry
    ) -> None:
        self._stack = stack
        self._compiled = compiled
        self._definitions = compiled.goal.definitions
        self._registry = registry
        request = plan.Request(Action.UPDATE, compiled.goal, traversal_id='', new_id=_no_id)
        self.chosen = plan.choose(stack, rows, request)
        self._finished = plan.unchanged(compiled.goal, self.chosen)
        self._found: dict[str, Prospect] = {}
        self._inputs: dict[str, Output] = {}
        self._problems: list[errors.Problem] = []

    def find(self) -> dict[str, Prospect]:
        """What would become of each wanted resource, by name.

        :raises StackValidationFailed: the update would be accepted, but must fail; carries every reason.
        """
        for key in graph.build(self._definitions, ()).in_order():
            prospect = self._prospect(self._definitions[key.subject])
            self._found[key.subject] = prospect
            if prospect.output is not None:
                self._inputs[key.subject] = prospect.output
        if self._problems:
            raise errors.StackValidationFailed(self._problems)
        return {name: self._found[name] for name in self._definitions}

    def _prospect(self, definition: Definition) -> Prospect:
        row = self.chosen.get(definition.name)
        if definition.name in self._finished:
            wanted = template.preview(definition.properties, self._inputs, evaluator())
            return Prospect(Fate.UNCHANGED, output=self._finished[definition.name], wanted=wanted)
        try:
            kind = self._registry.get(definition.type)
            wanted = template.preview(definition.properties, self._inputs, evaluator())
            reason = adoption.refusal(row, definition) if row is not None else None
            if reason is not None:
                self._problem(definition, reason)
                return Prospect(Fate.UPDATED)
            if definition.external_id is not None and row is not None and adoption.is_adopted(row):
                return Prospect(Fate.UNCHANGED, output=row.output, wanted=wanted)
            if definition.external_id is None and self._is_wrong(definition, kind, wanted):
                return Prospect(Fate.UPDATED)
            if row is None or row.action is Action.INIT or (row.token is None and row.physical_id is None):
                return Prospect(Fate.ADDED, wanted=wanted)
            if row.type != definition.type:
                other = Prospect(Fate.REPLACED, reason=f'its type was {row.type}', wanted=wanted)
                return self._permitted(definition, other)
            return self._permitted(definition, _unsettled(row, self._compared(definition, kind, row, wanted)))
        except errors.ConvergenceError as error:
            self._problem(definition, str(error))
        except Exception as error:  # noqa: BLE001 - a type's own code was asked
            self._problem(definition, f'{type(error).__name__}: {error}')
        return Prospect(Fate.UPDATED)

    def _permitted(self, definition: Definition, prospect: Prospect) -> Prospect:
        """The prospect; if it is certain, and the environment does not let it happen, that is noted."""
        restriction = _RESTRICTIONS.get(prospect.fate)
        certain = prospect.certainty is Certainty.CERTAIN
        if certain and restriction is not None and restriction in definition.restrictions:
            self._problem(definition, restricted(restriction, prospect.reason))
        return prospect

    def _is_wrong(self, definition: Definition, kind: ResourceType[Any], wanted: Any) -> bool:
        """Whether the properties, as far as they are known, are not allowed; the reasons are noted."""
        problems = PropertySchema.of(kind.Properties).check(
            wanted, lambda *path: self._compiled.place('resources', definition.name, 'properties', *path)
        )
        for problem in problems:
            self._problem(definition, problem.message, problem.place)
        return bool(problems)

    def _compared(self, definition: Definition, kind: ResourceType[Any], row: Resource, wanted: Any) -> Prospect:
        """What the difference between the properties as last applied and the wanted ones leads to."""
        before, previous = last_applied(row)
        known: dict[str, Any] = wanted if isinstance(wanted, dict) else dict.fromkeys(previous, template.UNKNOWN)
        unknown = {name for name, value in known.items() if _has_unknown(value)}
        # What is not known yet is taken to be as before, to see what the rest alone leads to.
        desired = {name: previous.get(name) if name in unknown else value for name, value in known.items()}
        change = self._change(kind, row, previous, desired, complete=not unknown)
        schema = PropertySchema.of(kind.Properties)
        changed = schema.changed(previous, desired)
        possible = {name for name in unknown if self._may_differ(definition, before, name)}
        listed = tuple(sorted(changed | possible))
        if change is Change.REPLACE:
            return Prospect(Fate.REPLACED, Certainty.CERTAIN, _because(changed), listed, None, wanted)
        fixed = {name for name in possible if needs_new_object(schema, name)}
        if fixed:
            reason = f'{_because(fixed, "may change")}, which would need a new object'
            return Prospect(Fate.REPLACED, Certainty.POSSIBLE, reason, listed, None, wanted)
        if change is Change.IN_PLACE:
            return Prospect(Fate.UPDATED, Certainty.CERTAIN, _because(changed), listed, _staying(kind, row), wanted)
        if possible:
            reason = _because(possible, 'may change')
            return Prospect(Fate.UPDATED, Certainty.POSSIBLE, reason, listed, _staying(kind, row), wanted)
        return Prospect(Fate.UNCHANGED, output=row.output, wanted=wanted)

    def _change(
        self,
        kind: ResourceType[Any],
        row: Resource,
        previous: Mapping[str, Json],
        desired: Mapping[str, Json],
        *,
        complete: bool,
    ) -> Change:
        """The change as the worker would see it."""
        subject = Subject(
            name=row.name,
            stack_name=self._stack.name,
            stack_id=self._stack.id,
            project_id=self._stack.project_id,
            resource_id=row.id,
            token=row.token or '',
            physical_id=row.physical_id,
            data=row.data,
        )
        try:
            return compare(kind, previous, desired, lambda: build_call(kind, subject, desired, previous=previous))
        except errors.StackValidationFailed:
            if complete:
                raise
            return Change.IN_PLACE  # A required value is only known later, so the type cannot be asked yet.

    def _may_differ(self, definition: Definition, before: Definition | None, name: str) -> bool:
        """Whether a value that is not known yet may be another than before.

        It is the same if the template says the same, and all that it refers to stays as it is.
        """
        encoded = _part(definition, name)
        if before is None or encoded != _part(before, name):
            return True
        references, attributes = template.references(encoded)
        others = [self._found[other] for other in {*references, *attributes}]
        return any((other.fate, other.certainty) != (Fate.UNCHANGED, Certainty.CERTAIN) for other in others)

    def _problem(self, definition: Definition, message: str, place: errors.Place | None = None) -> None:
        where = place or self._compiled.place('resources', definition.name)
        self._problems.append(errors.Problem(f'resources.{definition.name} ({definition.type}): {message}', where))


def last_applied(row: Resource) -> tuple[Definition | None, Mapping[str, Json]]:
    """What a resource was last made from, or is being made from: the definition and its resolved properties."""
    if row.pending is not None and _is_unfinished(row):
        return row.pending.definition, row.pending.properties
    return row.definition, row.properties


def _no_id() -> str:
    raise AssertionError('a preview makes nothing that needs an id')


def _is_unfinished(row: Resource) -> bool:
    """Whether an action was left in the middle; the update would bring it to its end first."""
    return row.status is Status.IN_PROGRESS or row.progress is not None


def _unsettled(row: Resource, prospect: Prospect) -> Prospect:
    """The prospect of a row in view of its last action, which may have failed, or go on."""
    if _is_unfinished(row):
        then = f'; then: {prospect.reason}' if prospect.reason else ''
        reason = f'its {row.action} is not finished yet and comes to its end first{then}'
        return replace(prospect, certainty=Certainty.POSSIBLE, reason=reason, output=None)
    if row.status is not Status.FAILED or (prospect.fate, prospect.certainty) == (Fate.REPLACED, Certainty.CERTAIN):
        return prospect
    if row.action is Action.CHECK:
        return replace(prospect, fate=Fate.REPLACED, reason=f'it is not healthy: {row.status_reason}', output=None)
    fate, reason = (
        (Fate.REPLACED, f'its {row.action} failed; it is replaced unless it proves to be of use')
        if row.action in (Action.CREATE, Action.RESUME)
        else (Fate.UPDATED, f'its {row.action} failed and is repeated; it is replaced if it proves to be of no use')
    )
    return replace(prospect, fate=fate, certainty=Certainty.POSSIBLE, reason=reason, output=None)


def _staying(kind: ResourceType[Any], row: Resource) -> Output | None:
    """What is known in advance of a resource that is changed in place: its reference, if that is its id."""
    if row.output is None or type(kind).reference_id is not ResourceType.reference_id:
        return None
    return Output(row.id, row.output.reference)


def needs_new_object(schema: PropertySchema, name: str) -> bool:
    """Whether another value of a property cannot be applied to the object that is there."""
    declared = schema.properties.get(name)
    return declared is not None and not declared.update_allowed and not declared.immutable


def _because(names: frozenset[str] | set[str], verb: str = '') -> str:
    said = verb or ('changes' if len(names) == 1 else 'change')
    return f'{", ".join(sorted(names))} {said}' if names else ''


def _part(definition: Definition, name: str) -> Json:
    """The encoded value of one property; all of them where they are not a plain map."""
    encoded = definition.properties
    if isinstance(encoded, dict) and not any(key.startswith('$') for key in encoded):
        return encoded.get(name)
    return encoded


def _has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_unknown(inner) for inner in value.values())
    if isinstance(value, list):
        return any(_has_unknown(inner) for inner in value)
    return value is template.UNKNOWN
