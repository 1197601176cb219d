"""What a client is told when a request fails: the status and the body, by the class of the error."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from convergence import errors


class HttpProblem(errors.UserError):
    """A request that is refused before any engine is asked.

    :param status: of the answer.
    :param headers: more headers of the answer.
    """

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


def bad_request(message: str) -> HttpProblem:
    """The request cannot be understood."""
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
"""The status by the nearest class of the error."""

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
    HTTPStatus.NOT_IMPLEMENTED: 'This installation does not offer what was asked for.',
    HTTPStatus.SERVICE_UNAVAILABLE: 'The server is currently unavailable. Please try again at a later time.',
}
"""What a status means, for clients that show nothing else."""

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
"""The type of a problem that the API itself has found, as the field's clients know them."""

REASONS = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 'Request Entity Too Large'}


def status_of(error: BaseException) -> HTTPStatus:
    """The status with which an error is answered."""
    if isinstance(error, HttpProblem):
        return error.status
    if isinstance(error, errors.MessagingUnavailable | errors.DatabaseUnavailable):
        return HTTPStatus.SERVICE_UNAVAILABLE
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return STATUSES[kind]
    return HTTPStatus.INTERNAL_SERVER_ERROR


RETRY_AFTER_S = 5
"""Seconds after which a request that could not be served for the moment may be repeated."""


def headers_of(error: BaseException) -> dict[str, str]:
    """The headers with which an error is answered: a client is told when to ask again."""
    headers = dict(error.headers) if isinstance(error, HttpProblem) else {}
    if status_of(error) is HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault('Retry-After', str(RETRY_AFTER_S))
    return headers


UNTOUCHED = 'The service cannot answer at the moment. Nothing was changed; repeat the request later.'
UNREAD = 'The service cannot answer at the moment; repeat the request later.'
PERHAPS_DONE = (
    'The service could not answer, and the request may have been carried out all the same. Repeat it later with the '
    'same Idempotency-Key, or look first whether it was, for example with "convergence stack show".'
)
GUEST = 'The signal could not be taken at the moment, or nobody could tell that it was. Send it again.'
"""For whoever comes with a signal address: the other ways out are not for them."""
CHANGING = 'Others kept changing the same thing at that moment. Repeat the request.'

SAFE_METHODS = frozenset({'GET', 'HEAD', 'OPTIONS'})
"""Requests that change nothing."""


def client_text(error: errors.ConvergenceError, method: str, *, guest: bool = False) -> str:
    """What a client is told of an error. Where the installation is at fault: what it can do, and nothing of the inside.

    :param method: of the request.
    :param guest: whether it came with a signal address instead of a token.
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
    # A connection that breaks during a commit, and an engine that does not answer, may have carried the request out.
    return PERHAPS_DONE if isinstance(error, errors.NoAnswer | errors.DatabaseUnavailable) else UNTOUCHED


def body_of(error: BaseException, method: str = 'GET', *, guest: bool = False) -> dict[str, Any]:
    """The body with which an error is answered. An error that nobody expected shows nothing of itself.

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
    """The body of a failure."""
    title = reason(status)
    return {
        'code': int(status),
        'title': title,
        'explanation': EXPLANATIONS.get(status, title),
        'error': dict(error),
    }


def reason(status: HTTPStatus) -> str:
    """The words that follow the number of a status."""
    return REASONS.get(status, status.phrase)


def message(status: HTTPStatus, text: str) -> dict[str, Any]:
    """The body of an answer that has nothing to show but its status."""
    return {'code': f'{int(status)} {reason(status)}', 'title': reason(status), 'message': text}
