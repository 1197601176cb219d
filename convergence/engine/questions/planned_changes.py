"""Computes the fate of each resource under another goal, with the code that would carry the change out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from convergence import errors, logs, template
from convergence.core import decide, graph, object_state
from convergence.core.choosing import choose, unchanged
from convergence.core.decide import PlannedStep, StepKind
from convergence.core.model import Action, Change, Definition, Json, Output, Status
from convergence.core.request import Request
from convergence.core.rows import Resource, Stack, with_accepted
from convergence.expressions import evaluator
from convergence.resources.comparison import changed_properties, compare
from convergence.resources.contract import ResourceType
from convergence.resources.invocation import Subject, build_call
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.resources.secrets import masked_texts
from convergence.template import Previewed
from convergence.template.secrets import PROPERTIES, within
from convergence.values import replace


class PreviewedAction(StrEnum):
    """The fate of a resource in an update; the names of the lists in a preview."""

    UNCHANGED = 'unchanged'
    UPDATED = 'updated'
    REPLACED = 'replaced'
    ADDED = 'added'
    DELETED = 'deleted'


_FATES: Mapping[StepKind, PreviewedAction] = {
    StepKind.KEEP: PreviewedAction.UNCHANGED,
    StepKind.CREATE: PreviewedAction.ADDED,
    StepKind.ADOPT: PreviewedAction.ADDED,
    StepKind.UPDATE: PreviewedAction.UPDATED,
    StepKind.REFUSE: PreviewedAction.UPDATED,
    StepKind.REPLACE: PreviewedAction.REPLACED,
    StepKind.CLEAR: PreviewedAction.REPLACED,
}
_GRAVITY = (
    StepKind.KEEP,
    StepKind.CREATE,
    StepKind.ADOPT,
    StepKind.UPDATE,
    StepKind.REFUSE,
    StepKind.REPAIR,
    StepKind.REPLACE,
    StepKind.CLEAR,
    StepKind.RECLAIM,
    StepKind.DROP_SNAPSHOT,
    StepKind.RESUME,
    StepKind.FINISH,
)
"""Order of gravity: of several possible answers, the preview shows the last."""
_SETTLES: Mapping[StepKind, Callable[[Resource], Resource]] = {
    StepKind.RESUME: lambda row: replace(row, action=Action.RESUME, status=Status.COMPLETE),
    StepKind.DROP_SNAPSHOT: lambda row: replace(row, status=Status.FAILED),
    StepKind.FINISH: lambda row: replace(row, status=Status.COMPLETE, progress=None, retry=None),
    StepKind.RECLAIM: lambda row: replace(row, handover=None),
}
"""The states of a row after an earlier operation's unfinished action has ended."""
_NEW_TEMPLATE = ''
"""Template id of a previewed update: no row was made from it."""


class Certainty(StrEnum):
    """Certainty of a fate: settled, or dependent on values that only the update will know."""

    CERTAIN = 'certain'
    POSSIBLE = 'possible'


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The fate of one resource.

    :param changed: names of the properties that change, or may change.
    :param output: the output that other resources read, as far as it is known.
    :param wanted: desired properties, with `template.UNKNOWN` for values that cannot be known yet.
    """

    fate: PreviewedAction
    certainty: Certainty = Certainty.CERTAIN
    reason: str = ''
    changed: tuple[str, ...] = ()
    output: Output | None = None
    wanted: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The possible differences, the names of the properties that change or may change, and a text for the user.

    :param is_open: True if the type decides by itself, and cannot be queried before all values are known.
    """

    changes: frozenset[Change] = frozenset({Change.NONE})
    names: tuple[str, ...] = ()
    reason: str = ''
    is_open: bool = False


_NOTHING = _Comparison()

TypeAsked = Callable[[PlannedChange, Definition, ResourceType[Any], Resource | None], tuple[PlannedChange, str]]
"""Query the type for the fate of a resource that it knows better, and for the reason of a certain failure, or ``''``.
"""


def ask_no_type(
    planned: PlannedChange, definition: Definition, kind: ResourceType[Any], row: Resource | None
) -> tuple[PlannedChange, str]:
    """No query: the types' own answers are not used."""
    return planned, ''


