"""The client of the REST API. No other module imports the HTTP library."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import click
import requests

from convergence import __version__
from convergence.cli.connection.targets import Target
from convergence.cli.exits import BadTemplate, CommandFailed, NotFound, Refused, Unreachable
from convergence.documents import Document
from convergence.errors import Problem
from convergence.escaping import escaped

CONNECT_S, ANSWER_S = 5.0, 120.0
STREAM_S = 30.0
"""Seconds of silence after which a stream counts as broken. The server sends a comment every 10 seconds."""
REPEATS = 3
"""Maximum number of attempts for a repeatable request."""
PAUSE_S = 0.5


class Api:
    """The API of one server for one project.

    :param answer_s: timeout of a request in seconds.
    """

    def __init__(self, target: Target, *, answer_s: float = ANSWER_S) -> None:
        self.target = target
        self._answer_s = answer_s
        self._session = requests.Session()
        self._session.headers.update(
            {'User-Agent': f'convergence/{__version__}', 'Accept': 'application/json, */*;q=0.1'}
        )
        self._is_announced = not target.elsewhere
        if target.is_local:
            self._session.trust_env = False  # Proxies and .netrc do not apply to this machine.
        if target.ca:
            self._session.verify = target.ca

    def announce(self) -> None:
        """Print the server once if it was found outside the working directory: the user has not named it."""
        if not self._is_announced:
            self._is_announced = True
            parts = urlsplit(self.target.url)
            text = f'Using the server at {parts.scheme}://{parts.netloc} with data in {self.target.elsewhere}.'
            click.echo(escaped(text), err=True)

    # --- requests ---------------------------------------------------------------------------------------------

    def get(self, path: str, *, repeats: int = REPEATS, **query: Any) -> Document:
        """Return the document at a path below the project.

        :param repeats: maximum number of attempts.
        :param query: parameters of the query; None leaves a parameter out.
        """
        return _document(self.ask('GET', path, query=query, repeats=repeats))

    def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Document:
        """Send a request with a body. Return the answer, empty without one."""
        repeats = REPEATS if headers and 'Idempotency-Key' in headers else 1
        return _document(self.ask(method, path, body=body, headers=headers, repeats=repeats))

    def begin(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> AcceptedRequest:
        """Send a request that begins an operation."""
        answer = self.ask(method, path, body=body, headers=headers)
        return AcceptedRequest(answer.headers.get('x-openstack-request-id', ''), _document(answer))

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeats: int = 1,
    ) -> requests.Response:
        """Send a request.

        :param repeats: maximum number of attempts while the server does not answer or is overloaded.
        :raises CommandFailed: the server refuses the request, or does not answer.
        """
        for attempt in range(1, repeats + 1):
            try:
                answer = self._once(method, path, query, body, headers, stream=False)
                return _accepted(answer)
            except Unreachable:
                if attempt == repeats:
                    raise
            time.sleep(PAUSE_S * attempt)
        raise AssertionError('a request is sent at least once')

    def stream(self, path: str, headers: Mapping[str, str], **query: Any) -> requests.Response:
        """Open a stream. The caller closes it."""
        return _accepted(self._once('GET', path, query, None, headers, stream=True))

    def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        *,
        stream: bool,
    ) -> requests.Response:
        if method != 'GET' and not _is_preview(path):
            self.announce()
        token = self.target.token()
        try:
            return self._session.request(
                method,
                f'{self.target.url}/{path}',
                params={name: value for name, value in (query or {}).items() if value is not None},
                json=body,
                headers={**({'X-Auth-Token': token} if token else {}), **(headers or {})},
                timeout=(min(CONNECT_S, self._answer_s), STREAM_S if stream else self._answer_s),
                allow_redirects=False,
                stream=stream,
            )
        except requests.exceptions.SSLError as error:
            raise Unreachable(f'The certificate of {self._where()} is not accepted: {_cause(error)}.') from None
        except requests.exceptions.RequestException as error:
            raise Unreachable(
                f'The server at {self._where()} does not answer: {_cause(error)}. '
                'Start a local server with "convergence serve".'
            ) from None

    def _where(self) -> str:
        parts = urlsplit(self.target.url)
        return f'{parts.scheme}://{parts.hostname}{f":{parts.port}" if parts.port else ""} (from {self.target.source})'

    # --- stacks -----------------------------------------------------------------------------------------------

    def stack(self, name: str) -> StackClient:
        """Return the stack with a name or id.

        :raises NotFound: it does not exist.
        """
        answer = self.ask('GET', f'stacks/{quote(name, safe="")}', repeats=REPEATS)
        location = answer.headers.get('Location', '')
        parts = urlsplit(location).path.rstrip('/').split('/')
        if answer.status_code != HTTPStatus.FOUND or len(parts) < 2:
            raise CommandFailed(f'The server at {self._where()} does not offer the Orchestration API v1.')
        return StackClient(self, unquote(parts[-2]), unquote(parts[-1]))

    def create(self, body: Mapping[str, Any]) -> StackClient:
        """Create a stack. The request has an idempotency key, so that repeating it creates one stack only."""
        made = self.send('POST', 'stacks', body, {'Idempotency-Key': str(uuid.uuid4())})
        return StackClient(self, str(body['stack_name']), str(made['stack']['id']))


def _is_preview(path: str) -> bool:
    """Return True if a POST or PUT to a path changes nothing."""
    return path.partition('?')[0].endswith('/preview')


@dataclass(frozen=True, slots=True)
class AcceptedRequest:
    """The answer to a request that begins an operation. The history of the stack names the request."""

    request_id: str
    document: Document


DEEPEST = 1000
"""Levels of nested stacks to list: more than an installation allows."""


@dataclass(frozen=True, slots=True)
class StackClient:
    """The requests about one stack."""

    api: Api
    name: str
    id: str
    nested_depth: int | None = None
    """Levels of nested stacks in lists of resources and events; None: only the stack itself."""

    def at(self, *parts: str) -> str:
        """Return the path of a part of the stack."""
        return '/'.join(quote(part, safe='') for part in ('stacks', self.name, self.id, *parts))

    def show(self, *, outputs: bool = False, unreadable: bool = False) -> Document:
        """Return the stack.

        :param outputs: True to include the values of outputs.
        :param unreadable: True to include the rows that the engine cannot read.
        """
        also: dict[str, Any] = {'with_unreadable': 'true'} if unreadable else {}
        return dict(self.api.get(self.at(), resolve_outputs=str(outputs).lower(), **also)['stack'])

    def show_with_tag(self) -> tuple[Document, str]:
        """Return the stack without outputs, and its entity tag, which changes with each operation."""
        answer = self.api.ask('GET', self.at(), query={'resolve_outputs': 'false'}, repeats=REPEATS)
        return dict(_document(answer)['stack']), answer.headers.get('ETag', '')

    def history(self) -> list[Document]:
        """Return the operations on the stack itself, the newest first."""
        return list(self.api.get(self.at('traversals'))['traversals'])

    def events(self, marker: str | None = None, **query: Any) -> list[Document]:
        """Return the events after a marker, the oldest first; None: all.

        :param query: further parameters of the query.
        """
        return [_located(each) for each in self._list('events', marker=marker, **query)]

    def last_event(self) -> str | None:
        """Return the id of the newest event; None without events."""
        newest = self.api.get(self.at('events'), limit=1, sort_dir='desc', sort_keys='created_at')['events']
        return str(newest[0]['id']) if newest else None

    def follow(self, marker: str | None) -> Iterator[Document | None]:
        """Yield the events after a marker, and new ones as they occur; None for a keep-alive comment.

        :raises CommandFailed: the server offers no stream, or the stream broke.
        """
        headers = {'Accept': 'text/event-stream', **({'Last-Event-ID': marker} if marker else {})}
        answer = self.api.stream(self.at('events'), headers, follow='true', nested_depth=self.nested_depth)
        try:
            for line in answer.iter_lines(chunk_size=1):
                if line.startswith(b'data:'):
                    yield _located(json.loads(line[5:]))
                elif line.startswith(b':'):
                    yield None
        except requests.exceptions.RequestException as error:
            raise Unreachable(f'The event stream broke: {_cause(error)}') from None
        finally:
            answer.close()

    def resources(self, limit: int | None = None, marker: str | None = None) -> list[Document]:
        """Return the current resources. The `path` of each joins the names that lead to it with slashes.

        :param limit: maximum number; None: all.
        :param marker: name of the last resource of the previous page.
        """
        leading, found = {self.id: ''}, []
        for each in self._list('resources', limit=limit, marker=marker):
            located = _located(each)
            path = leading.get(_linked(each, 'stack'), '') + str(each['resource_name'])
            leading[_linked(each, 'nested')] = f'{path}/'
            found.append({**located, 'path': path})
        return found

    def every_resource(self) -> list[Document]:
        """Return the resources with those of all nested stacks."""
        return replace(self, nested_depth=DEEPEST).resources()

    def graph(self) -> Document:
        """Return the dependency graph of the resources."""
        return dict(self.api.get(self.at('graph'), nested_depth=self.nested_depth)['graph'])

    def explain(self) -> Document:
        """Return the explanation of the stack's state."""
        return dict(self.api.get(self.at('explain'), nested_depth=self.nested_depth)['explanation'])

    def outputs(self) -> list[Document]:
        """Return the outputs with their values."""
        return list(self.show(outputs=True).get('outputs') or ())

    def act(self, action: str, options: Mapping[str, Any] | None = None) -> AcceptedRequest:
        """Start an action."""
        return self.api.begin('POST', self.at('actions'), {action: dict(options) if options else None})

    def _list(self, part: str, **query: Any) -> list[Document]:
        return list(self.api.get(self.at(part), nested_depth=self.nested_depth, **query)[part])


