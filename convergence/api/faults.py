"""Answers to failed requests: status and body by the class of the error."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from convergence import errors


class HttpProblem(errors.UserError):
    """The API refuses a request without calling an engine.

    :param status: of the answer.
    :param headers: more headers of the answer.
    """

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def bad_request(message: str) -> HttpProblem:
    """Return the refusal of a malformed request."""
    return HttpProblem(HTTPStatus.BAD_REQUEST, message)


STATUSES: Mapping[type[errors.ConvergenceError], HTTPStatus] = {
    errors.EntityNotFound: HTTPStatus.NOT_FOUND,
    errors.ResourceNotAvailable: HTTPStatus.NOT_FOUND,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.ActionInProgress: HTTPStatus.CONFLICT,
    errors.StackExists: HTTPStatus.CONFLICT,
    errors.NotOffered: HTTPStatus.NOT_IMPLEMENTED,
    errors.PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    errors.RequestKeyReused: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.UserError: HTTPStatus.BAD_REQUEST,
    errors.RetryLater: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Conflict: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ConvergenceError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""Status by the nearest class of the error."""

EXPLANATIONS: Mapping[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: (
        'The server could not comply with the request since it is either malformed or otherwise incorrect.'
    ),
    HTTPStatus.UNAUTHORIZED: 'The request needs a token that the identity service accepts.',
    HTTPStatus.FORBIDDEN: 'Access was denied to this resource.',
    HTTPStatus.NOT_FOUND: 'The resource could not be found.',
    HTTPStatus.METHOD_NOT_ALLOWED: 'The method specified is not allowed for this resource.',
    HTTPStatus.CONFLICT: 'There was a conflict when trying to complete your request.',
    HTTPStatus.PRECONDITION_FAILED: 'The stack is not in the state that the request makes a condition.',
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 'The body of the request is too large.',
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 'The body of the request must be JSON.',
    HTTPStatus.UNPROCESSABLE_ENTITY: 'The request contradicts one that was sent before.',
    HTTPStatus.INTERNAL_SERVER_ERROR: (
        'The server has either erred or is incapable of performing the requested operation.'
    ),
    HTTPStatus.NOT_IMPLEMENTED: 'This installation does not offer that.',
    HTTPStatus.SERVICE_UNAVAILABLE: 'The server is currently unavailable. Please try again at a later time.',
}
"""Explanation of a status, for clients that show nothing else."""

_HTTP_TYPES: Mapping[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: 'HTTPBadRequest',
    HTTPStatus.UNAUTHORIZED: 'HTTPUnauthorized',
    HTTPStatus.FORBIDDEN: 'HTTPForbidden',
    HTTPStatus.NOT_FOUND: 'HTTPNotFound',
    HTTPStatus.METHOD_NOT_ALLOWED: 'HTTPMethodNotAllowed',
    HTTPStatus.PRECONDITION_FAILED: 'HTTPPreconditionFailed',
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 'HTTPRequestEntityTooLarge',
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 'HTTPUnsupportedMediaType',
    HTTPStatus.UNPROCESSABLE_ENTITY: 'HTTPUnprocessableEntity',
    HTTPStatus.SERVICE_UNAVAILABLE: 'HTTPServiceUnavailable',
}
"""Type of an error that the API itself raises, as clients of OpenStack know it."""

REASONS = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 'Request Entity Too Large'}


def status_of(error: BaseException) -> HTTPStatus:
    """Return the status of the answer to an error."""
    if isinstance(error, HttpProblem):
        return error.status
    if isinstance(error, errors.MessagingUnavailable | errors.DatabaseUnavailable):
        return HTTPStatus.SERVICE_UNAVAILABLE
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return STATUSES[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


RETRY_AFTER_S = 5
"""Seconds after which a client may repeat a request that failed temporarily."""


def headers_of(error: BaseException) -> dict[str, str]:
    """Return the headers of the answer to an error; Retry-After if the client may repeat the request."""
    headers = dict(error.headers) if isinstance(error, HttpProblem) else {}
    if status_of(error) is HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault('Retry-After', str(RETRY_AFTER_S))
    return headers


UNTOUCHED = 'The service cannot answer at the moment. Nothing was changed; repeat the request later.'
UNREAD = 'The service cannot answer at the moment; repeat the request later.'
PERHAPS_DONE = (
    'The service did not answer, and the request may have been carried out. Repeat it later with the '
    'same Idempotency-Key, or check first if it was, for example with "convergence stack show".'
)
GUEST = 'The signal was not stored, or its confirmation was lost. Send it again.'
"""Text for the holder of a signal address, who has no other remedy."""
CHANGING = 'Concurrent requests kept changing the same object. Repeat the request.'

SAFE_METHODS = frozenset({'GET', 'HEAD', 'OPTIONS'})
"""Methods that change nothing."""


def client_text(error: errors.ConvergenceError, method: str, *, guest: bool = False) -> str:
    """Return the text of an error for the client. A fault of the installation shows a remedy and no internal details.

    :param method: of the request.
    :param guest: True for a request with a signal address instead of a token.
    """
    if status_of(error) is not HTTPStatus.SERVICE_UNAVAILABLE or isinstance(error, HttpProblem):
        return str(error)
    if isinstance(error, errors.Conflict):
        return CHANGING
    if not isinstance(error, errors.MessagingUnavailable | errors.DatabaseUnavailable):
        return str(error)
    if guest:
        return GUEST
    if method in SAFE_METHODS:
        return UNREAD
    # The request may have been carried out: a connection broke during a commit, or an engine did not answer.
    return PERHAPS_DONE if isinstance(error, errors.NoAnswer | errors.DatabaseUnavailable) else UNTOUCHED


def body_of(error: BaseException, method: str = 'GET', *, guest: bool = False) -> dict[str, Any]:
    """Return the body of the answer to an error. An unexpected error shows no details.

    :param method: of the request.
    :param guest: as for `client_text`.
    """
    status = status_of(error)
    kind = _HTTP_TYPES.get(status, 'HTTPError') if isinstance(error, HttpProblem) else type(error).__name__
    described: dict[str, Any] = {'type': kind, 'traceback': None}
    if isinstance(error, errors.ConvergenceError):
        described['message'] = client_text(error, method, guest=guest)
        if isinstance(error, errors.StackValidationFailed):
            described['problems'] = error.kwargs['documents']
    else:
        described['type'] = 'InternalError'
    return document(status, described)


def document(status: HTTPStatus, error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a failure."""
    title = reason(status)
    return {
        'code': int(status),
        'title': title,
        'explanation': EXPLANATIONS.get(status, title),
        'error': dict(error),
    }


def reason(status: HTTPStatus) -> str:
    """Return the standard phrase of a status."""
    return REASONS.get(status, status.phrase)


def message(status: HTTPStatus, text: str) -> dict[str, Any]:
    """Return a body that only explains a status."""
    return {'code': f'{int(status)} {reason(status)}', 'title': reason(status), 'message': text}
