"""The request that an endpoint gets, and the answer that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from oslo_context.context import RequestContext

from convergence.api.event_stream import Followers
from convergence.api.queries import Query
from convergence.credentials.issuing import Issuer
from convergence.documents import AnyJson
from convergence.rpc.engine_api import EngineApi, Identity

P = ParamSpec('P')
R = TypeVar('R')


class Engine(Protocol):
    """Calls an engine: the part of `convergence.rpc.client.EngineClient` that the API uses."""

    def call(self, context: RequestContext, name: str, /, **arguments: Any) -> AnyJson:
        """Carry out the operation `name`."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """The answer to a client.

    :param document: the body, as JSON; see `content_type`.
    :param status: None: the status of the route.
    :param content_type: of a `document` that is text; None: it is JSON.
    :param stream: pieces of an open-ended body, instead of `document`.
    """

    document: Any = None
    status: HTTPStatus | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str | None = None
    stream: Iterable[bytes] | None = None


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request that passed the checks of access.

    :param base: URL of the API as the client sees it, with the version, without a slash at the end.
    :param url: of the request, without its query.
    :param query_text: the raw query, without the question mark.
    :param path: the variable parts of the path, by name.
    :param headers: of the request, by lower-case name.
    :param body: the body as JSON; None without a body.
    :param require: checks a further rule of the policy. Raises `Forbidden`.
    :param is_admin: True if the caller may read data of all projects.
    :param followers: the clients that follow events.
    :param client: the address that the request comes from.
    :param issuer: creates credentials for stacks; None: stacks get no credentials.
    """

    context: RequestContext
    engine: Engine
    base: str
    url: str
    query_text: str
    path: Mapping[str, str]
    query: Query
    headers: Mapping[str, str]
    body: Any
    require: Callable[[str], None]
    is_admin: bool
    followers: Followers
    client: str = ''
    issuer: Issuer | None = None

    def ask(
        self, operation: Callable[Concatenate[EngineApi, RequestContext, P], R], *given: P.args, **arguments: P.kwargs
    ) -> R:
        """Let an engine carry out an operation: one of the methods of `EngineApi`, with arguments by name."""
        answer: R = self.engine.call(self.context, operation.__name__, **arguments)
        return answer

    def about_stack(
        self,
        operation: Callable[Concatenate[EngineApi, RequestContext, Identity, P], R],
        *given: P.args,
        **arguments: P.kwargs,
    ) -> R:
        """Let an engine carry out an operation on the stack of the URL."""
        answer: R = self.engine.call(self.context, operation.__name__, stack_identity=self.identity, **arguments)
        return answer

    @property
    def identity(self) -> dict[str, str]:
        """The stack of the URL, as engines name it."""
        return {
            'tenant': self.path['project_id'],
            'stack_name': self.path['stack_name'],
            'stack_id': self.path['stack_id'],
            'path': '',
        }
