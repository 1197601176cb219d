"""The WSGI application: the path of every request.

The application matches a request with the routing table, identifies the caller, checks the policy, reads the body, and
calls the endpoint of the route. The endpoint calls an engine, and the application writes the answer. An exception on
the way becomes an answer too.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol, runtime_checkable

import falcon
from oslo_context.context import RequestContext

from convergence import errors
from convergence.api import bodies, discovery, faults, openapi, paths
from convergence.api.calls import ApiAnswer, ApiCall, Engine
from convergence.api.event_stream import Followers
from convergence.api.hosts import Hosts
from convergence.api.identity import Authentication, context_of, new_request_id, strip_identity
from convergence.api.policy import ADMIN, Policy
from convergence.api.queries import Query
from convergence.api.routes import ROUTES, Access, Route
from convergence.credentials.issuing import Issuer
from convergence.rpc.context import CallerContext
from convergence.signing import is_signal_path

LOG = logging.getLogger(__name__)

REQUEST_ID = 'x-openstack-request-id'
_OTHER_VERSION = re.compile(r'/v(?!1(?:/|$))[^/]*')

Responder = Callable[..., None]


@dataclass(frozen=True, slots=True)
class ApplicationOptions:
    """Settings of the application.

    :param public_url: beginning of the links in answers; empty: the host of the request, if it is known.
    :param hosts: names and addresses under which the API is known, besides those of this machine for itself.
    :param max_body_bytes: largest body of a request.
    :param token: that requests must carry if `authentication` is `NOAUTH`; empty: none.
    :param prove: returns the proof of identity for a nonce; None: this server proves nothing.
    """

    authentication: Authentication = Authentication.NOAUTH
    public_url: str = ''
    max_body_bytes: int = 8 * 1024 * 1024
    token: str = field(default='', repr=False)
    hosts: tuple[str, ...] = ()
    prove: Callable[[str], str] | None = field(default=None, repr=False)


class Application:
    """Serves requests: an object that any WSGI server can call.

    :param engine: sends requests to the engines.
    :param followers: the clients that follow events; stop them when the process ends.
    :param issuer: creates credentials for stacks; None: stacks get no credentials.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        options: ApplicationOptions,
        followers: Followers | None = None,
        issuer: Issuer | None = None,
    ) -> None:
        self._issuer = issuer
        self._followers = followers or Followers()
        self._engine = engine
        self._policy = policy
        self._options = options
        self._hosts = Hosts(options.public_url, options.hosts)
        self._falcon = falcon.App(middleware=[_Envelope()])
        self._falcon.req_options.keep_blank_qs_values = True
        # Falcon prefers the handler of the nearest class, and has some of its own.
        for kind in (Exception, falcon.HTTPError):
            self._falcon.add_error_handler(kind, _fail)
        self._add_routes()
        self._add_discovery()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request."""
        if self._options.authentication is not Authentication.KEYSTONE:
            strip_identity(environ)
        return self._falcon(environ, start_response)

    # --- one request ------------------------------------------------------------------------------------------

    def serve(self, route: Route, request: falcon.Request, response: falcon.Response, path: dict[str, str]) -> None:
        """Carry out a request that has been matched with a route. All access checks happen here."""
        project_id = path['project_id']
        if any('\0' in part for part in path.values()):
            raise falcon.HTTPNotFound
        context = self._let_in(route, request, project_id)
        # Answers to signed requests have no links, so their host does not matter.
        base = self._base(request) if route.access is Access.TOKEN else ''
        call = ApiCall(
            context=context,
            engine=self._engine,
            base=base,
            url=f'{base}{request.path.removeprefix("/v1")}',
            query_text=request.query_string,
            path=path,
            query=Query(_parameters(request)),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=bodies.read(request, route, self._options.max_body_bytes),
            require=lambda rule: self._policy.check(rule, context, project_id),
            is_admin=self._policy.allows(ADMIN, context, project_id),
            followers=self._followers,
            client=str(request.env.get('REMOTE_ADDR') or 'unknown'),
            issuer=self._issuer,
        )
        answer = route.endpoint(call)
        if request.method == 'HEAD' and isinstance(answer.stream, Closing):
            answer.stream.close()  # no server will iterate over it
        _write(response, HTTPStatus(route.status), answer)

    def _let_in(self, route: Route, request: falcon.Request, project_id: str) -> CallerContext:
        """Identify the caller and check the policy. A signed request has no caller: an engine verifies the signature.

        :raises UserError: the policy denies the request.
        """
        request_id: str = request.context.request_id
        if route.access is Access.SIGNATURE:
            return CallerContext(request_id=request_id, user_id=None, project_id=project_id, roles=[])
        options = self._options
        context = context_of(options.authentication, request.env, project_id, request_id, options.token)
        self._policy.check(route.rule, context, project_id)
        context.type_rules = self._policy.type_rules(context, project_id)
        return context

    def _base(self, request: falcon.Request) -> str:
        return f'{self._hosts.base(request.scheme, request.netloc)}/v1'

    # --- routing ----------------------------------------------------------------------------------------------

    def _add_routes(self) -> None:
        found: dict[str, dict[str, Responder]] = {}
        for route in ROUTES:
            found.setdefault(route.template, {})[route.method] = self._responder(route)
        for path, responders in found.items():
            parent, _, word = path.rpartition('/')
            for other, theirs in found.items():
                # A stack may have a name that is a word of the API: /stacks/preview with GET is such a stack.
                if word.startswith('{') or not re.fullmatch(re.escape(parent) + r'/{\w+}', other):
                    continue
                variable = other.rpartition('/')[2].strip('{}')
                for method, responder in theirs.items():
                    responders.setdefault(method, _with_part(responder, variable, word))
        for path, responders in found.items():
            self._falcon.add_route(path, _Resource(responders))

    def _responder(self, route: Route) -> Responder:
        def respond(request: falcon.Request, response: falcon.Response, **path: str) -> None:
            self.serve(route, request, response, path)

        return respond

    def _add_discovery(self) -> None:
        health = discovery.Probes(self._engine)

        def versions(req: falcon.Request, resp: falcon.Response, **kwargs: Any) -> None:
            discovery.write(resp, HTTPStatus.MULTIPLE_CHOICES, discovery.versions(self._base(req)))

        def healthy(request: falcon.Request, response: falcon.Response) -> None:
            response.content_type, response.text = 'text/plain', ''

        def described(request: falcon.Request, response: falcon.Response) -> None:
            response.content_type = 'application/json'
            response.text = openapi.text(self._base(request).removesuffix('/v1'))

        def proven(request: falcon.Request, response: falcon.Response) -> None:
            discovery.write(response, *discovery.proof(self._options.prove, request.get_param('nonce') or ''))

        for path in ('/', '/versions', '/v1', '/v1/'):
            self._falcon.add_route(path, _Resource({'GET': versions}))
        self._falcon.add_sink(versions, _OTHER_VERSION)
        self._falcon.add_route('/openapi.json', _Resource({'GET': described}))
        self._falcon.add_route(discovery.PROOF, _Resource({'GET': proven}))
        self._falcon.add_route('/healthcheck', _Resource({'GET': healthy}))
        for name, probe in (('live', health.live), ('ready', health.ready), ('progress', health.progress)):
            self._falcon.add_route(f'/health/{name}', _Resource({'GET': _probe(probe)}))


@runtime_checkable
class Closing(Protocol):
    """A body that occupies a place among the followers until it is closed."""

    def close(self) -> None:
        """Release the place."""


class _Resource:
    """Return the responders of a path in the form that Falcon expects."""

    def __init__(self, responders: dict[str, Responder]) -> None:
        if 'GET' in responders:
            # The same; the server leaves out the body.
            responders = {'HEAD': responders['GET'], **responders}
        for method, responder in responders.items():
            setattr(self, f'on_{method.lower()}', responder)
        self._allowed = ','.join(sorted(responders))

    def on_options(self, request: falcon.Request, response: falcon.Response, **path: str) -> None:
        """Answer with the methods of the path."""
        response.status = HTTPStatus.NO_CONTENT
        response.set_header('Allow', self._allowed)


def _with_part(responder: Responder, variable: str, word: str) -> Responder:
    def respond(request: falcon.Request, response: falcon.Response, **path: str) -> None:
        responder(request, response, **path, **{variable: word})

    return respond


def _probe(probe: Callable[[], tuple[HTTPStatus, Any]]) -> Responder:
    def respond(request: falcon.Request, response: falcon.Response) -> None:
        discovery.write(response, *probe())

    return respond


class _Envelope:
    """Gives every request an id and a line in the log."""

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        """Called before the request is matched with a route."""
        request.context.request_id = new_request_id()
        RequestContext(request_id=request.context.request_id)  # the current one of this thread: the log names it
        request.context.began = time.monotonic()
        request.path = paths.plain(request.path)

    def process_response(
        self, request: falcon.Request, response: falcon.Response, resource: object, succeeded: bool
    ) -> None:
        """Called when the answer is complete."""
        response.set_header(REQUEST_ID, request.context.request_id)
        response.set_header('Cache-Control', 'no-store')
        took_ms = (time.monotonic() - request.context.began) * 1000
        code = falcon.util.http_status_to_code(response.status)
        LOG.info('Answered %s %s with %d in %.0f ms', request.method, request.path, code, took_ms)


def _parameters(request: falcon.Request) -> dict[str, list[str]]:
    return {name: value if isinstance(value, list) else [value] for name, value in request.params.items()}


def _write(response: falcon.Response, expected: HTTPStatus, answer: ApiAnswer) -> None:
    status = answer.status or expected
    response.status = status
    for name, value in answer.headers.items():
        response.set_header(name, value)
    if answer.stream is not None:
        response.content_type = answer.content_type or 'application/octet-stream'
        response.stream = answer.stream
    elif answer.content_type is not None:
        response.content_type, response.text = answer.content_type, answer.document
    elif status is not HTTPStatus.NO_CONTENT:
        response.content_type, response.text = 'application/json', json.dumps(answer.document)


def _fail(request: falcon.Request, response: falcon.Response, error: Exception, params: dict[str, Any]) -> None:
    """Turn an exception into an answer for the client; log unexpected ones."""
    if isinstance(error, falcon.HTTPError):
        status = HTTPStatus(falcon.util.http_status_to_code(error.status))
        told = error.description or faults.EXPLANATIONS.get(status, error.title or '')
        if isinstance(error, falcon.HTTPRouteNotFound):
            told = f'There is nothing at {request.path}.'
        error = faults.HttpProblem(status, told, dict(error.headers or {}))
    status = faults.status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        LOG.error(
            'Request %s %s failed, the client gets status 500; report this error',
            request.method,
            request.path,
            exc_info=None if isinstance(error, errors.ConvergenceError) else error,
        )
    elif status is HTTPStatus.SERVICE_UNAVAILABLE:
        LOG.warning(
            'Request %s %s refused with status 503, the client may retry: %s', request.method, request.path, error
        )
    for name, value in faults.headers_of(error).items():
        response.set_header(name, value)
    discovery.write(response, status, faults.body_of(error, request.method, guest=is_signal_path(request.path)))
