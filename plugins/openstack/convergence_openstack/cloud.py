"""Requests to the services of a cloud from one call of one resource: over openstacksdk, for the user of the stack."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import requests
from keystoneauth1 import exceptions
from openstack.connection import Connection
from openstack.exceptions import HttpException, raise_from_response

from convergence.concurrency import Lock
from convergence.documents import AnyJson
from convergence.resources.contract import Call, FinalFailure, TransientFailure
from convergence.resources.openstack.waiting import Waiting, tell
from convergence_openstack.lookups import KEPT_S, Recent, Sort

TIMEOUT_S = 60.0
"""Seconds in which a service must answer, if the session sets no limit."""

PAGE = 500
"""Objects in one page of a list."""

MOST_CONNECTIONS = 200
"""Sessions for which a process keeps a connection of openstacksdk."""

NAMES = Recent(KEPT_S)
"""The ids of names, by caller, kind and name."""

_MAKES = 'POST'


class Cloud:
    """Sends requests to services. Nothing is sent before the first one.

    :ivar made: number of objects that services have confirmed to have made.
    :ivar is_unsure: True if a request may have made an object without a confirmation.
    """

    def __init__(self, call: Call[Any]) -> None:
        self._call = call
        self._connection: Any = None
        self._waiting = Waiting()
        self._scope = ''
        self.made = 0
        self.is_unsure = False

    def ask(
        self,
        service: str,
        method: str,
        path: str,
        body: AnyJson = None,
        *,
        params: Mapping[str, Any] | None = None,
        makes: bool = False,
        **options: Any,
    ) -> AnyJson:
        """Send a request and return the answer as JSON, None if it has no body.

        :param service: its type in the catalog of Keystone.
        :param path: behind the endpoint, which contains the version.
        :param makes: True if the request makes an object, as each POST does.
        :param options: ``microversion``, ``headers``.
        :raises HttpException: the service refuses.
        :raises TransientFailure: the call was cancelled.
        """
        if self._call.cancelled():
            raise TransientFailure('The call was cancelled; no more requests are sent to services.')
        if body is not None:
            options['json'] = body
        if params:
            options['params'] = dict(params)
        makes = makes or method == _MAKES
        self.is_unsure = self.is_unsure or makes
        try:
            answer = self._sent(service, method, path, options)
            raise_from_response(answer)
        except HttpException as error:
            if makes and (error.status_code or 500) < 500:
                self.is_unsure = False
            raise
        except exceptions.ConnectFailure as error:
            if makes and _never_connected(error):
                self.is_unsure = False
            raise
        if makes:
            self.is_unsure = False
            self.made += 1
        return answer.json() if answer.content else None

    def there(self, service: str, path: str, **options: Any) -> AnyJson:
        """Return the object at a path; None if there is none."""
        try:
            return self.ask(service, 'GET', path, **options)
        except HttpException as error:
            if error.status_code == 404:
                return None
            raise

    def remove(self, service: str, path: str) -> None:
        """Remove the object at a path. A missing object is no error."""
        try:
            self.ask(service, 'DELETE', path)
        except HttpException as error:
            if error.status_code != 404:
                raise

    def listed(self, service: str, path: str, plural: str, **params: Any) -> Iterator[Mapping[str, Any]]:
        """The objects of a list, page by page."""
        marker: dict[str, str] = {}
        while True:
            answer = self.ask(service, 'GET', path, params={'limit': PAGE, **params, **marker})
            page = answer[plural]
            yield from page
            links = answer.get(f'{plural}_links') or ()
            if not page or not (answer.get('next') or any(each.get('rel') == 'next' for each in links)):
                return
            marker = {'marker': page[-1]['id']}

    def id_of(self, sort: Sort, value: str) -> str:
        """The id of an object that a template calls by its name or its id.

        :raises FinalFailure: there is none of that name, or more than one.
        """
        if sort.is_id(value):
            return value
        self._connected()
        key = (self._scope, sort, value)
        known: str | None = NAMES.get(key)
        if known is None:
            known = self._looked_up(sort, value)
            NAMES.put(key, known)
        return known

    # ------------------------------------------------------------------------------------------------------------------

    def _looked_up(self, sort: Sort, value: str) -> str:
        found = self.listed(sort.service, sort.path, sort.plural, **({'name': value} if sort.filters else {}))
        named = {str(each['id']) for each in found if value in (each.get('name'), each['id'])}
        if not named and sort.filters:
            named = {value} if self.there(sort.service, f'{sort.path}/{value}') is not None else named
        if not named:
            raise FinalFailure(f'there is no {sort.noun} {value} that the user of the stack can see')
        if len(named) > 1:
            raise FinalFailure(f'there are {len(named)} objects that are a {sort.noun} {value}; say the id of one')
        return named.pop()

    def _sent(self, service: str, method: str, path: str, options: dict[str, Any]) -> requests.Response:
        proxy = getattr(self._connected(), service.replace('-', '_'))
        limit_s = getattr(self._connection.session, 'timeout', None) or TIMEOUT_S
        more: dict[str, Any] = {'connect_retries': 0, 'status_code_retries': 0, 'timeout': limit_s}
        with self._waiting.here():
            answer: requests.Response = proxy.request(path, method, **more, **options)
            if answer.status_code == 401:
                # Another call with the same token may have been renewing it. A service that refuses a token has done
                # nothing.
                answer = proxy.request(path, method, **more, **options)
        return answer

    def _connected(self) -> Any:
        if self._connection is None:
            credentials = self._call.credentials()
            self._scope = f'{credentials.project_id}:{credentials.user_id}:{self._call.stack_id}'
            session: Any = credentials.session()
            tell(session.session)
            self._call.on_cancel(self._waiting.close)
            self._connection = _CONNECTIONS.of(session, credentials.region, credentials.interface)
        return self._connection


class _Connections:
    """The connections of openstacksdk that this process has, one for each session."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: OrderedDict[tuple[int, str, str], Any] = OrderedDict()

    def of(self, session: Any, region: str, interface: str) -> Any:
        """Return the connection of a session. It lives as long as the session and keeps it alive, so no other session
        gets its id.
        """
        key = (id(session), region, interface)
        with self._lock:
            found = self._of.get(key)
            if found is None:
                found = self._of[key] = Connection(
                    session=session, region_name=region or None, interface=interface, app_name='convergence'
                )
            self._of.move_to_end(key)
            while len(self._of) > MOST_CONNECTIONS:
                self._of.popitem(last=False)
            return found


_CONNECTIONS = _Connections()


def _never_connected(error: exceptions.ConnectFailure) -> bool:
    """Return True if a request cannot have reached the service."""
    seen: Any = error.__cause__ or error.__context__
    for _ in range(10):
        if seen is None or type(seen).__name__ in (
            'ConnectTimeout', 'NewConnectionError', 'NameResolutionError', 'ConnectTimeoutError',
        ):  # fmt: skip
            return seen is not None
        inner = getattr(seen, 'reason', None)
        within = (each for each in getattr(seen, 'args', ()) if isinstance(each, BaseException))
        seen = inner if isinstance(inner, BaseException) else next(within, None)
    return False
