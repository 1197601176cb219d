"""The preview of an update: which resources it would change, replace, add and delete. Nothing is done."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from convergence import errors, template
from convergence.core.model import Action, Definition, DeletionPolicy, Json, Status
from convergence.core.rows import Resource, Stack
from convergence.db.queries import Reader, in_service
from convergence.engine import formats
from convergence.engine.formats import Document
from convergence.engine.options import Options
from convergence.engine.prospects import Fate, Prospect, Prospects, last_applied, needs_new_object
from convergence.engine.stacks import Caller, Stacks
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.resources.secrets import known_secrets, secret_properties
from convergence.template.parameters import MASK

UNKNOWN_TEXT = '(known after apply)'
"""Shown for a value that cannot be known before the update."""


class Previews:
    """Offers the preview as an operation."""

    def __init__(self, reader: Reader, registry: Registry, stacks: Stacks) -> None:
        self._reader = reader
        self._registry = registry
        self._stacks = stacks

    def preview_stack(
        self,
        context: Caller,
        stack_name: str,
        template: str | Mapping[str, Json],
        params: Mapping[str, Json] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: list[str] | None = None,
    ) -> Document:
        """The stack that a creation with the same arguments would make, with its `resources`. It has no id yet."""
        submission = self._stacks.submission(template, params, files, environment_files)
        stack, compiled = self._stacks.prospective(context, stack_name, Options.of(args), submission)
        # The id that it is compiled with is none that it will have.
        shown = replace(stack, id='None')
        resources = preview_update(shown, (), compiled, self._registry)[Fate.ADDED]
        document = formats.stack_details(shown, compiled)
        document['parameters']['OS::stack_id'] = 'None'
        return {**document, 'resources': resources}

    def preview_update_stack(
        self,
        context: Caller,
        stack_identity: Document,
        template: str | Mapping[str, Json] | None = None,
        params: Mapping[str, Json] | None = None,
        files: Mapping[str, str] | None = None,
        args: Mapping[str, Any] | None = None,
        environment_files: list[str] | None = None,
    ) -> dict[str, list[Document]]:
        """What an update with the same arguments would do; see `preview_update`."""
        stack, _, compiled = self._stacks.proposed(
            context, stack_identity, Options.of(args), template, params, files, environment_files
        )
        rows = self._reader.resources(stack.id)
        return preview_update(stack, rows, compiled, self._registry, self._earlier_secrets(stack, rows))

    def _earlier_secrets(self, stack: Stack, rows: Sequence[Resource]) -> frozenset[str] | None:
        """The hidden values of the goals that the resources were made from; None where they are not known any more."""
        found: frozenset[str] = frozenset()
        for template_id in {stack.template_id, *(row.template_id for row in rows)} - {None}:
            try:
                found |= _secrets(self._stacks.goals.stored(stack, str(template_id))[1])
            except errors.ConvergenceError:
                return None
        return found


def preview_update(
    stack: Stack,
    rows: Sequence[Resource],
    compiled: template.Compiled,
    registry: Registry,
    earlier_secrets: frozenset[str] | None = frozenset(),
) -> dict[str, list[Document]]:
    """The resources of a stack by what an update to `compiled` would do to them.

    :param rows: all resource rows of the stack.
    :param earlier_secrets: hidden values that the rows may have; None: they are not known, so nothing old is shown.
    :returns: for each `Fate` a list of resources, in the order of the template. Each has, besides what a resource has
        anywhere, `certainty`, `reason`, `changed_properties`, `property_changes` and, unless it is deleted, the wanted
        `properties`. A property change has the name, the values `before` and `after`, and `needs_new_object`.
    :raises StackValidationFailed: the update would be accepted, but must fail; carries every reason.
    """
    prospects = Prospects(stack, rows, compiled, registry)
    found = prospects.find()
    hidden = _secrets(compiled)
    needed_by: dict[str, list[str]] = {}
    for definition in compiled.goal.definitions.values():
        for required in definition.requires:
            needed_by.setdefault(required, []).append(definition.name)
    lists: dict[str, list[Document]] = {fate.value: [] for fate in Fate}
    for name, prospect in found.items():
        definition = compiled.goal.definitions[name]
        row = prospects.chosen.get(name)
        secrets = hidden | _secret_properties(registry, definition, row, prospect.wanted)
        document = {
            **formats.resource_summary(stack, row or _not_made(stack, definition), needed_by.get(name, ())),
            **({} if row else {'creation_time': None, 'updated_time': None}),
            'resource_type': definition.shown_type,
            'properties': _shown(prospect.wanted, secrets),
            **_verdict(prospect),
            'property_changes': _changes(prospect, row, registry, secrets, earlier_secrets),
        }
        lists[prospect.fate].append(document)
    lists[Fate.DELETED] = _deleted(stack, [row for row in rows if row.name not in found])
    return lists


def _deleted(stack: Stack, rows: Sequence[Resource]) -> list[Document]:
    """The resources that are not wanted any more, by name. What was never begun just disappears."""
    documents: list[Document] = []
    for _, row in sorted(in_service(rows, stack.template_id).items()):
        if row.token is None and row.physical_id is None:
            continue
        retained = row.definition is not None and row.definition.deletion_policy is DeletionPolicy.RETAIN
        reason = 'it is not in the template' + ('; its physical object is kept' if retained else '')
        verdict = _verdict(Prospect(Fate.DELETED, reason=reason))
        documents.append({**formats.resource_summary(stack, row, ()), **verdict})
    return documents


def _not_made(stack: Stack, definition: Definition) -> Resource:
    """Stands in for the row of a resource that the update would add."""
    return Resource(
        id='',
        stack_id=stack.id,
        name=definition.name,
        type=definition.type,
        action=Action.INIT,
        status=Status.COMPLETE,
        created_at=stack.created_at,
    )


def _verdict(prospect: Prospect) -> Document:
    return {
        'certainty': prospect.certainty.value,
        'reason': prospect.reason,
        'changed_properties': list(prospect.changed),
        'property_changes': [],
    }


def _changes(
    prospect: Prospect,
    row: Resource | None,
    registry: Registry,
    secrets: frozenset[str],
    earlier: frozenset[str] | None,
) -> list[Document]:
    """Each property that changes, or may change, with its value before and after."""
    if not prospect.changed or row is None:
        return []
    schema = PropertySchema.of(registry.get(row.type).Properties)
    _, previous = last_applied(row)
    wanted = prospect.wanted if isinstance(prospect.wanted, dict) else {}
    changes: list[Document] = []
    for name in prospect.changed:
        after = _shown(wanted.get(name) if wanted else template.UNKNOWN, secrets)
        # A value that is secret now was one before: what the template said then need not be known any more.
        hide = earlier is None or after == MASK
        before = MASK if hide else _shown(previous.get(name), secrets | earlier)
        change = {'property': name, 'before': before, 'after': after}
        changes.append({**change, 'needs_new_object': needs_new_object(schema, name)})
    return changes


def _secrets(compiled: template.Compiled) -> frozenset[str]:
    """The values of hidden parameters, as they may turn up in the text of a property."""
    texts: set[str] = set()
    for parameter in compiled.parameters.values():
        if parameter.hidden and parameter.has_value:
            texts.update(_leaves(parameter.value))
            if isinstance(parameter.value, (dict, list)):
                texts.add(json.dumps(parameter.value))
    return frozenset(texts - {'', 'None'})


def _secret_properties(
    registry: Registry, definition: Definition, row: Resource | None, wanted: Any
) -> frozenset[str]:
    """The values of properties that the type declares to be secret, those that there are and those that are wanted."""
    found = known_secrets(row, registry) if row is not None else frozenset()
    return found | secret_properties(registry, definition.type, wanted if isinstance(wanted, dict) else {})


def _leaves(value: Json) -> Iterable[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield str(value)


def _shown(value: Any, secrets: frozenset[str]) -> Any:
    """A value that may be shown: what contains a secret is masked, what is not known yet says so."""
    if value is template.UNKNOWN:
        return UNKNOWN_TEXT
    if isinstance(value, dict):
        return {key: _shown(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shown(inner, secrets) for inner in value]
    if isinstance(value, str):
        return MASK if any(secret in value for secret in secrets) else value
    return MASK if str(value) in secrets else value