class PlannedChanges:
    """Computes the fates of resources in the order in which an update would reach them.

    :param rows: all resource rows of the stack.
    :param observes: True if the update would compare unchanged resources with reality. The preview observes nothing.
    :param asked: see `convergence.engine.questions.inquiry`.
    :ivar chosen: the row that the update would use for each desired resource that has a usable row.
    """

    def __init__(
        self,
        stack: Stack,
        rows: Sequence[Resource],
        compiled: template.Compiled,
        registry: Registry,
        observes: bool = False,
        asked: TypeAsked = ask_no_type,
    ) -> None:
        self._stack = stack
        self._asked = asked
        self._compiled = compiled
        self._definitions = compiled.goal.definitions
        self._registry = registry
        request = Request(Action.UPDATE, compiled.goal)
        self.chosen = choose(stack, rows, request)
        self._observes = observes
        self._finished = {} if observes else unchanged(compiled.goal, self.chosen)
        self._found: dict[str, PlannedChange] = {}
        self._inputs: dict[str, Output] = {}
        self._problems: list[errors.Problem] = []

    def find(self) -> dict[str, PlannedChange]:
        """The fate of each desired resource, by name.

        :raises StackValidationFailed: the update would be accepted but must fail; carries every reason.
        """
        for key in graph.build(self._definitions, ()).in_order():
            planned = self._planned(self._definitions[key.subject])
            self._found[key.subject] = planned
            if planned.output is not None:
                self._inputs[key.subject] = planned.output
        if self._problems:
            raise errors.StackValidationFailed(self._problems)
        return {name: self._found[name] for name in self._definitions}

    def _planned(self, definition: Definition) -> PlannedChange:
        row = self.chosen.get(definition.name)
        if definition.name in self._finished:
            wanted = self._previewed(definition, row)
            return PlannedChange(
                PreviewedAction.UNCHANGED, output=self._finished[definition.name].output, wanted=wanted
            )
        try:
            return self._decided(definition, row)
        except errors.ConvergenceError as error:
            self._problem(definition, str(error))
        except Exception as error:  # noqa: BLE001 - runs the code of a resource type
            self._problem(definition, f'{type(error).__name__}: {error}')
        return PlannedChange(PreviewedAction.UPDATED)

    def _previewed(self, definition: Definition, row: Resource | None) -> Previewed:
        """The properties, as far as they are known. Errors do not reveal hidden values."""
        hidden = within(definition.masked_paths, PROPERTIES)
        wanted = template.preview(definition.properties, self._inputs, evaluator(), hidden)
        if row is not None and row.type == definition.type and isinstance(wanted, dict):
            wanted = dict(with_accepted(row.accepted, wanted)[0])
        logs.mask_also(masked_texts(definition, wanted))
        return wanted

    def _decided(self, definition: Definition, row: Resource | None) -> PlannedChange:
        kind = self._registry.get(definition.type)
        wanted = self._previewed(definition, row)
        goals = [decide.ResourceGoal(definition, observes=self._observes and not kind.nests)]
        recreated = row is not None and self._registry.creation(row.type, 0.0).is_repeated
        if row is not None and decide.is_left_in_the_middle(row, recreated):
            goals.append(decide.ResourceGoal(definition, repeats=True, recreated=recreated))
        early = decide.before_comparing(row, goals[0]) if row is not None else None
        if early is not None and early.kind is StepKind.REFUSE:
            self._problem(definition, early.reason)
            return PlannedChange(PreviewedAction.UPDATED)
        if definition.external_id is None and self._is_wrong(definition, kind, wanted):
            return PlannedChange(PreviewedAction.UPDATED)
        compared = _NOTHING
        if row is not None and row.type == definition.type and not object_state.was_never_made(row):
            compared = self._compared(definition, kind, row, wanted)
        steps = decide.possible(row, goals, compared.changes)
        if {planned.kind for planned in steps} == {StepKind.REFUSE}:
            because = f' ({compared.reason})' if compared.names else ''
            self._problem(definition, min(planned.reason for planned in steps) + because)
            return PlannedChange(PreviewedAction.UPDATED)
        planned, refusal = self._asked(_foreseen(row, definition, kind, steps, compared, wanted), definition, kind, row)
        if refusal:
            self._problem(definition, refusal)
        return planned

    def _is_wrong(self, definition: Definition, kind: ResourceType[Any], wanted: Any) -> bool:
        """Return True if the properties, as far as they are known, are invalid; notes the reasons."""
        problems = PropertySchema.of(kind.Properties).check(
            wanted,
            lambda *path: self._compiled.place('resources', definition.name, 'properties', *path),
            within(definition.masked_paths, PROPERTIES),
        )
        for problem in problems:
            self._problem(definition, problem.message, problem.place)
        return bool(problems)

    def _compared(self, definition: Definition, kind: ResourceType[Any], row: Resource, wanted: Any) -> _Comparison:
        """The possible differences between the last applied properties and the desired ones."""
        if definition.external_id is not None:
            return _NOTHING
        before, previous = last_applied(row)
        known: dict[str, Any] = wanted if isinstance(wanted, dict) else dict.fromkeys(previous, template.UNKNOWN)
        unknown = {name for name, value in known.items() if template.has_unknown(value)}
        # Assume that unknown values stay as before, to find the effect of the known ones.
        desired = {name: previous.get(name) if name in unknown else value for name, value in known.items()}
        settled = self._change(kind, row, previous, desired, complete=not unknown)
        schema = PropertySchema.of(kind.Properties)
        changed = changed_properties(kind, previous, desired, row.data)
        possible = {name for name in unknown if self._may_differ(definition, before, name)}
        fixed = {name for name in possible if needs_new_object(schema, name)}
        changes, reason = {settled}, _because(changed)
        if settled is not Change.REPLACE and possible:
            changes.add(Change.IN_PLACE)
            if fixed:
                changes.add(Change.REPLACE)
                reason = f'{_because(fixed, "may change")}, which would need a new object'
            elif settled is Change.NONE:
                reason = _because(possible, 'may change')
        if settled is Change.NONE and not possible:
            reason = 'each update creates it again' if kind.renewed_by_updates else 'it is brought back from a snapshot'
        demanded = {
            decide.difference(row, definition, change, _NEW_TEMPLATE, kind.renewed_by_updates) for change in changes
        }
        asks = type(kind).needs_replacement is not ResourceType.needs_replacement
        return _Comparison(frozenset(demanded), tuple(sorted(changed | possible)), reason, bool(possible) and asks)

    def _change(
        self,
        kind: ResourceType[Any],
        row: Resource,
        previous: Mapping[str, Json],
        desired: Mapping[str, Json],
        *,
        complete: bool,
    ) -> Change:
        """The change as a worker would detect it."""
        subject = Subject.of(self._stack, row)
        try:
            return compare(
                kind, previous, desired, lambda: build_call(kind, subject, desired, previous=previous), row.data
            )
        except errors.StackValidationFailed:
            if complete:
                raise
            return Change.IN_PLACE  # A required value is only known later, so the type cannot be queried yet.

    def _may_differ(self, definition: Definition, before: Definition | None, name: str) -> bool:
        """Return True if an unknown value may differ from the value before.

        It is equal if the template has the same expression and all resources that it refers to stay unchanged.
        """
        encoded = _part(definition, name)
        if before is None or encoded != _part(before, name):
            return True
        references, attributes = template.references(encoded)
        others = [self._found[other] for other in {*references, *attributes}]
        return any((other.fate, other.certainty) != (PreviewedAction.UNCHANGED, Certainty.CERTAIN) for other in others)

    def _problem(self, definition: Definition, message: str, place: errors.Place | None = None) -> None:
        where = place or self._compiled.place('resources', definition.name)
        self._problems.append(errors.Problem(f'resources.{definition.name} ({definition.type}): {message}', where))


