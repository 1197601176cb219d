"""What an engine can be asked, as data.

To add an operation: one entry in `OPERATIONS`, and a method of the same name on one of the parts of the engine
(`convergence.engine.service`). Clients and servers follow by themselves; until the method exists callers are told that
the operation is not offered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from convergence.errors import Invalid
from convergence.rpc.messages import CALL_LIMIT_BYTES, check_size, refuse


@dataclass(frozen=True, slots=True)
class StackQuery:
    """Which stacks `list_stacks` and `count_stacks` are about. None: no restriction, or the engine's default."""

    limit: int | None = None
    marker: str | None = None
    sort_keys: list[str] | None = None
    sort_dir: str | None = None
    filters: dict[str, Any] | None = None
    show_deleted: bool = False
    show_nested: bool = False
    show_hidden: bool = False
    tags: list[str] | None = None
    tags_any: list[str] | None = None
    not_tags: list[str] | None = None
    not_tags_any: list[str] | None = None


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events of a stack `list_events` is about. None: no restriction, or the engine's default."""

    filters: dict[str, Any] | None = None
    limit: int | None = None
    marker: str | None = None
    sort_keys: list[str] | None = None
    sort_dir: str | None = None
    nested_depth: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A call that an engine answers.

    :param required: arguments without which the call is refused.
    :param optional: arguments that are handed on when they are there.
    :param query: for operations with many filters: the engine gets them as one value of this type, called `query`.
    :param since: the engine version that introduced it; what a caller asks for.
    :param about: what it does or answers, in a sentence.
    """

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    query: type[StackQuery | EventQuery] | None = None
    since: str = '1.0'
    about: str = ''
    _query_names: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        if self.query is not None:
            object.__setattr__(self, '_query_names', tuple(each.name for each in fields(self.query)))

    @property
    def names(self) -> tuple[str, ...]:
        """All arguments, in the order in which a caller may give them without their names."""
        return (*self.required, *self.optional, *(('query',) if self.query is not None else ()))

    def encode(self, arguments: Mapping[str, Any], limit_bytes: int = CALL_LIMIT_BYTES) -> dict[str, Any]:
        """The arguments as JSON, without those that are None. A query becomes its fields.

        :raises RequestLimitExceeded: more than `limit_bytes`.
        :raises Invalid: they are not plain JSON, or not the arguments of this operation.
        """
        document = dict(arguments)
        query = document.pop('query', None)
        if query is not None:
            document.update({name: getattr(query, name) for name in self._query_names})
        known = {*self.required, *self.optional, *self._query_names}
        if not known.issuperset(document):
            raise Invalid(f'{self.name} has no argument {", ".join(sorted(set(document) - known))}')
        document = {name: value for name, value in document.items() if value is not None or name in self.required}
        check_size(self.name, document, limit_bytes)
        return document

    def decode(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for the engine's method.

        :raises Invalid: a required argument is missing, or one is unknown: left out, it would be promised and not done.
        """
        unknown = sorted(set(document) - {*self.required, *self.optional, *self._query_names})
        if unknown:
            raise refuse(self.name, f'it has no argument {", ".join(unknown)}')
        missing = [name for name in self.required if name not in document]
        if missing:
            raise refuse(self.name, f'{", ".join(missing)} missing')
        arguments = {name: document[name] for name in (*self.required, *self.optional) if name in document}
        if self.query is not None:
            arguments['query'] = self.query(**{name: document[name] for name in self._query_names if name in document})
        return arguments


_IDENTITY = ('stack_identity',)
_TEMPLATE = ('params', 'files', 'args', 'environment_files')
_DEPLOYMENT = ('input_values', 'output_values', 'action', 'status', 'status_reason', 'stack_user_project_id')

OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        # Stacks
        Operation('identify_stack', ('stack_name',), about='The identity of the stack with that name or id.'),
        Operation('list_stacks', query=StackQuery, about='Summaries of the stacks that the query selects.'),
        Operation('count_stacks', query=StackQuery, about='How many stacks the query selects.'),
        Operation('show_stack', _IDENTITY, ('resolve_outputs',), about='Everything about one stack, as a list of one.'),
        Operation(
            'create_stack', ('stack_name', 'template'), _TEMPLATE,
            about='Accept a new stack. Its identity; the stack is CREATE_IN_PROGRESS by then.',
        ),
        Operation(
            'preview_stack', ('stack_name', 'template'), _TEMPLATE,
            about='The stack that would be created, with its resources.',
        ),
        Operation(
            'update_stack', (*_IDENTITY, 'template'), _TEMPLATE,
            about='Give a stack a new goal; None as the template keeps the present one. Its identity.',
        ),
        Operation(
            'preview_update_stack', (*_IDENTITY, 'template'), _TEMPLATE,
            about='What an update would do: unchanged, updated, replaced, added, deleted, each a list of resources.',
        ),
        Operation(
            'delete_stack', _IDENTITY, ('expected_traversal',), about='Begin to delete a stack in whatever state.'
        ),
        Operation(
            'stack_cancel_update', _IDENTITY, ('cancel_with_rollback',),
            about='Stop the operation in progress and, if so wanted, go back to the last good template.',
        ),
        Operation('stack_suspend', _IDENTITY, about='Suspend every resource of a stack.'),
        Operation('stack_resume', _IDENTITY, about='Resume every resource of a suspended stack.'),
        Operation('stack_check', _IDENTITY, about='Compare every resource of a stack with what is really there.'),
        Operation(
            'abandon_stack', _IDENTITY,
            about='Forget a stack and leave what it made; the data from which it can be adopted.',
        ),
        Operation('export_stack', _IDENTITY, about='The data from which a stack could be adopted; nothing changes.'),
        Operation('get_template', _IDENTITY, about='The template of a stack.'),
        Operation('get_environment', _IDENTITY, about='The environment of a stack, hidden parameters masked.'),
        Operation('get_files', _IDENTITY, about='The files that came with the template of a stack, by name.'),
        Operation('list_outputs', _IDENTITY, about='The outputs of a stack without their values.'),
        Operation('show_output', (*_IDENTITY, 'output_key'), about='One output with its value.'),
        Operation('stack_explain', _IDENTITY, about='Why a stack is as it is, and what it is waiting for.'),
        Operation(
            'stack_graph', _IDENTITY,
            about='The nodes of the traversal of a stack, their states, and what requires what.',
        ),
        Operation('list_traversals', _IDENTITY, ('limit',), about='The operations on a stack, the newest first.'),
        # Snapshots
        Operation('stack_snapshot', _IDENTITY, ('name',), about='Begin to take a snapshot of a stack; the snapshot.'),
        Operation('stack_list_snapshots', _IDENTITY, about='The snapshots of a stack.'),
        Operation('show_snapshot', (*_IDENTITY, 'snapshot_id'), about='One snapshot with its data.'),
        Operation('delete_snapshot', (*_IDENTITY, 'snapshot_id'), about='Begin to delete a snapshot.'),
        Operation('stack_restore', (*_IDENTITY, 'snapshot_id'), about='Bring a stack back to a snapshot.'),
        # Resources and events
        Operation(
            'list_stack_resources', _IDENTITY, ('nested_depth', 'with_detail', 'filters'),
            about='The resources of a stack.',
        ),
        Operation(
            'describe_stack_resource', (*_IDENTITY, 'resource_name'), ('with_attr',),
            about='Everything about one resource.',
        ),
        Operation(
            'resource_signal', (*_IDENTITY, 'resource_name'), ('details', 'sync_call'),
            about='Hand a signal to a resource.',
        ),
        Operation(
            'resource_mark_unhealthy', (*_IDENTITY, 'resource_name', 'mark_unhealthy'), ('resource_status_reason',),
            about='Say that a resource is broken, so that the next update replaces it, or that it is well again.',
        ),
        Operation(
            'list_events', _IDENTITY, query=EventQuery,
            about='What happened to a stack, as far as the query selects it.',
        ),
        # Templates and the installation
        Operation(
            'validate_template',
            ('template',),
            ('params', 'files', 'environment_files', 'show_nested', 'ignorable_errors'),
            about='What a template declares, or what is wrong with it.',
        ),
        Operation(
            'list_resource_types', (), ('support_status', 'type_name', 'with_description'),
            about='Names of the resource types, or objects with a description; type_name is a pattern.',
        ),
        Operation(
            'resource_schema', ('type_name',), ('with_description',),
            about='Properties and attributes of a resource type.',
        ),
        Operation(
            'generate_template', ('type_name',), ('template_type',),
            about='A template with a resource of that type and all its properties as parameters.',
        ),
        Operation('list_template_versions', about='The versions of the template language.'),
        Operation(
            'list_template_functions', ('template_version',), ('with_condition',),
            about='The functions that a version of the template language has.',
        ),
        Operation('list_services', about='The processes of the installation and whether they are alive.'),
        Operation(
            'service_beat', ('service_id', 'kind', 'host', 'version', 'lease_s'), ('load',),
            about='A process without access to the database, such as the API, is alive.',
        ),
        Operation('service_leave', ('service_id',), about='Such a process ends.'),
        Operation('get_revision', about='The version of the engine that answers.'),
        Operation('get_progress', about='Whether work gets on: processes, operations in progress, late ones.'),
        # Software configuration
        Operation('list_software_configs', (), ('limit', 'marker'), about='The software configurations of a project.'),
        Operation('show_software_config', ('config_id',), about='One software configuration.'),
        Operation(
            'create_software_config', ('group', 'name', 'config'), ('inputs', 'outputs', 'options'),
            about='Keep a software configuration; it.',
        ),
        Operation('delete_software_config', ('config_id',), about='Delete a software configuration.'),
        Operation('list_software_deployments', (), ('server_id',), about='The software deployments of a project.'),
        Operation('show_software_deployment', ('deployment_id',), about='One software deployment.'),
        Operation('metadata_software_deployments', ('server_id',), about='What the agent on a server is to do.'),
        Operation(
            'create_software_deployment', ('server_id', 'config_id'), _DEPLOYMENT,
            about='Keep a software deployment; it.',
        ),
        Operation(
            'update_software_deployment', ('deployment_id',), ('config_id', *_DEPLOYMENT),
            about='Change a software deployment; it.',
        ),
        Operation('delete_software_deployment', ('deployment_id',), about='Delete a software deployment.'),
    )
}
"""Every call that an engine answers, by name. Nothing else of the service object can be reached."""
