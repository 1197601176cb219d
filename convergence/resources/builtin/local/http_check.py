"""``Convergence::Local::HttpCheck``."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.local.process_table import ProcessTable
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.waiting import Clock, physical_name, still_waiting, system_clock, wait
from convergence.resources.constraints import AllowedPattern, Range
from convergence.resources.contract import Answer, Call, Done, FinalFailure, InProgress, ResourceType
from convergence.resources.schema import prop

LOOPBACK = ('127.0.0.1', 'localhost', '::1')
REQUEST_LIMIT_S = 5.0
BODY_LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True)
class HttpCheckProperties:
    """See the descriptions of the fields."""

    url: str = prop(
        update_allowed=True,
        constraints=[AllowedPattern('https?://[^\\s]+', 'it must begin with http:// or https://')],
        description='URL to request.',
    )
    status: int = prop(
        200, update_allowed=True, constraints=[Range(100, 599)], description='Status code that must be answered.'
    )
    text: str | None = prop(None, update_allowed=True, description='Text that the answer must contain.')
    timeout_s: float = prop(
        30, update_allowed=True, constraints=[Range(minimum=0)], description='Seconds after which the check fails.'
    )
    interval_s: float = prop(
        0.5, update_allowed=True, constraints=[Range(minimum=0.05)], description='Seconds between two requests.'
    )
    triggers: Json = prop(None, update_allowed=True, description='Any value; a change of it repeats the check.')

    def __post_init__(self) -> None:
        if '@' in urlsplit(self.url).netloc:
            raise ValueError('url must not contain a user or a password')
        self.asked()

    def asked(self) -> tuple[str, int]:
        """Return host and port.

        :raises ValueError: the address has none.
        """
        parts = urlsplit(self.url)
        return parts.hostname or '', parts.port or (443 if parts.scheme == 'https' else 80)

    def shown(self) -> str:
        """The address without its query, which may hold a secret."""
        return self.url.partition('?')[0]


@dataclass(frozen=True)
class HttpCheckAttributes:
    """The attributes of a check."""

    passed: bool = attr('True: a check that does not pass fails.', of=())
    status: int = attr('Status code that was answered.', of=('status',))
    url: str = attr('URL that was requested.', of=('url',))


class HttpCheck(ResourceType[HttpCheckProperties]):
    """Passes when an address answers as expected, fails when it does not do so in time."""

    Properties = HttpCheckProperties
    Attributes = HttpCheckAttributes
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0  # Every effect ends with the worker.

    def __init__(self, provider: LocalProvider, clock: Clock = system_clock) -> None:
        self._addresses = provider.check_addresses
        self._table = ProcessTable(provider.root)
        self._clock = clock

    @override
    def create(self, call: Call[HttpCheckProperties]) -> Answer:
        """Request the URL once; poll it if the answer is not right yet."""
        return self._ask(call, wait(self._clock, call.properties.timeout_s), physical_name(call))

    @override
    def update(self, call: Call[HttpCheckProperties]) -> Answer:
        """Check again."""
        return self._ask(call, wait(self._clock, call.properties.timeout_s))

    @override
    def poll(self, call: Call[HttpCheckProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Request the URL again."""
        return self._ask(call, still_waiting(self._clock, progress))

    @override
    def check(self, call: Call[HttpCheckProperties]) -> Answer:
        """Request the URL once."""
        return self._ask(call, None)

    @override
    def attribute(self, call: Call[HttpCheckProperties], name: str) -> Json:
        """Outcome and address of the check."""
        values: dict[str, Json] = {'passed': True, 'status': call.properties.status, 'url': call.properties.url}
        return values[name]

    def _ask(
        self, call: Call[HttpCheckProperties], waiting: InProgress | None, physical_id: str | None = None
    ) -> Answer:
        wanted = call.properties
        self._require_allowed(call)
        problem = _problem(wanted)
        if problem is None:
            return Done(physical_id)
        if waiting is None:
            text = f'{wanted.shown()} did not pass the check within {wanted.timeout_s} s: {problem}'
            raise FinalFailure(text, physical_id=physical_id)
        return InProgress(waiting.progress, physical_id, poll_after_s=wanted.interval_s)

    def _require_allowed(self, call: Call[HttpCheckProperties]) -> None:
        """Refuse addresses that are not allowed: an answer may hold data of another project or of the operator.

        :raises FinalFailure: the address is neither one that the operator allows nor that of a process of the project.
        """
        host, port = call.properties.asked()
        if f'{host}:{port}' in self._addresses:
            return
        if host in LOOPBACK and port in self._table.ports(call.project_id):
            return
        raise FinalFailure(
            f'{host}:{port} is not allowed; allowed: the ports of Convergence::Local::Process resources of this '
            'project that run, at 127.0.0.1, and what the operator lists in [local_provider] check_addresses'
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an answer like any other: following it would lead to hosts that are not allowed."""

    @override
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Do not follow."""


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())


def _problem(wanted: HttpCheckProperties) -> str | None:
    """Return the problem of the answer, or None."""
    try:
        with _OPENER.open(wanted.url, timeout=REQUEST_LIMIT_S) as answer:
            status, body = answer.status, answer.read(BODY_LIMIT_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            status, body = error.code, error.read(BODY_LIMIT_BYTES)
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    if status != wanted.status:
        return f'the status is {status}, not {wanted.status}'
    if wanted.text is not None and wanted.text not in body.decode(errors='replace'):
        return 'the answer does not contain the expected text'
    return None
