"""Reads resources and events of stacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from convergence import errors, template
from convergence.core.conditions import conditions_of
from convergence.core.model import Action, Definition, Json, Output, Status
from convergence.core.rows import Event, Resource, Stack
from convergence.core.software import SoftwareRowsPort
from convergence.db.null_ports import NOTHING_OBSERVED
from convergence.db.ports import KnownObjectsPort
from convergence.db.repositories.reads.inspection import EventPage
from convergence.db.repositories.reads.stacks import StackReader, in_service
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.questions.planned_changes import last_applied
from convergence.engine.questions.worker_questions import LOOK_S, QuestionsPort
from convergence.engine.reads import formats
from convergence.engine.reads.below import paths_below
from convergence.engine.reads.filters import (
    event_page,
    in_state,
    limit_of,
    resource_filters,
    resource_states,
    values_of,
)
from convergence.engine.reads.members import Pages, ShownMember, ShownTree, parent_resource_of
from convergence.engine.reads.reading import Reading, outputs_of
from convergence.engine.reads.resource_metadata import with_signals
from convergence.expressions import evaluator
from convergence.resources.attributes import attribute_names, attributes_to_ask_for
from convergence.resources.questions import QuestionKind, TypeQuestion, TypeReply
from convergence.resources.secrets import is_masked, known_secrets, shown_attributes, shown_properties
from convergence.rpc.engine_api import EventQuery
from convergence.secrecy import masked_at, without
from convergence.template.secrets import METADATA, within

AT_ONCE = 500
"""Of how many resources the rows are in memory at once while all are listed."""

NOTHING_READ: Mapping[str, Json] = {}

_BEGINNINGS = [(action, Status.IN_PROGRESS) for action in (Action.CREATE, Action.ADOPT, Action.UPDATE)]
"""The states in which a resource is from when on it has other properties."""


class ResourceReads(Reading[StackReader]):
    """Reading operations on single resources and on events.

    :param software: stores software configurations and deployments.
    :param objects: reads the observations of objects.
    :param workers: reads live attributes; None: they are not read.
    """

    def __init__(
        self,
        reader: StackReader,
        compiler: TemplateCompiler,
        software: SoftwareRowsPort | None = None,
        objects: KnownObjectsPort = NOTHING_OBSERVED,
        workers: QuestionsPort | None = None,
    ) -> None:
        super().__init__(reader, compiler)
        self._software = software
        self._objects = objects
        self._workers = workers

    def list_stack_resources(
        self,
        context: Caller,
        stack_identity: Mapping[str, Any],
        nested_depth: int = 0,
        with_detail: bool = False,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = None,
        marker: str | None = None,
    ) -> list[Document]:
        """The resources of a stack, by name: for each name the row that is, or will be, in service.

        :param nested_depth: number of levels of nested stacks to include: their resources follow the resource whose
            object they are in.
        :param filters: selected values of ``name``, ``type`` (a part is enough), ``status``, ``action``, ``id`` and
            ``physical_resource_id``; a value may be a list.
        :param limit: maximum number of resources.
        :param marker: name of the last resource of the page before. It need not exist any more.
        :raises Invalid: there is no such filter, or the request combines pages and nested stacks.
        """
        stack = self._stack(context, stack_identity)
        wanted, most, depth = resource_filters(filters), limit_of(limit), max(0, int(nested_depth or 0))
        if depth:
            if most is not None or marker is not None:
                raise errors.Invalid(
                    'limit and marker: resources of nested stacks are not listed in pages; query each stack'
                )
            return self._list_tree(stack, depth, wanted, with_detail)
        pages = Pages(self._reader, stack, marker)
        needed_by = self._needed_in(stack, pages.names) if pages.names else {}
        found: list[Document] = []
        at_once = AT_ONCE if most is None or wanted else max(1, min(most, AT_ONCE))
        for members in pages.members(at_once):
            shown = [member for member in members if _matches(member.row, wanted)]
            metadata = [
                each.row.definition.metadata for each in shown if with_detail and each.row.definition is not None
            ]
            outputs = self._outputs_of(stack, metadata)
            for each in shown:
                required_by = needed_by.get(each.row.name, ())
                found.append(
                    self._details(each, required_by, outputs)
                    if with_detail
                    else formats.resource_summary(each, required_by)
                )
            if most is not None and len(found) >= most:
                break
        return found[:most]

    def _list_tree(
        self, stack: Stack, depth: int, wanted: Mapping[str, list[str]], with_detail: bool
    ) -> list[Document]:
        tree = ShownTree.read(self._reader, stack, depth)
        needed_by = self._needed_by(tree)
        shown = [member for member in tree.members() if _matches(member.row, wanted)]
        if not with_detail:
            return [formats.resource_summary(each, needed_by[each.stack.id].get(each.row.name, ())) for each in shown]
        outputs = {stack_id: outputs_of(rows) for stack_id, rows in tree.rows.items()}
        return [
            self._details(each, needed_by[each.stack.id].get(each.row.name, ()), outputs[each.stack.id])
            for each in shown
        ]

    def describe_stack_resource(
        self,
        context: Caller,
        stack_identity: Mapping[str, Any],
        resource_name: str,
        with_attr: Sequence[str] | bool | None = None,
    ) -> Document:
        """Everything about one resource.

        Live attributes are read now. An attribute that cannot be read now is shown with its last known value, and
        `attributes_not_read` gives the reason.

        :param with_attr: names of attributes that the answer contains even if they were never read; these are read now,
            too, and so is ``show`` if it is among them.
        :raises ResourceNotFound: the stack has no such resource.
        """
        stack = self._stack(context, stack_identity)
        row = self._shown(stack, [resource_name]).get(resource_name)
        if row is None:
            raise errors.ResourceNotFound(f'The Resource ({resource_name}) could not be found in Stack {stack.name}.')
        wanted = values_of(with_attr) if with_attr and not isinstance(with_attr, bool) else []
        needed_by = self._required_by(stack, [row])
        outputs = self._outputs_of(stack, [row.definition.metadata] if row.definition else [])
        nested = next(iter(self._reader.stacks_of_resources([row.id])), None)
        member = ShownMember(stack, row, parent_resource_of(self._reader, stack), nested)
        document = self._details(member, needed_by.get(resource_name, ()), outputs)
        types = self._compiler.types
        metadata = with_signals(stack, row, document['metadata'], self._reader, types, self._software)
        document['metadata'] = without(metadata, known_secrets(row, self._compiler.types))
        now = self._read_now(context, stack, row, wanted)
        document['attributes'] |= self._attributes(row, wanted, now.attributes)
        if now.reason:
            document['attributes_not_read'] = now.reason
        seen = self._objects.of_row(row)
        document['conditions'] = [formats.condition(each) for each in conditions_of(row, seen)]
        return document

    def list_events(
        self, context: Caller, stack_identity: Mapping[str, Any], query: EventQuery | None = None
    ) -> list[Document]:
        """The events of a stack and its resources, oldest first unless the query requests another order.

        :raises EntityNotFound: the marker is not (any more) an event of the stack.
        :raises Invalid: the query is invalid; the text names the argument.
        """
        asked = query or EventQuery()
        stack = self._stack(context, stack_identity)
        page = event_page(stack, asked)
        if page.marker is not None and not self._reader.has_event(page, page.marker):
            raise errors.EntityNotFound('Event', page.marker)
        rows = self._reader.event_page(page)
        of = {
            each.id: each for each in (stack, *self._reader.stacks_by_id({row.stack_id for row in rows} - {stack.id}))
        }
        documents = [formats.event(of[row.stack_id], row) for row in rows if row.stack_id in of]
        if asked.nested_depth:
            root, paths = formats.identity(self._root(stack)), paths_below(self._reader, stack, of.values())
            for document in documents:
                path = paths.get(str(document['stack_identity']['stack_id']))
                document |= {'root_stack_id': root, 'stack_path': path}
        if 'id' in page.filters:
            for document, row in zip(documents, [row for row in rows if row.stack_id in of], strict=True):
                document['resource_properties'] = self._properties_at(row)
        return documents

    # --- parts ------------------------------------------------------------------------------------------------

    def _properties_at(self, event: Event) -> dict[str, Json]:
        """The properties that a resource had, or was getting, at the time of an event.

        They are those of its row if it did not change since; earlier values are not kept.
        """
        if event.resource_name is None:
            return {}
        same = [
            row
            for row in self._reader.resources_named(event.stack_id, [event.resource_name])
            if event.physical_id in (None, row.physical_id)
        ]
        later = EventPage(event.stack_id, {'resource_name': [event.resource_name]}, marker=event.id, states=_BEGINNINGS)
        if not same or self._reader.event_page(later):
            return {}
        row = max(same, key=lambda each: each.created_at)
        properties = shown_properties(last_applied(row)[1], row, self._compiler.types)
        shown: dict[str, Json] = without(properties, known_secrets(row, self._compiler.types))
        return shown

    def _root(self, stack: Stack) -> Stack:
        """The root stack of a stack, as long as it is known."""
        return (self._reader.stack(stack.root_id) if stack.root_id is not None else None) or stack

    def _details(self, member: ShownMember, required_by: Iterable[str], outputs: Mapping[str, Output]) -> Document:
        row = member.row
        return {
            **formats.resource_summary(member, required_by),
            'description': row.definition.description if row.definition is not None else '',
            'attributes': self._attributes(row),
            'metadata': without(_metadata(row, outputs), known_secrets(row, self._compiler.types)),
        }

    def _read_now(self, context: Caller, stack: Stack, row: Resource, wanted: Collection[str]) -> TypeReply:
        """Have a worker read the attributes whose values are not known to be current."""
        if (
            self._workers is None
            or row.type not in self._compiler.types
            or row.physical_id is None
            or row.output is None
        ):
            return TypeReply(is_known=True)
        kind = self._compiler.types.get(row.type)
        names = attributes_to_ask_for(kind, wanted, formats.attributes(row))
        names = tuple(name for name in names if not is_masked(row, name, self._compiler.analyser.secret_policy))
        if kind.nests or not names:
            return TypeReply(is_known=True)
        identity = (stack.id, stack.name, stack.project_id)
        question = TypeQuestion(
            QuestionKind.READ, row.type, row.name, *identity, stack.id, resource_id=row.id, attributes=names
        )
        return self._workers(context, [question], LOOK_S)[0]

    def _attributes(
        self, row: Resource, wanted: Iterable[str] = (), read: Mapping[str, Json] = NOTHING_READ
    ) -> dict[str, Json]:
        """The attributes of a resource without hidden values.

        :param wanted: names that the result always contains, besides those that its type declares.
        :param read: values that have been read now.
        """
        declared: tuple[str, ...] = ()
        if row.output is not None and row.type in self._compiler.types:
            declared = attribute_names(self._compiler.types.get(row.type))
        attributes = {**formats.attributes(row, (*declared, *wanted)), **read}
        shown = shown_attributes(attributes, row, self._compiler.analyser.secret_policy)
        masked: dict[str, Json] = without(shown, known_secrets(row, self._compiler.types))
        return masked

    def _required_by(self, stack: Stack, rows: Iterable[Resource]) -> dict[str, list[str]]:
        """The dependents of each name: by the goal, or by the sources of the rows."""
        compiled = self._compiled(stack)
        return _inverted(rows, compiled.goal.definitions.values() if compiled is not None else ())

    def _needed_in(self, stack: Stack, names: Iterable[str]) -> dict[str, list[str]]:
        """The same for a whole stack whose resources have these names; reads only rows that are in no goal."""
        compiled = self._compiled(stack)
        goal = compiled.goal.definitions if compiled is not None else {}
        rows = in_service(
            self._reader.resources_named(stack.id, [name for name in names if name not in goal]), stack.template_id
        )
        return _inverted(rows.values(), goal.values())

    def _needed_by(self, tree: ShownTree) -> dict[str, dict[str, list[str]]]:
        """The dependents of each name, for each shown stack.

        Nested stacks are not compiled: the nodes of their present operation, and the sources of their rows, are read
        for all of them at once.
        """
        nested = {stack.traversal_id: stack.id for stack in tree.stacks() if stack.traversal_id is not None}
        visited: dict[str, list[Definition]] = {}
        for traversal_id, definition in self._reader.planned(list(nested)) if nested else ():
            visited.setdefault(nested[traversal_id], []).append(definition)
        needed_by = {
            stack_id: _inverted(rows.values(), visited.get(stack_id, ()))
            for stack_id, rows in tree.rows.items()
            if stack_id != tree.top.id
        }
        return {**needed_by, tree.top.id: self._required_by(tree.top, tree.rows[tree.top.id].values())}


def _inverted(rows: Iterable[Resource], wanted: Iterable[Definition]) -> dict[str, list[str]]:
    """The dependents of each name.

    :param wanted: the goal, as far as it is known; it overrides the sources of the rows.
    """
    requires = {row.name: row.definition.requires for row in rows if row.definition is not None}
    requires.update((one.name, one.requires) for one in wanted)
    needed_by: dict[str, list[str]] = {}
    for name in sorted(requires):
        for required in requires[name]:
            needed_by.setdefault(required, []).append(name)
    return needed_by


def _metadata(row: Resource, outputs: Mapping[str, Output]) -> Json:
    """The metadata of the template; empty if it depends on missing values."""
    if row.definition is None or not row.definition.metadata:
        return {}
    try:
        metadata = template.resolve(row.definition.metadata, outputs, evaluator())
        shown: Json = masked_at(metadata, within(row.definition.masked_paths, METADATA))
        return shown
    except errors.ConvergenceError:
        return {}


def _matches(row: Resource, filters: Mapping[str, list[str]]) -> bool:
    exact = {
        'name': row.name,
        'resource_name': row.name,
        'id': row.id,
        'physical_resource_id': row.physical_id or '',
    }
    for name, value in exact.items():
        if name in filters and value not in filters[name]:
            return False
    types = filters.get('type', filters.get('resource_type'))
    if types is not None and not any(part in row.shown_type for part in types):
        return False
    return in_state(row.action, row.status, resource_states(filters))
