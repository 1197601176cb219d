"""Previews the changes of a stack's resources, and of the stacks nested in it, as documents. Performs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convergence import errors, template
from convergence.core.model import Action, Definition, DeletionPolicy, Status
from convergence.core.object_state import was_never_made
from convergence.core.rows import Resource, Stack
from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.documents import Document
from convergence.engine.compile.submission import Submission
from convergence.engine.nesting.desired import DesiredStacks
from convergence.engine.operations.stacks import Stacks
from convergence.engine.preview.masking import Concealment
from convergence.engine.questions.inquiry import NO_ID, Inquiry, TypesAsked
from convergence.engine.questions.planned_changes import (
    PlannedChange,
    PlannedChanges,
    PreviewedAction,
    last_applied,
    needs_new_object,
)
from convergence.engine.reads import formats
from convergence.engine.reads.members import ShownMember
from convergence.resources.nesting import NestingContext
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.secrecy import MASK
from convergence.template.parameters import StackIdentity
from convergence.values import replace


@dataclass(frozen=True, slots=True)
class StackGoal:
    """A stack, and its new goal.

    :param rows: all its resource rows.
    :param above: the names of the resources that lead to it, from the stack of the request; empty for that one.
    """

    stack: Stack
    rows: Sequence[Resource]
    compiled: template.Compiled
    submission: Submission
    above: tuple[str, ...] = ()


class ChangePreview:
    """Previews the effects of one request.

    :param inquiry: collects questions to resource types; None: no questions.
    """

    def __init__(self, reader: ReaderPort, registry: Registry, stacks: Stacks, inquiry: Inquiry | None = None) -> None:
        self._reader = reader
        self._registry = registry
        self._stacks = stacks
        self._inquiry = inquiry
        self._wants = DesiredStacks(reader, stacks.compiler, registry)

    def update(self, goal: StackGoal, *, observes: bool = False) -> dict[str, list[Document]]:
        """The resources of a stack, by their fates under its new goal.

        :param observes: see `PlannedChanges`.
        :returns: for each `PreviewedAction` a list of resources, in the order of the template. Each has, besides the
            usual fields of a resource, its `path` (the names that lead to it, with slashes), `certainty`, `reason`,
            `changed_properties`, `property_changes` and, unless it is deleted, the desired `properties`. A property
            change has the name, the values `before` and `after`, and `needs_new_object`.
        :raises StackValidationFailed: the update would be accepted, but must fail; carries every reason.
        """
        stack, rows, compiled, above = goal.stack, goal.rows, goal.compiled, goal.above
        earlier_secrets = self._earlier_secrets(stack, rows)
        planned_changes = self._changes(goal, observes)
        found = planned_changes.find()
        needed_by: dict[str, list[str]] = {}
        for definition in compiled.goal.definitions.values():
            for required in definition.requires:
                needed_by.setdefault(required, []).append(definition.name)
        lists: dict[str, list[Document]] = {fate.value: [] for fate in PreviewedAction}
        for name, planned in found.items():
            definition = compiled.goal.definitions[name]
            row = planned_changes.chosen.get(name)
            concealment = Concealment(self._registry, compiled.secrets, definition, row, planned.wanted)
            document = {
                **_summary(stack, row or _not_made(stack, definition), above, needed_by.get(name, ())),
                **({} if row else {'creation_time': None, 'updated_time': None}),
                'resource_type': definition.shown_type,
                'properties': concealment.wanted(),
                **_verdict(planned),
                'property_changes': _changes(planned, row, self._registry, concealment, earlier_secrets),
            }
            lists[planned.fate].append(document)
        lists[PreviewedAction.DELETED] = deleted_with(stack, [row for row in rows if row.name not in found], above)
        return lists

    def _changes(self, goal: StackGoal, observes: bool = False) -> PlannedChanges:
        asked = TypesAsked(self._inquiry, goal.stack, goal.compiled.secrets)
        return PlannedChanges(goal.stack, goal.rows, goal.compiled, self._registry, observes, asked)

    def in_order(self, goal: StackGoal) -> Iterator[Document]:
        """All resources of a tree that does not exist yet."""
        for document, inner in self._to_be_made(goal):
            yield document
            if inner is not None:
                yield from self.in_order(inner)

    def in_lists(self, goal: StackGoal) -> list[Any]:
        """The same resources, with a list for each nested stack."""
        return [document if inner is None else self.in_lists(inner) for document, inner in self._to_be_made(goal)]

    def _to_be_made(self, goal: StackGoal) -> Iterator[tuple[Document, StackGoal | None]]:
        """Each resource of a stack that does not exist yet, with its nested stack, as far as that is known."""
        planned, lists = self._changes(goal).find(), self.update(goal)
        for document in lists[PreviewedAction.ADDED]:
            name = document['resource_name']
            whole = _whole(document, goal.compiled.goal.definitions[name], self._registry)
            yield whole, self._inner(goal, name, planned[name], None)

    def _inner(self, goal: StackGoal, name: str, change: PlannedChange, child: Stack | None) -> StackGoal | None:
        """The new goal of a nested stack; None if it is unknown, or if the resource is no stack.

        :param child: the present nested stack.
        """
        nested = child or replace(goal.stack, id=NO_ID, name=f'{goal.stack.name}-{name}', template_id=None)
        identity = StackIdentity(nested.id, nested.name, nested.project_id)
        definition = goal.compiled.goal.definitions[name]
        context = None
        if child is not None:
            try:
                context = self._present(goal, definition, child)
            except errors.ConvergenceError:
                # The members of the group are not visible, so its new goal is unknown; it is not a new group.
                return None
        nested_preview = self._stacks.compiler.analyser.nested_preview
        foreseen = nested_preview.of(definition, change.wanted, goal.submission, identity, context)
        if foreseen is None:
            return None
        compiled = self._stacks.compiler.analyser.with_nested(foreseen.compiled, foreseen.submission, nested.project_id)
        rows = self._reader.resources(child.id) if child is not None else []
        return StackGoal(nested, rows, compiled, foreseen.submission, (*goal.above, name))

    def _present(self, goal: StackGoal, definition: Definition, child: Stack) -> NestingContext:
        """The context for the type of a resource that has an object: a group keeps its members."""
        context = self._wants.context(goal.stack, goal.submission, definition, child)
        return replace(context, action=Action.UPDATE, at_once=True)

    def add_nested(self, lists: dict[str, list[Document]], goal: StackGoal) -> None:
        """Add the resources of nested stacks, each to the list of its own fate."""
        planned = self._changes(goal).find()
        current = in_service(goal.rows, goal.stack.template_id)
        for name in {**planned, **current}:
            row, change = current.get(name), planned.get(name)
            child = self._reader.stack(row.token) if row is not None and row.token is not None else None
            if child is not None and child.deleted_at is not None:
                child = None
            fate = change.fate if change is not None else PreviewedAction.DELETED
            if change is None or fate not in (PreviewedAction.ADDED, PreviewedAction.UPDATED):
                if child is not None and (change is not None or not _is_retained(row)):
                    self._add_all(lists, child, (*goal.above, name), fate)
                continue
            inner = self._inner(goal, name, change, child)
            if inner is None:
                continue
            _extend(lists, self.update(inner))
            self.add_nested(lists, inner)

    def _add_all(
        self, lists: dict[str, list[Document]], stack: Stack, above: tuple[str, ...], fate: PreviewedAction
    ) -> None:
        """All resources of a nested stack, on every level, share the fate of the resource whose object it is."""
        for name, row in sorted(in_service(self._reader.resources(stack.id), stack.template_id).items()):
            lists[fate].append({**_summary(stack, row, above), **_verdict(PlannedChange(fate))})
            child = self._reader.stack(row.token) if row.token is not None else None
            if child is not None and child.deleted_at is None:
                self._add_all(lists, child, (*above, name), fate)

    def _earlier_secrets(self, stack: Stack, rows: Sequence[Resource]) -> frozenset[str] | None:
        """The hidden values of the goals that the resources were made from; None if they are unknown."""
        found: frozenset[str] = frozenset()
        for template_id in {stack.template_id, *(row.template_id for row in rows)} - {None}:
            try:
                found |= self._stacks.compiler.stored(stack, str(template_id))[1].secrets
            except errors.ConvergenceError:
                return None
        return found


def _whole(document: Document, definition: Definition, registry: Registry) -> Document:
    """A resource that would be created, with the defaults of its type: properties, and attributes without values."""
    declared = registry.describe(definition.type)
    properties, attributes = declared['properties'], declared['attributes']
    assert isinstance(properties, dict)
    assert isinstance(attributes, dict)
    defaults = {name: about.get('default') for name, about in properties.items() if isinstance(about, dict)}
    wanted = document['properties']
    return {
        **document,
        'description': definition.description,
        'properties': {**defaults, **wanted} if isinstance(wanted, dict) else wanted,
        'given_properties': list(wanted) if isinstance(wanted, dict) else [],
        'attributes': dict.fromkeys(attributes),
    }


def _extend(lists: dict[str, list[Document]], more: Mapping[str, list[Document]]) -> None:
    for fate, documents in more.items():
        lists[fate] += documents


def deleted_with(stack: Stack, rows: Sequence[Resource], above: tuple[str, ...] = ()) -> list[Document]:
    """The resources that the new goal lacks, by name. A resource that was never created just disappears."""
    documents: list[Document] = []
    for _, row in sorted(in_service(rows, stack.template_id).items()):
        if was_never_made(row):
            continue
        reason = 'it is not in the template' + ('; its physical object is kept' if _is_retained(row) else '')
        verdict = _verdict(PlannedChange(PreviewedAction.DELETED, reason=reason))
        documents.append({**_summary(stack, row, above), **verdict})
    return documents


def _summary(stack: Stack, row: Resource, above: tuple[str, ...], required_by: Iterable[str] = ()) -> Document:
    member = ShownMember(stack, row, above[-1] if above else None)
    return {**formats.resource_summary(member, required_by), 'path': '/'.join((*above, row.name))}


def _is_retained(row: Resource | None) -> bool:
    """Return True if the object of a resource stays when the resource is removed."""
    definition = row.definition if row is not None else None
    return definition is not None and definition.deletion_policy is DeletionPolicy.RETAIN


def _not_made(stack: Stack, definition: Definition) -> Resource:
    """A substitute for the row of a resource that the update would add."""
    return Resource(
        id='',
        stack_id=stack.id,
        name=definition.name,
        type=definition.type,
        action=Action.INIT,
        status=Status.COMPLETE,
        created_at=stack.created_at,
    )


def _verdict(planned: PlannedChange) -> Document:
    return {
        'certainty': planned.certainty.value,
        'reason': planned.reason,
        'changed_properties': list(planned.changed),
        'property_changes': [],
    }


def _changes(
    planned: PlannedChange,
    row: Resource | None,
    registry: Registry,
    concealment: Concealment,
    earlier: frozenset[str] | None,
) -> list[Document]:
    """Each property that changes, or may change, with its value before and after."""
    if not planned.changed or row is None:
        return []
    schema = PropertySchema.of(registry.get(row.type).Properties)
    previous = concealment.before(last_applied(row)[1], earlier or frozenset())
    wanted = concealment.wanted()
    changes: list[Document] = []
    for name in planned.changed:
        after = wanted.get(name) if isinstance(wanted, dict) else wanted
        # A secret value stays secret even if the earlier template is unknown.
        before = MASK if earlier is None or concealment.hides(name) else previous.get(name)
        change = {'property': name, 'before': before, 'after': after}
        changes.append({**change, 'needs_new_object': needs_new_object(schema, name)})
    return changes
