"""Public answers: the version of the API, the identity of the server, and the health of the installation."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import falcon
from oslo_context.context import RequestContext

from convergence import errors
from convergence.api.calls import Engine
from convergence.api.faults import bad_request
from convergence.api.identity import new_request_id
from convergence.documents import AnyJson

LOG = logging.getLogger(__name__)

VERSION = 'v1.0'
PROOF = '/proof'
"""Path at which a server proves its identity."""
NONCE = '[0-9a-f]{32,128}'
_NONCE = re.compile(NONCE, re.ASCII)


def versions(base: str) -> dict[str, Any]:
    """Return the document that lists the versions.

    :param base: URL of the API with its version.
    """
    return {'versions': [{'id': VERSION, 'status': 'CURRENT', 'links': [{'rel': 'self', 'href': f'{base}/'}]}]}


def proof(prove: Callable[[str], str] | None, nonce: str) -> tuple[HTTPStatus, Mapping[str, Any]]:
    """Prove the identity of the server. A client sends no token before it has seen the proof.

    The answer reveals nothing to a caller without the secret of this start.

    :param prove: returns the proof for a nonce; None: the server proves nothing.
    :raises HttpProblem: 400 for an invalid nonce.
    :raises falcon.HTTPRouteNotFound: the server proves nothing.
    """
    if prove is None:
        raise falcon.HTTPRouteNotFound
    if _NONCE.fullmatch(nonce) is None:
        raise bad_request('nonce must have 32 to 128 lower-case hexadecimal digits.')
    return HTTPStatus.OK, {'proof': prove(nonce)}


class Probes:
    """Answers probes. They need no token, so an answer only names the part that is not ready; the log has details."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def live(self) -> tuple[HTTPStatus, Mapping[str, Any]]:
        """Answer that this process serves requests."""
        return HTTPStatus.OK, {'status': 'live'}

    def ready(self) -> tuple[HTTPStatus, Mapping[str, Any]]:
        """Answer 200 if an engine answers."""
        try:
            revision = self._ask('get_revision')
        except errors.ConvergenceError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, {'status': 'not ready', 'reason': _told('/health/ready', error)}
        return HTTPStatus.OK, {'status': 'ready', 'engine': revision}

    def progress(self) -> tuple[HTTPStatus, Mapping[str, Any]]:
        """Answer 200 if all operations make progress: workers run, and no ready node waits too long."""
        try:
            found = self._ask('get_progress')
        except errors.ConvergenceError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, {'status': 'unknown', 'reason': _told('/health/progress', error)}
        status = HTTPStatus.OK if found['status'] == 'ok' else HTTPStatus.SERVICE_UNAVAILABLE
        return status, found

    def _ask(self, operation: str) -> AnyJson:
        return self._engine.call(RequestContext(request_id=new_request_id(), overwrite=False), operation)


NOT_READY: Mapping[type[errors.ConvergenceError], str] = {
    errors.NoAnswer: 'No engine has answered in time.',
    errors.MessagingUnavailable: 'No engine can be reached.',
    errors.DatabaseUnavailable: 'The database is out of reach of the engine.',
    errors.ConvergenceError: 'The engine could not tell.',
}
"""Public text of a probe by the nearest class of the error."""


def _told(path: str, error: errors.ConvergenceError) -> str:
    """Log an error and return its public text, without internal details."""
    LOG.warning('Installation not ready, probe %s answers 503 until that is mended: %s', path, error)
    return next(NOT_READY[kind] for kind in type(error).__mro__ if kind in NOT_READY)


def write(response: falcon.Response, status: HTTPStatus, document: Any) -> None:
    """Write a document as the answer."""
    response.status = status
    response.content_type = 'application/json'
    response.text = json.dumps(document)
