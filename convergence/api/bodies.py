"""Reads the body of a request."""

from __future__ import annotations

import logging
from http import HTTPStatus

import falcon

from convergence import documents
from convergence.api import schemas
from convergence.api.endpoints.signals import MAX_BODY_BYTES
from convergence.api.faults import HttpProblem, bad_request
from convergence.api.routes import Access, Body, Route
from convergence.documents import AnyJson

LOG = logging.getLogger(__name__)

_JSON_TYPES = ('', 'application/json', 'text/plain')
_IGNORED_TYPES = ('application/octet-stream',)
_MISSING = 'The body of the request is missing; it must be JSON.'


def read(request: falcon.Request, route: Route, limit_bytes: int) -> AnyJson:
    """The body of a request, in the shape of its route; None without one.

    :raises HttpProblem: 400, 413 or 415, with the reason.
    """
    if route.body is Body.NONE:
        return None
    kind = (request.content_type or '').partition(';')[0].strip().lower()
    signed = route.access is Access.SIGNATURE
    limit_bytes = min(limit_bytes, MAX_BODY_BYTES) if signed else limit_bytes
    # Programs with a signal address rarely set the content type: curl declares every body a form.
    raw = b'' if kind in _IGNORED_TYPES and not signed else _bytes(request, limit_bytes)
    if raw.strip() and not signed and kind not in _JSON_TYPES and not kind.endswith('+json'):
        raise HttpProblem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f'The content type {kind} is not supported; send application/json.'
        )
    value = parse(raw) if raw.strip() else None
    if value is None:
        if route.body is Body.REQUIRED:
            raise bad_request(_MISSING)
        return None
    schemas.check(value, route.schema)
    return value


def parse(raw: bytes) -> AnyJson:
    """The value of a JSON text.

    :raises HttpProblem: 400 if it is invalid JSON, or contains characters that databases cannot store.
    """
    try:
        return documents.parse(raw.decode())
    except UnicodeDecodeError as error:
        raise bad_request(str(error)) from None
    except ValueError as error:
        raise bad_request(f'The body {error}.') from None


def _bytes(request: falcon.Request, limit_bytes: int) -> bytes:
    length = request.content_length
    if length is not None and length > limit_bytes:
        raise _too_large(limit_bytes)
    # A chunked body has no length; servers that detect its end set this key.
    endless = length is None and request.env.get('wsgi.input_terminated')
    stream = request.stream if endless else request.bounded_stream
    try:
        raw: bytes = stream.read(limit_bytes + 1) if endless else stream.read()
    except (OSError, EOFError) as error:
        # The own server passes whole requests; with others the application waits for the rest.
        LOG.debug('Refusing a request whose body does not arrive: %s', error)
        raise HttpProblem(HTTPStatus.REQUEST_TIMEOUT, 'The body of the request did not arrive in time.') from None
    if len(raw) > limit_bytes:
        raise _too_large(limit_bytes)
    if length is not None and len(raw) < length:
        raise bad_request(f'The body of the request ends after {len(raw)} of {length} bytes.')
    return raw


def _too_large(limit_bytes: int) -> HttpProblem:
    return HttpProblem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f'The body of this request may have {limit_bytes} bytes at most (at most [api] max_body_bytes).',
    )
