"""The session through which Heat's clients talk to services, for one call of one resource.

All that a class makes goes through it, so what it makes carries the token of the resource from the first moment on, and
after an error it is known whether something may have been made.
"""

from __future__ import annotations

import json as codec
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
from keystoneauth1 import exceptions
from keystoneauth1.session import Session
from typing_extensions import override

from convergence.core.model import Action
from convergence.resources.contract import TransientFailure
from convergence.resources.openstack.labels import LABEL, described, uuid_of
from convergence.resources.openstack.waiting import Waiting, tell
from convergence_heat.labels import Collection, Place, collection_of
from convergence_heat.lookups import Lookups, made_up
from convergence_heat.repeating import REFUSED, answer_of, is_gone

TIMEOUT_S = 60.0
"""Seconds in which a service must answer."""

BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes of temporary failures: the same request may succeed later."""

_CREATES = 'POST'
_READS = ('GET', 'HEAD')


@dataclass(frozen=True, slots=True)
class Tidying:
    """A description of a user that has our token behind it, until the id of the object is stored."""

    collection: Collection
    object_id: str
    description: str


@dataclass
class Doings:
    """The requests of a call so far.

    :ivar made: number of objects that services have confirmed to have made.
    :ivar unsure: True if a request may have made an object without a confirmation.
    :ivar retry_after_s: seconds after which an overloaded service accepts a retry.
    :ivar in_vain: True if a request found a service down or overloaded. It need not be the last one: clients continue,
        and then take a missing answer for a wrong value.
    :ivar requests: number of requests.
    """

    made: int = 0
    unsure: bool = False
    retry_after_s: float | None = None
    in_vain: bool = False
    tidying: list[Tidying] = field(default_factory=list)
    requests: int = 0


class CallSession(Session):
    """A session of one call, with the token and the connections of the credentials' own session.

    :param opened: the session of the credentials.
    :param token: of the resource.
    :param cancelled: returns True if the call was cancelled; then no more requests are sent.
    :param lookups: cached answers to other calls.
    :param action: of the resource, for which the request is sent.
    :ivar waiting: the answer for which it waits; another thread can close it to end the call.
    """

    def __init__(
        self, opened: Session, token: str, cancelled: Callable[[], bool], lookups: Lookups, action: Action
    ) -> None:
        super().__init__(
            auth=opened.auth,
            session=opened.session,
            verify=opened.verify,
            cert=opened.cert,
            timeout=getattr(opened, 'timeout', None) or TIMEOUT_S,
        )
        self._token = token
        self._cancelled = cancelled
        self.lookups = lookups
        self._action = action
        self.doings = Doings()
        self.waiting = Waiting()
        tell(self.session)

    @override
    def request(  # type: ignore[override]
        self, url: str, method: str, json: Any = None, **options: Any
    ) -> requests.Response:
        """Send a request: with the token if it makes an object, and only if the answer is not cached."""
        if method.upper() not in (*_READS, _CREATES) or (json is None and not options.get('data')):
            return self._sent(url, method, json, options)
        if method.upper() in _READS or not options.get('authenticated', True):
            return self._sent(url, method, json, options)
        return self._creating(url, method, json, options)

    def _creating(self, url: str, method: str, json: Any, options: dict[str, Any]) -> requests.Response:
        body = json if json is not None else _parsed(options.get('data'))
        collection = collection_of(url)
        marked, told = _marked(collection, body, self._token) if isinstance(body, dict) else (body, None)
        if marked is not body:
            if json is not None:
                json = marked
            else:
                options = {**options, 'data': codec.dumps(marked)}
        self.doings.unsure = True
        answer = self._sent(url, method, json, options)
        if answer.ok:
            self.doings.made += 1
            if collection is not None and told:
                made = answer.json()
                object_id = str((made[collection.singular] if collection.singular else made)['id'])
                self.doings.tidying.append(Tidying(collection, object_id, told))
        return answer

    def _sent(self, url: str, method: str, json: Any, options: dict[str, Any]) -> requests.Response:
        if self._cancelled():
            raise TransientFailure('The call was cancelled; no more requests are sent to services.')
        question = self.lookups.question(url, method, options) if method.upper() in _READS else None
        known = self.lookups.answer(question) if question is not None else None
        if known is not None:
            return known
        self.doings.requests += 1
        # The caller retries if that is safe, and does not wait in a thread until then.
        options['connect_retries'] = options['status_code_retries'] = 0
        try:
            with self.waiting.here():
                answer = self._authorized(url, method, json, options)
        except exceptions.HttpError as error:
            self._answered(error.http_status, getattr(error.response, 'headers', None) or {})
            done = self._done_before(url, method, json, options, error.http_status)
            if done is None:
                raise
            return done
        except exceptions.ConnectFailure as error:
            self.doings.in_vain = True
            if _never_connected(error):
                self.doings.unsure = False
            raise
        self._answered(answer.status_code, answer.headers)
        done = self._done_before(url, method, json, options, answer.status_code)
        if done is not None:
            return done
        if question is not None:
            self.lookups.keep(question, answer)
        elif method.upper() not in _READS:
            self.lookups.changed(url, method, options, answer)
        return answer

    def _done_before(
        self, url: str, method: str, json: Any, options: dict[str, Any], status: int
    ) -> requests.Response | None:
        """Return the answer to a request that the service refuses because it was already served."""
        if status not in REFUSED or method.upper() in _READS:
            return None
        if is_gone(self._action, method, status):
            return made_up(url, 204, None)
        body = json if json is not None else _parsed(options.get('data'))
        kept = {name: value for name, value in options.items() if name != 'data'} | {'raise_exc': False}

        def ask(there: str) -> Any:
            found = self._sent(there, 'GET', None, kept)
            if found.status_code == 404:
                return None
            if not found.ok:
                raise TransientFailure(f'The objects at {there} cannot be listed: {found.status_code}')
            return found.json()

        answer = answer_of(self._action, method, url, body, ask)
        return None if answer is None else made_up(url, 200, answer)

    def _authorized(self, url: str, method: str, json: Any, options: dict[str, Any]) -> requests.Response:
        """Repeat a request whose token has expired: a service that refuses a token has done nothing.

        The session does so too, but not while another call, with which it shares its token, is about to renew the
        token.
        """
        try:
            answer = super().request(url, method, json=json, **options)
        except exceptions.Unauthorized:
            if not options.get('authenticated', True):
                raise
        else:
            if answer.status_code != 401 or not options.get('authenticated', True):
                return answer
        return super().request(url, method, json=json, **options)

    def _answered(self, status: int, headers: Mapping[str, str]) -> None:
        self.doings.in_vain = self.doings.in_vain or status in BUSY
        if status < 500:
            # What a service refuses it has not made.
            self.doings.unsure = False
        if status in (413, 429, 503):
            # Cinder says 0 with a quota that is used up: the request would be repeated for ever, without a pause or a
            # message.
            self.doings.retry_after_s = _seconds(headers.get('Retry-After')) or None


def _marked(collection: Collection | None, body: dict[str, Any], token: str) -> tuple[dict[str, Any], str | None]:
    """The body with the token in it, and the user's own description, if it has one."""
    if collection is None:
        return body, None
    inner = body.get(collection.singular) if collection.singular else body
    if not isinstance(inner, dict):
        return body, None
    told = None
    if collection.place is Place.DESCRIPTION:
        told = inner.get('description') or None
        inner = {**inner, 'description': described(told, token)}
    elif collection.place is Place.METADATA:
        inner = {**inner, 'metadata': {**(inner.get('metadata') or {}), LABEL: token}}
    elif collection.place is Place.ID:
        inner = {**inner, 'id': uuid_of(token)}
    return ({**body, collection.singular: inner} if collection.singular else inner), told


def _parsed(data: Any) -> Any:
    try:
        return codec.loads(data)
    except (TypeError, ValueError):
        return None


def _never_connected(error: exceptions.ConnectFailure) -> bool:
    """Return True if a request cannot have reached the service."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, requests.exceptions.ConnectTimeout):
        return True
    seen: Any = cause
    while seen is not None:
        if type(seen).__name__ in ('NewConnectionError', 'NameResolutionError', 'ConnectTimeoutError'):
            return True
        inner = getattr(seen, 'reason', None)
        seen = (
            inner
            if isinstance(inner, BaseException)
            else next((each for each in getattr(seen, 'args', ()) if isinstance(each, BaseException)), None)
        )
    return False


def _seconds(told: str | None) -> float | None:
    """Return the value of Retry-After in seconds, if it is a number."""
    try:
        return max(float(told), 0.0) if told is not None else None
    except ValueError:
        return None
