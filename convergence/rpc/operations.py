"""The operations of `convergence.rpc.engine_api` as data: encodes, decodes and checks their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import Parameter, getdoc, signature
from types import NoneType
from typing import Any, get_args, get_type_hints

from convergence.errors import Invalid
from convergence.rpc.engine_api import EngineApi, EventQuery, StackQuery
from convergence.rpc.messages import CALL_LIMIT_BYTES, check_size, refuse


@dataclass(frozen=True, slots=True)
class EngineOperation:
    """A call that an engine answers.

    :param required: names of the arguments that a call must contain.
    :param optional: names of the arguments that a call may contain.
    :param query: type of the argument `query`, into which the engine collects the filters; None: no filters.
    :param since: version of the engine's interface that introduced the operation; a caller requires it.
    :param about: description of the operation: the docstring of its method.
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
        """The names of all arguments, in the order of positional arguments."""
        return (*self.required, *self.optional, *(('query',) if self.query is not None else ()))

    def encode(self, arguments: Mapping[str, Any], limit_bytes: int = CALL_LIMIT_BYTES) -> dict[str, Any]:
        """Return the arguments as JSON. Omits optional arguments that are None, and spreads a query into its fields.

        :raises RequestLimitExceeded: the arguments have more than `limit_bytes` bytes.
        :raises Invalid: the arguments are not plain JSON, or the operation has no such argument.
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
        """Return the arguments for the engine's method.

        :raises Invalid: a required argument is missing, or an argument is unknown. An engine that ignored it would
            report success for a request that it had not carried out in full.
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


def _derived(name: str, method: Callable[..., Any]) -> EngineOperation:
    """Derive the operation from its method of `EngineApi`."""
    parameters = list(signature(method).parameters.values())[2:]  # without self and context
    query = get_type_hints(method).get('query')
    kinds = [kind for kind in get_args(query) if kind is not NoneType]
    return EngineOperation(
        name,
        tuple(each.name for each in parameters if each.default is Parameter.empty),
        tuple(each.name for each in parameters if each.default is not Parameter.empty and each.name != 'query'),
        query=kinds[0] if kinds else None,
        about=getdoc(method) or '',
    )


OPERATIONS: Mapping[str, EngineOperation] = {
    name: _derived(name, method) for name, method in vars(EngineApi).items() if hasattr(method, 'is_operation')
}
"""Every call that an engine answers, by name. Callers cannot reach other methods of the service object."""