def last_applied(row: Resource) -> tuple[Definition | None, Mapping[str, Json]]:
    """The last applied definition of a resource, or the one being applied, and its resolved properties."""
    if row.pending is not None and _is_unfinished(row):
        return row.pending.definition, row.pending.properties
    return row.definition, row.properties


def _is_unfinished(row: Resource) -> bool:
    """Return True if an action was left unfinished; the update would finish it first."""
    return row.status is Status.IN_PROGRESS or row.progress is not None


def _foreseen(
    row: Resource | None,
    definition: Definition,
    kind: ResourceType[Any],
    steps: frozenset[PlannedStep],
    compared: _Comparison,
    wanted: Any,
) -> PlannedChange:
    """Summarize the possible answers: the gravest one, and its certainty."""
    planned = max(steps, key=lambda each: _GRAVITY.index(each.kind))
    is_certain = len(steps) == 1 and not (compared.is_open and planned.kind is StepKind.UPDATE)
    certainty = Certainty.CERTAIN if is_certain else Certainty.POSSIBLE
    if planned.kind in _SETTLES:
        assert row is not None
        after = _SETTLES[planned.kind](row)
        then = _foreseen(
            after,
            definition,
            kind,
            decide.possible(after, [decide.ResourceGoal(definition)], compared.changes),
            compared,
            wanted,
        )
        reason = planned.reason + (f'; then: {then.reason}' if then.reason else '')
        if planned.kind is StepKind.RESUME:
            return replace(then, reason=reason)
        return replace(then, certainty=Certainty.POSSIBLE, reason=reason, output=None)
    if planned.kind is StepKind.REPAIR:
        assert row is not None
        return _repaired(row, compared, wanted)
    fate = _FATES[planned.kind]
    if planned.kind is StepKind.REFUSE:
        # Only one of several answers, or the whole update would have been refused.
        fate = PreviewedAction.REPLACED if Change.REPLACE in compared.changes else PreviewedAction.UPDATED
    if fate is PreviewedAction.UNCHANGED:
        return PlannedChange(fate, certainty, output=row.output if row is not None else None, wanted=wanted)
    if fate is PreviewedAction.ADDED:
        return PlannedChange(fate, certainty, planned.reason, wanted=wanted)
    output = _staying(kind, row) if fate is PreviewedAction.UPDATED and row is not None else None
    return PlannedChange(fate, certainty, planned.reason or compared.reason, compared.names, output, wanted)


