"""Formats rows and values as the documents of the field's RPC."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from convergence import template
from convergence.core.conditions import Condition
from convergence.core.model import Action, Json
from convergence.core.observation import DriftSummary
from convergence.core.rows import Event, Resource, Stack
from convergence.db.records import Service
from convergence.documents import Document
from convergence.engine.compile.goal_rows import PARAMETER_TYPES, parameter_texts
from convergence.engine.reads.members import ShownMember
from convergence.template.environment import VALUES
from convergence.template.parameters import MASK, Source

STACK_TYPE = 'OS::Heat::Stack'
"""The type under which a stack itself appears among events."""

_SECTIONS: Mapping[str, Any] = {
    'parameters': {},
    'parameter_defaults': {},
    'resource_registry': {'resources': {}},
    'event_sinks': [],
    'encrypted_param_names': [],
}


# --- times and names ------------------------------------------------------------------------------------------


def moment(seconds: float | None) -> str | None:
    """A time in seconds since the epoch as ISO 8601 with seconds, in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')


def identity(stack: Stack, path: str = '') -> Document:
    """The identity of a stack in the RPC, or with a path, of a part of it."""
    return {'tenant': stack.project_id, 'stack_name': stack.name, 'stack_id': stack.id, 'path': path}


def resource_identity(stack: Stack, name: str) -> Document:
    """The identity of a resource in the RPC."""
    return identity(stack, f'/resources/{name}')


# --- stacks ---------------------------------------------------------------------------------------------------


def stack_summary(stack: Stack, description: str = '') -> Document:
    """A stack as it appears in a list."""
    return {
        'stack_identity': identity(stack),
        'stack_name': stack.name,
        'stack_action': stack.action.value,
        'stack_status': stack.status.value,
        'stack_status_reason': stack.status_reason,
        'creation_time': moment(stack.created_at),
        'updated_time': moment(stack.updated_at),
        'deletion_time': moment(stack.deleted_at),
        'description': description,
        'stack_owner': None,
        'parent': stack.parent_id,
        'stack_user_project_id': None,
        'tags': list(stack.tags) or None,
        'traversal_id': stack.traversal_id,
    }


def stack_details(stack: Stack, summary: Mapping[str, Json] | None) -> Document:
    """Everything about a stack but its outputs.

    :param summary: of its goal; None where that cannot be read any more. See `goal_rows.summary`.
    """
    own: Mapping[str, Json] = {'description': '', 'parameters': {**parameter_texts(_identity_parameters(stack))}}
    told = summary or own
    description, parameters = told['description'], told['parameters']
    assert isinstance(description, str)
    assert isinstance(parameters, dict)
    return {
        **stack_summary(stack, description),
        'template_description': description,
        'parameters': dict(parameters),
        'disable_rollback': stack.disable_rollback,
        'timeout_mins': stack.timeout_mins,
        'drift_policy': stack.drift_policy.value,
        'capabilities': [],
        'notification_topics': [],
    }


def condition(found: Condition) -> Document:
    """One condition of a stack."""
    return {
        'type': found.type.value,
        'status': 'True' if found.holds else 'False',
        'reason': found.reason,
        'message': found.message,
        'since': moment(found.since),
        'traversal_id': found.traversal_id,
    }


def drift_summary(summary: DriftSummary) -> Document:
    """The numbers of observed and drifted objects of a stack."""
    return {
        'observed': summary.observed,
        'seen': summary.seen,
        'drifted': summary.drifted,
        'since': moment(summary.since),
        'looked_at': moment(summary.observed_at),
    }


def _identity_parameters(stack: Stack) -> Mapping[str, template.Parameter]:
    return template.StackIdentity(stack.id, stack.name, stack.project_id).parameters()


def output_key(output: template.OutputDefinition) -> Document:
    """An output without its value."""
    return {'output_key': output.name, 'description': output.description}


def output_value(output: template.OutputDefinition, value: Json, error: str | None) -> Document:
    """An output with its value, or with null and the reason why it has none."""
    document = {**output_key(output), 'output_value': value}
    return document if error is None else {**document, 'output_error': error}


