"""Converts a request to WSGI, and an answer to messages of the connection."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from convergence.api.serving.proxies import FORWARDED, Origin

LOG = logging.getLogger(__name__)

WsgiApplication = Callable[..., Iterable[bytes]]

_SLASH = re.compile(rb'(?i:%2f)')
_ONLY_ENVIRON = ('content-type', 'content-length', 'transfer-encoding', 'connection', 'expect', 'te', 'trailer')
"""Headers that WSGI passes in another way, or that concern only the connection."""


class Malformed(ValueError):
    """The target or the headers of a request are invalid; the text gives the reason."""


class ClientGone(Exception):
    """The client has left and receives no answer."""


@dataclass(frozen=True, slots=True)
class Head:
    """The header of a request.

    :param target: raw, without decoding.
    :param headers: by lower-case name; several of one name are joined by commas.
    """

    method: str
    target: str
    version: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, method: bytes, target: bytes, version: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Head:
        """Parse a request.

        :raises Malformed: it is ambiguous or invalid.
        """
        joined: dict[str, str] = {}
        for raw_name, raw_value in headers:
            name, value = raw_name.decode('latin-1'), raw_value.decode('latin-1')
            if '_' in name:
                continue  # WSGI could not distinguish it from the name with a hyphen
            joined[name] = f'{joined[name]},{value}' if name in joined else value
        if 'content-length' in joined and 'transfer-encoding' in joined:
            raise Malformed('The request has both a Content-Length and a Transfer-Encoding.')
        words = target.decode('latin-1')
        if words.lower().startswith(('http://', 'https://')):
            host, slash, path = words.partition('//')[2].partition('/')
            if not host or '?' in host:
                raise Malformed('The target of the request is no URL.')
            joined['host'], words = host, f'/{path}' if slash else '/'
        if not words.startswith('/') and not (words == '*' and method == b'OPTIONS'):
            raise Malformed('The target of the request must begin with a slash.')
        if '#' in words:
            raise Malformed('The target of the request has a fragment.')
        return cls(method.decode('latin-1'), words, version.decode('latin-1'), joined)

    @property
    def path(self) -> str:
        """Return the path in the form of WSGI: characters are bytes. An encoded slash (%2F) stays encoded."""
        raw = self.target.partition('?')[0].encode('latin-1')
        return b'%2F'.join(unquote_to_bytes(part) for part in _SLASH.split(raw)).decode('latin-1')

    @property
    def query(self) -> str:
        """Return the query, without the question mark."""
        return self.target.partition('?')[2]

    @property
    def content_length(self) -> int | None:
        """Return the announced size of the body; None without one."""
        text = self.headers.get('content-length')
        return int(text) if text is not None else None


def environ_of(head: Head, body: bytes, origin: Origin, server: tuple[str, int]) -> dict[str, Any]:
    """Return the WSGI environment of a request.

    :param origin: the client; headers of untrusted proxies about it are dropped.
    :param server: address and port that received the request.
    """
    environ: dict[str, Any] = {
        'REQUEST_METHOD': head.method,
        'SCRIPT_NAME': '',
        'PATH_INFO': head.path,
        'QUERY_STRING': head.query,
        'RAW_URI': head.target,
        'SERVER_NAME': server[0],
        'SERVER_PORT': str(server[1]),
        'SERVER_PROTOCOL': f'HTTP/{head.version}',
        'REMOTE_ADDR': origin.address,
        'CONTENT_LENGTH': str(len(body)) if body or 'content-length' in head.headers else '',
        'wsgi.version': (1, 0),
        'wsgi.url_scheme': origin.scheme,
        'wsgi.input': io.BytesIO(body),
        'wsgi.input_terminated': True,
        'wsgi.errors': sys.stderr,
        'wsgi.multithread': True,
        'wsgi.multiprocess': False,
        'wsgi.run_once': False,
    }
    if 'content-type' in head.headers:
        environ['CONTENT_TYPE'] = head.headers['content-type']
    for name, value in head.headers.items():
        if name not in _ONLY_ENVIRON and name not in FORWARDED:
            environ[f'HTTP_{name.upper().replace("-", "_")}'] = value
    return environ


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The head of an answer."""

    status: int
    reason: str
    headers: Sequence[tuple[str, str]]


class Outlet(Protocol):
    """Receives the answer to one request from the thread of the application."""

    def whole(self, head: AnswerHead, body: bytes) -> None:
        """Send an answer. Returns at once; a slow client does not block it."""

    def begin(self, head: AnswerHead) -> None:
        """Send the head of an answer in pieces."""

    def piece(self, data: bytes) -> None:
        """Send a piece, and wait until the client has received it. An empty piece only checks for the client.

        :raises ClientGone: the client has left.
        """

    def end(self) -> None:
        """End the pieces."""

    def fail(self) -> None:
        """Abandon an incomplete answer: close the connection, or send an error if nothing was sent."""


def run(application: WsgiApplication, environ: dict[str, Any], outlet: Outlet) -> None:
    """Call the application for one request, in its own thread."""
    started: list[AnswerHead] = []

    def start_response(status: str, headers: list[tuple[str, str]], error: Any = None) -> Callable[[bytes], object]:
        code, _, reason = status.partition(' ')
        started[:] = [AnswerHead(int(code), reason or HTTPStatus(int(code)).phrase, tuple(headers))]
        return _no_writing

    pieces: Iterable[bytes] = ()
    try:
        pieces = application(environ, start_response)
        if isinstance(pieces, list | tuple):
            outlet.whole(started[0], b''.join(pieces))
            return
        begun = False
        for piece in pieces:
            if not begun:
                begun = True
                outlet.begin(started[0])
            outlet.piece(piece)
        if not begun:
            outlet.whole(started[0], b'')
        else:
            outlet.end()
    except ClientGone:
        pass
    except Exception:
        LOG.exception(
            'Answering a request failed, the client gets status 500 or an incomplete answer; report this error'
        )
        outlet.fail()
    finally:
        with suppress(Exception):
            getattr(pieces, 'close', lambda: None)()


def _no_writing(data: bytes) -> object:
    raise NotImplementedError('Applications return what they have to say; write() is not served.')