def _repaired(row: Resource, compared: _Comparison, wanted: Any) -> PlannedChange:
    """The fate of a failed row depends on the state of its object."""
    if row.status is Status.COMPLETE:
        reason = 'its object is compared with reality: repaired if it was changed, created again if it is gone'
        return PlannedChange(PreviewedAction.UPDATED, Certainty.POSSIBLE, reason, compared.names, row.output, wanted)
    fate, reason = (
        (PreviewedAction.REPLACED, f'its {row.action} failed; it is replaced unless it proves to be of use')
        if row.action in (Action.CREATE, Action.ADOPT)
        else (
            PreviewedAction.UPDATED,
            f'its {row.action} failed and is repeated; it is replaced if it proves to be of no use',
        )
    )
    return PlannedChange(fate, Certainty.POSSIBLE, reason, compared.names, None, wanted)


def _staying(kind: ResourceType[Any], row: Resource) -> Output | None:
    """The part of the output that is known before an update in place: the reference, if it is the resource's id."""
    if row.output is None or type(kind).reference_id is not ResourceType.reference_id:
        return None
    return Output(row.id, row.output.reference)


def needs_new_object(schema: PropertySchema, name: str) -> bool:
    """Return True if another value of a property cannot be applied to the existing object."""
    declared = schema.properties.get(name)
    return declared is not None and not declared.update_allowed and not declared.immutable


def _because(names: frozenset[str] | set[str], verb: str = '') -> str:
    said = verb or ('changes' if len(names) == 1 else 'change')
    return f'{", ".join(sorted(names))} {said}' if names else ''


def _part(definition: Definition, name: str) -> Json:
    """The encoded value of one property; of all properties, if they are no plain map."""
    encoded = definition.properties
    if isinstance(encoded, dict) and not any(key.startswith('$') for key in encoded):
        return encoded.get(name)
    return encoded
