"""Reads the body of a request."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any, NoReturn

import falcon

from convergence.api import schemas
from convergence.api.faults import HttpProblem, bad_request
from convergence.api.routes import Body, Route

_JSON_TYPES = ('', 'application/json', 'text/plain')
_IGNORED_TYPES = ('application/octet-stream',)
_NUL = re.compile(r'(?<!\\)(?:\\\\)*\\u0000')
_MISSING = 'The body of the request is missing; it must be JSON.'


def read(request: falcon.Request, route: Route, limit_bytes: int) -> Any:
    """The body of a request, in the shape that its route wants; None where there is none.

    :raises HttpProblem: 400, 413 or 415; the text says what is wrong.
    """
    if route.body is Body.NONE:
        return None
    kind = (request.content_type or '').partition(';')[0].strip().lower()
    raw = b'' if kind in _IGNORED_TYPES else _bytes(request, limit_bytes)
    if raw.strip() and kind not in _JSON_TYPES and not kind.endswith('+json'):
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


def parse(raw: bytes) -> Any:
    """The value of a JSON text.

    :raises HttpProblem: 400, it is none, or holds what cannot be kept.
    """
    try:
        text = raw.decode()
        value = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise bad_request('The body is nested too deeply.') from None
    except UnicodeEncodeError:
        raise bad_request('The body has half a character (a lone surrogate).') from None
    except ValueError as error:
        raise bad_request(str(error)) from None
    if '\\u0000' in text and _NUL.search(text):
        raise bad_request('The body has a NUL character.')
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f'{word} is not JSON')


def _bytes(request: falcon.Request, limit_bytes: int) -> bytes:
    length = request.content_length
    if length is not None and length > limit_bytes:
        raise _too_large(limit_bytes)
    # A body in pieces has no length; servers that can end it by themselves say so.
    endless = length is None and request.env.get('wsgi.input_terminated')
    stream = request.stream if endless else request.bounded_stream
    raw: bytes = stream.read(limit_bytes + 1) if endless else stream.read()
    if len(raw) > limit_bytes:
        raise _too_large(limit_bytes)
    return raw


def _too_large(limit_bytes: int) -> HttpProblem:
    return HttpProblem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f'The body of a request may have {limit_bytes} bytes at most ([api] max_body_bytes).',
    )
