"""What is said on the wire: topics, versions, messages and their limits.

Casts are hints: the row is the work, a message only wakes somebody up. So they carry ids and nothing else, and are
small. Calls of the engine come from a client and may carry a template with its files.

What is needed and not found is refused. What is not known is ignored in a cast: a newer sender may add to a hint. In a
call it is refused: who asks for something must not be told that it was done. A change that an older reader would not
understand raises a version below.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from convergence.errors import Invalid, RequestLimitExceeded

LOG = logging.getLogger(__name__)

WORKER_TOPIC = 'worker'
CANCEL_TOPIC = 'worker_cancel'
ENGINE_TOPIC = 'engine'

WORKER_VERSION = '1.0'
CANCEL_VERSION = '1.0'
ENGINE_VERSION = '1.0'

CAST_LIMIT_BYTES = 64 * 1024
CALL_LIMIT_BYTES = 64 * 1024 * 1024

_KINDS: dict[str, type] = {'str': str, 'int': int}

_logged: set[tuple[str, str]] = set()


def check_size(method: str, arguments: Mapping[str, object], limit_bytes: int) -> None:
    """Refuse arguments that would make a message larger than `limit_bytes` bytes of JSON.

    :raises RequestLimitExceeded: they would; nothing was sent.
    :raises Invalid: they are not plain JSON.
    """
    try:
        size = len(json.dumps(arguments).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f'{method}: the arguments cannot be sent, they are not plain JSON: {error}') from None
    if size > limit_bytes:
        only_ids = limit_bytes <= CAST_LIMIT_BYTES
        advice = 'only ids belong in it' if only_ids else 'make the template or its files smaller'
        raise RequestLimitExceeded(
            f'{method}: the message would have {size} bytes, the limit is {limit_bytes} bytes ({advice})'
        )


def refuse(method: str, problem: str) -> Invalid:
    """The error for a message that cannot be understood. Logged the first time, not for each of a flood."""
    text = f'{method}: {problem}; sender and receiver may be of different versions'
    if (method, problem) not in _logged:
        _logged.add((method, problem))
        LOG.warning('Refused a message. %s', text)
    return Invalid(text)


@dataclass(frozen=True, slots=True)
class Message:
    """Base of the casts: frozen values whose fields are ids."""

    METHOD: ClassVar[str]

    def encode(self) -> dict[str, str | int]:
        """The message as JSON.

        :raises RequestLimitExceeded: it has more than `CAST_LIMIT_BYTES`.
        """
        document = {each.name: getattr(self, each.name) for each in fields(self)}
        check_size(self.METHOD, document, CAST_LIMIT_BYTES)
        return document

    @classmethod
    def decode(cls, document: Mapping[str, object]) -> Self:
        """The message that `document` was made from, possibly by a newer version.

        :raises Invalid: a field is missing or of the wrong type.
        """
        values: dict[str, Any] = {}
        for each in fields(cls):
            if each.name not in document:
                raise refuse(cls.METHOD, f'{each.name} is missing')
            value, kind = document[each.name], _KINDS[str(each.type)]
            if not isinstance(value, kind) or isinstance(value, bool):
                raise refuse(cls.METHOD, f'{each.name} must be {kind.__name__}, not {type(value).__name__}')
            values[each.name] = value
        return cls(**values)


@dataclass(frozen=True, slots=True)
class CheckResource(Message):
    """To one worker: this node may be ready."""

    METHOD: ClassVar[str] = 'check_resource'

    traversal_id: str
    node: int


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """To every worker: stop what you do for this traversal."""

    METHOD: ClassVar[str] = 'cancel'

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class Settle(Message):
    """To one engine: this traversal may have ended, look what it means for the stack."""

    METHOD: ClassVar[str] = 'settle'

    stack_id: str
    traversal_id: str


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
    """

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    query: type[StackQuery | EventQuery] | None = None
    since: str = '1.0'
    _query_names: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        if self.query is not None:
            object.__setattr__(self, '_query_names', tuple(each.name for each in fields(self.query)))

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

OPERATIONS: Mapping[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation('identify_stack', ('stack_name',)),
        Operation('list_stacks', query=StackQuery),
        Operation('count_stacks', query=StackQuery),
        Operation('show_stack', _IDENTITY, ('resolve_outputs',)),
        Operation('create_stack', ('stack_name', 'template'), _TEMPLATE),
        Operation('update_stack', (*_IDENTITY, 'template'), _TEMPLATE),
        Operation('preview_update_stack', (*_IDENTITY, 'template'), _TEMPLATE),
        Operation('delete_stack', _IDENTITY),
        Operation('stack_cancel_update', _IDENTITY, ('cancel_with_rollback',)),
        Operation(
            'validate_template',
            ('template',),
            ('params', 'files', 'environment_files', 'show_nested', 'ignorable_errors'),
        ),
        Operation('get_template', _IDENTITY),
        Operation('get_environment', _IDENTITY),
        Operation('get_files', _IDENTITY),
        Operation('list_outputs', _IDENTITY),
        Operation('show_output', (*_IDENTITY, 'output_key')),
        Operation('list_stack_resources', _IDENTITY, ('nested_depth', 'with_detail', 'filters')),
        Operation('describe_stack_resource', (*_IDENTITY, 'resource_name'), ('with_attr',)),
        Operation('stack_explain', _IDENTITY),
        Operation('list_events', _IDENTITY, query=EventQuery),
        Operation('list_resource_types', (), ('support_status', 'type_name', 'with_description')),
        Operation('resource_schema', ('type_name',), ('with_description',)),
        Operation('list_services'),
        Operation('get_revision'),
    )
}
"""Every call that an engine answers, by name. Nothing else of the service object can be reached."""