# --- parameters -----------------------------------------------------------------------------------------------


def parameter_schema(parameter: template.Parameter) -> Document:
    """The declaration of a parameter, with its given value."""
    document: Document = {
        'Type': PARAMETER_TYPES[parameter.type],
        'Description': parameter.description,
        'NoEcho': 'true' if parameter.hidden else 'false',
        'Label': parameter.label or parameter.name,
    }
    if parameter.default is not None:
        document['Default'] = parameter.written_default  # not masked: the caller has sent the template that contains it
    if parameter.has_value and parameter.source is not Source.TEMPLATE:
        document['Value'] = parameter.masked()
    if parameter.immutable:
        document['Immutable'] = True
    if parameter.tags:
        document['Tags'] = list(parameter.tags)
    descriptions: list[str] = []
    for constraint in parameter.constraints:
        document.update(_constraint(constraint.kind, constraint.argument()))
        if constraint.description:
            descriptions.append(constraint.description)
    if descriptions:
        document['ConstraintDescription'] = ' '.join(descriptions)
    return document


def _constraint(kind: str, argument: Json) -> Document:
    """A constraint of a parameter as the RPC writes it."""
    if kind == 'allowed_values':
        return {'AllowedValues': argument}
    if kind == 'allowed_pattern':
        return {'AllowedPattern': argument}
    if kind == 'custom_constraint':
        return {'CustomConstraint': argument}
    names = {
        'length': {'min': 'MinLength', 'max': 'MaxLength'},
        'range': {'min': 'MinValue', 'max': 'MaxValue'},
        'modulo': {'step': 'Step', 'offset': 'Offset'},
    }[kind]
    bounds = argument if isinstance(argument, dict) else {}
    return {name: bounds[key] for key, name in names.items() if key in bounds}


def sent_environment(sections: Mapping[str, Json], parameters: Mapping[str, template.Parameter]) -> Document:
    """The environment that the caller has just sent; see `environment`."""
    document = environment(sections, parameters)
    del document['encrypted_param_names']
    return document


def environment(sections: Mapping[str, Json], parameters: Mapping[str, template.Parameter] | None) -> Document:
    """An environment with all of its sections; the values of hidden parameters are masked.

    Also masked are values of parameters that the template does not declare: an environment that several stacks share
    has values for other stacks, and it is unknown here which of them are hidden there. The same holds for values that
    the environment calls encrypted.

    :param parameters: the declared parameters; None: unknown, so every value is masked.
    """
    shown: Document = {**_SECTIONS, **sections}
    if isinstance(shown['resource_registry'], dict):
        shown['resource_registry'] = {'resources': {}, **shown['resource_registry']}
    for section in ('parameters', 'parameter_defaults'):
        values = shown[section]
        if isinstance(values, dict):
            shown[section] = {name: _shown(name, value, parameters) for name, value in values.items()}
            shown[section].update({name: MASK for name in shown['encrypted_param_names'] if name in values})
    return shown


def environment_file(
    text: str, sections: Mapping[str, Json], parameters: Mapping[str, template.Parameter] | None
) -> str:
    """An environment file as it was sent; if something in it is masked, its sections as new JSON.

    :param sections: the content of the file.
    :param parameters: as for `environment`.
    """
    masked = environment(sections, parameters)
    shown = {name: masked[name] if name in VALUES else content for name, content in sections.items()}
    return text if shown == dict(sections) else json.dumps(shown, indent=2, ensure_ascii=False)


def _shown(name: str, value: Json, parameters: Mapping[str, template.Parameter] | None) -> Json:
    declared = parameters.get(name) if parameters is not None else None
    return MASK if declared is None or declared.hidden else value


# --- unreadable values ----------------------------------------------------------------------------------------


def unreadable_resource(row: Resource) -> Document:
    """A row with an unreadable value, and the remedy."""
    return {
        'resource_name': row.name,
        'resource_type': row.shown_type,
        'physical_resource_id': row.physical_id or '',
        'parts': list(row.damaged),
        'ways_out': 'Put back the key that sealed it; or delete the stack and leave the object of this resource behind '
        f'(--leave {row.name}). Until then an operation that needs the row fails, and says so.',
    }


