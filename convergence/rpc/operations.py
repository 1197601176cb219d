"""The operations of `convergence.rpc.engine_api` as data: how their arguments travel, and what is refused."""

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


def _derived(name: str, method: Callable[..., Any]) -> EngineOperation:
    """The operation that a method of `EngineApi` declares."""
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
"""Every call that an engine answers, by name. Nothing else of the service object can be reached."""
