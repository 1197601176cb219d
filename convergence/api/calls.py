"""A request on its way through an endpoint, and the answer that it gets."""

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
    """Asks an engine: the part of `convergence.rpc.client.EngineClient` that is needed here."""

    def call(self, context: RequestContext, name: str, /, **arguments: Any) -> AnyJson:
        """Carry out the operation `name`."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """What a client gets.

    :param document: the body, as JSON; see `content_type`.
    :param status: None: the one of the route.
    :param content_type: of a `document` that is a text already; None: it is JSON.
    :param stream: pieces of a body that has no end yet, instead of `document`.
    """

    document: Any = None
    status: HTTPStatus | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str | None = None
    stream: Iterable[bytes] | None = None


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request that may be carried out.

    :param base: URL of the API as the client sees it, with the version, without a slash at the end.
    :param url: of the request, without its query.
    :param query_text: what stands behind the question mark, as it was sent.
    :param path: the variable parts of the path, by name.
    :param headers: of the request, by lower-case name.
    :param body: the body as JSON; None: there is none.
    :param require: asks the policy for a further rule. Raises `Forbidden`.
    :param is_admin: whether the caller is shown what concerns all projects.
    :param followers: those who follow events.
    :param client: the address that the request comes from.
    :param issuer: has credentials made for stacks; None: they get none.
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
        """Have an engine carry out an operation: one of the methods of `EngineApi`, with arguments by name."""
        answer: R = self.engine.call(self.context, operation.__name__, **arguments)
        return answer

    def about_stack(
        self,
        operation: Callable[Concatenate[EngineApi, RequestContext, Identity, P], R],
        *given: P.args,
        **arguments: P.kwargs,
    ) -> R:
        """Have an engine carry out an operation on the stack of the URL."""
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