def _linked(document: Document, relation: str) -> str:
    """Return the id of the stack that a document links to; empty without a link."""
    hrefs = [str(link['href']) for link in document.get('links') or () if link['rel'] == relation]
    return unquote(hrefs[0].rstrip('/').rpartition('/')[2]) if hrefs else ''


def _located(document: Document) -> Document:
    """Add the name of the stack, which the API gives as a link only, to a resource or an event."""
    links = document.get('links') or ()
    paths = [str(link['href']).rstrip('/').split('/') for link in links if link['rel'] == 'stack']
    return document | {'stack_name': unquote(paths[0][-2])} if paths else document


# --- answers --------------------------------------------------------------------------------------------------


def _document(answer: requests.Response) -> Document:
    """Return the body of an answer; empty without one.

    :raises CommandFailed: the body is not a JSON object.
    """
    if answer.status_code == HTTPStatus.NO_CONTENT or not answer.content:
        return {}
    try:
        document = {} if (value := answer.json()) is None else value
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise CommandFailed(
            f'The answer from {answer.url} is not a JSON object. The server does not offer the Orchestration API.'
        )
    return document


def _accepted(answer: requests.Response) -> requests.Response:
    """Return the answer of a successful request.

    :raises CommandFailed: the class depends on the status.
    """
    if answer.status_code < HTTPStatus.BAD_REQUEST:
        return answer
    status, message, kind, problems = _failure(answer)
    request_id = answer.headers.get('x-openstack-request-id', '')
    if problems:
        raise BadTemplate(message, problems)
    if status == HTTPStatus.NOT_FOUND:
        raise NotFound(message)
    if status == HTTPStatus.UNAUTHORIZED:
        raise Refused(f'{message}: the token is missing or not accepted. See --token.', kind)
    if status in (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT):
        raise Unreachable(f'{message} (status {status}, request {request_id or "unknown"})')
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.NOT_IMPLEMENTED:
        if request_id and request_id in message:
            raise CommandFailed(message)  # The message names the place already.
        raise CommandFailed(f'{message} See the log of the server for {request_id or "this request"}.')
    raise Refused(message, kind)


def _failure(answer: requests.Response) -> tuple[int, str, str, list[Problem]]:
    try:
        document = answer.json()
        error = document['error']
        message = str(error.get('message') or document.get('explanation') or document.get('title'))
        problems = [Problem.from_document(each) for each in error.get('problems') or ()]
        return answer.status_code, message, str(error.get('type') or ''), problems
    except (ValueError, KeyError, TypeError, AttributeError):
        text = ' '.join(answer.text.split())[:200]
        return answer.status_code, text or f'Status {answer.status_code} {answer.reason}', '', []


def _cause(error: BaseException) -> str:
    """Return the innermost cause, without addresses of objects."""
    seen: BaseException = error
    while True:
        inner = getattr(seen, 'reason', None) or next(
            (each for each in seen.args if isinstance(each, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            break
        seen = inner
    if isinstance(seen, OSError) and seen.strerror:
        return seen.strerror
    text = str(seen)
    text = text.rpartition(': ')[2].strip("')")
    return re.sub(r'^\[Errno -?\d+\] ', '', text) or type(seen).__name__