def unreadable_template(part: str) -> Document:
    """An unreadable goal of a stack, and the remedy."""
    back = 'It cannot be rolled back' if part != 'template' else 'Its outputs and parameters cannot be shown'
    return {
        'resource_name': None,
        'resource_type': None,
        'physical_resource_id': '',
        'parts': [part],
        'ways_out': f'Put back the key that sealed it; or update the stack with a whole template; or delete it. {back} '
        'until then.',
    }


# --- resources ------------------------------------------------------------------------------------------------


def _reason(row: Resource) -> str:
    """The status reason of a resource, after a note if its row is damaged."""
    if not row.damaged:
        return row.status_reason
    damage = f'Stored values are unreadable ({", ".join(row.damaged)})'
    return f'{damage}; {row.status_reason}' if row.status_reason else damage


def resource_summary(member: ShownMember, required_by: Iterable[str]) -> Document:
    """A resource as it appears in a list."""
    stack, row = member.stack, member.row
    document: Document = {
        'resource_identity': resource_identity(stack, row.name),
        'stack_identity': identity(stack),
        'stack_name': stack.name,
        'resource_name': row.name,
        'logical_resource_id': row.name,
        'physical_resource_id': row.physical_id or '',
        'resource_type': row.shown_type,
        'resource_action': row.action.value,
        'resource_status': row.status.value,
        'resource_status_reason': _reason(row),
        'required_by': list(required_by),
        'creation_time': moment(row.created_at),
        'updated_time': moment(row.updated_at if row.updated_at is not None else row.created_at),
    }
    if member.parent_resource is not None:
        document['parent_resource'] = member.parent_resource
    if member.nested is not None:
        document['nested_stack_id'] = identity(member.nested)
    return document


def attributes(row: Resource, wanted: Iterable[str] = ()) -> dict[str, Json]:
    """The attributes of a resource at their last reading.

    :param wanted: names that the result always contains, with null for attributes that were never read.
    """
    shown: dict[str, Json] = dict.fromkeys(wanted)
    if row.output is None:
        return shown
    shown.update(row.output.shown)
    whole = row.output.attributes.get('')
    if isinstance(whole, dict):
        shown.update(whole)
    shown.update({name: value for name, value in row.output.attributes.items() if name})
    return shown


# --- events and services --------------------------------------------------------------------------------------


def event(stack: Stack, row: Event) -> Document:
    """An event of a stack or of one of its resources."""
    name = row.resource_name if row.resource_name is not None else stack.name
    return {
        'event_identity': identity(stack, f'/resources/{name}/events/{row.id}'),
        'stack_identity': identity(stack),
        'stack_name': stack.name,
        'event_time': moment(row.at),
        'resource_name': name,
        'logical_resource_id': name,
        'physical_resource_id': (row.physical_id if row.resource_name is not None else stack.id) or '',
        'resource_action': row.action.value,
        'resource_status': row.status.value,
        'resource_status_reason': row.reason,
        'resource_type': (row.resource_type if row.resource_name is not None else STACK_TYPE) or '',
    }


def service(row: Service) -> Document:
    """A process of the installation."""
    return {
        'id': row.id,
        'engine_id': row.id,
        'host': row.host,
        'hostname': row.host,
        'binary': f'convergence-{row.kind}',
        'topic': row.kind,
        'version': row.version,
        'pid': row.load.get('pid'),
        'report_interval': row.lease_s,
        'created_at': _exact_moment(row.started_at),
        'updated_at': _exact_moment(row.beat_at),
        'deleted_at': None,
        'status': 'up' if row.is_up else 'down',
    }


def _exact_moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime('%Y-%m-%dT%H:%M:%S.%f')


def state(action: Action | None, status: str | None) -> str | None:
    """``ACTION_STATUS``."""
    return f'{action}_{status}' if action and status else None
