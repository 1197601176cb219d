"""``OS::Heat::WaitCondition`` and its handles: a stack waits until external programs have signalled that they are
ready.

Programs signal the handle, and the condition waits. Meanwhile it holds no thread: it is parked in its row, and each
signal to its handle causes a poll.

A sender needs no account: the handle has an address of its own (see `convergence.signing`), whose key is made and
deleted with the handle.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence import signing
from convergence.core.model import Action, Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.signal_urls import (
    AddressOfApi,
    grant_of,
    key_of,
    known,
    nowhere,
    signed,
    signed_if_known,
    with_token,
)
from convergence.resources.constraints import AllowedValues, Range
from convergence.resources.contract import Answer, Call, Done, FinalFailure, InProgress, ResourceType, Signal
from convergence.resources.schema import prop
from convergence.resources.support import since

SUCCESS, FAILURE = 'SUCCESS', 'FAILURE'
_EXPECTED = ('status', 'reason', 'data', 'id')
CLOUDFORMATION = {'Status': 'status', 'Reason': 'reason', 'Data': 'data', 'UniqueId': 'id'}
"""Keys of the signals of CloudFormation's programs, and their meaning."""
TOKEN, HEAT = 'TOKEN_SIGNAL', 'HEAT_SIGNAL'
_BY_ADDRESS = ('CFN_SIGNAL', 'TEMP_URL_SIGNAL')
_OWN = (*_BY_ADDRESS, HEAT, 'NO_SIGNAL', TOKEN)
_OTHERS = ('ZAQAR_SIGNAL',)
_TRANSPORTS = (*_OWN[:-1], *_OTHERS, TOKEN)

Heard = dict[str, dict[str, Json]]
"""The signals of a handle by id: status, reason and data."""


@dataclass(frozen=True)
class HandleProperties:
    """See the descriptions of the fields."""

    signal_transport: str = prop(
        TOKEN,
        constraints=[AllowedValues(_TRANSPORTS)],
        support=since('6.0.0'),
        description='How the signal comes: TOKEN_SIGNAL with a token that is good for this handle alone; CFN_SIGNAL '
        'and TEMP_URL_SIGNAL to a secret address; HEAT_SIGNAL with the token of a member.',
    )


@dataclass(frozen=True)
class HandleAttributes:
    """The attributes of a handle."""

    token: str | None = attr(
        'What to send as X-Auth-Token with TOKEN_SIGNAL. It lets this handle be signalled, and nothing else.',
        of=(),
        secret=True,
    )
    endpoint: str | None = attr('The address to which signals are posted.', of=(), secret=True)
    curl_cli: str | None = attr(
        'A command line that sends a signal, to be completed with --data-binary. With HEAT_SIGNAL it takes the token '
        'from OS_TOKEN.',
        of=(),
        secret=True,
    )
    signal: str | None = attr('How to send a signal, as JSON: alarm_url and method.', of=(), secret=True)


class WaitConditionHandle(ResourceType[HandleProperties]):
    """Takes the signals that wait conditions wait for.

    :param api: see `AddressOfApi`.
    """

    support = since('2014.2')
    Properties: ClassVar[type[Any]] = HandleProperties
    Attributes: ClassVar[type[Any] | None] = HandleAttributes
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0
    takes_signals = True

    def __init__(self, api: AddressOfApi = nowhere) -> None:
        self._api = api

    @override
    def create(self, call: Call[HandleProperties]) -> Answer:
        """Make the key of its addresses. A second create makes another key, which is harmless: the first one was not
        published.

        :raises FinalFailure: the transport of the signals is another service.
        """
        transport = call.properties.signal_transport
        if transport in _OTHERS:
            raise FinalFailure(f'signal_transport {transport} needs another service; use one of {", ".join(_OWN)}')
        has_key = transport in (TOKEN, *_BY_ADDRESS)
        return Done(call.resource_id, {signing.KEY: secrets.token_urlsafe(32)} if has_key else None)

    @override
    def signal(self, call: Call[HandleProperties], details: Json) -> str:
        """Take a signal: ``{"status": …, "reason": …, "data": …, "id": …}``, each of which may be missing.

        What CloudFormation's programs send is understood too: ``Status``, ``Reason``, ``Data``, ``UniqueId``.
        """
        checked = _checked(details)
        reason = checked['reason'] if 'reason' in checked else f'Signal {call.signal_count() + 1} received'
        return f'Signal: status:{checked.get("status", SUCCESS)} reason:{reason}'

    @override
    def metadata(self, call: Call[HandleProperties]) -> Json:
        """Return the signals by id."""
        told: dict[str, Json] = dict(received(own_signals(call)).items())
        return {**call.metadata, **told} if isinstance(call.metadata, dict) else told

    @override
    def attribute(self, call: Call[HandleProperties], name: str) -> Json:
        """Return an address or a command that sends a signal.

        :raises FinalFailure: the address of the API is not known.
        """
        transport = call.properties.signal_transport
        if transport == 'NO_SIGNAL' or (name == 'token' and transport != TOKEN):
            return None
        if name == 'token':
            return grant_of(call).signature(key_of(call))
        address = self._whole_address(call)
        method = 'PUT' if transport in _BY_ADDRESS else 'POST'
        if name == 'signal':
            return json.dumps({'alarm_url': address, 'method': method})
        endpoint = grant_of(call).endpoint(known(self._api, call)) if transport == TOKEN else address
        return _command(call, method, endpoint) if name == 'curl_cli' else endpoint

    def address(self, call: Call[Any]) -> str | None:
        """Return the signal address; None if there is none, or if the address of the API is not known."""
        return signed_if_known(self._api, call)

    def _whole_address(self, call: Call[HandleProperties]) -> str:
        is_signed = call.properties.signal_transport != HEAT
        return signed(self._api, call) if is_signed else with_token(self._api, call)


def _command(call: Call[HandleProperties], method: str, endpoint: str) -> str:
    headers = {'Content-Type': 'application/json', 'Accept': 'application/json'}
    transport = call.properties.signal_transport
    if transport not in _BY_ADDRESS:
        headers = {
            'X-Auth-Token': grant_of(call).signature(key_of(call)) if transport == TOKEN else '$OS_TOKEN',
            **headers,
        }
    given = ' '.join(f'-H "{name}: {value}"' for name, value in headers.items())
    return f"curl -i -X {method} {given} '{endpoint}'"


@dataclass(frozen=True)
class ConditionProperties:
    """See the descriptions of the fields."""

    handle: str = prop(description='The handle whose signals are waited for.')
    timeout: float = prop(constraints=[Range(1, 43200)], description='Seconds to wait at most.')
    count: int = prop(
        1, update_allowed=True, constraints=[Range(minimum=1)], description='How many signals of success it takes.'
    )


@dataclass(frozen=True)
class ConditionAttributes:
    """The attributes of a condition."""

    data: str = attr('The data of all signals, as JSON: a map from the ids of the signals.', of=())


class WaitCondition(ResourceType[ConditionProperties]):
    """Waits until its handle has received enough success signals."""

    support = since('2014.2')
    Properties: ClassVar[type[Any]] = ConditionProperties
    Attributes: ClassVar[type[Any] | None] = ConditionAttributes
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[ConditionProperties]) -> Answer:
        """Begin to wait."""
        return self._look(call, since_s=0.0)

    @override
    def update(self, call: Call[ConditionProperties]) -> Answer:
        """Begin to wait for the present number of signals; those that were received before count."""
        return self._look(call, since_s=call.age_s())

    @override
    def poll(self, call: Call[ConditionProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Return `Done` if enough signals have arrived."""
        since_s = progress.get('since_s')
        return self._look(call, since_s=float(since_s) if isinstance(since_s, int | float) else 0.0)

    @override
    def attribute(self, call: Call[ConditionProperties], name: str) -> Json:
        """The data of the signals."""
        return json.dumps({signal_id: each['data'] for signal_id, each in self._received(call).items()})

    @staticmethod
    def _received(call: Call[ConditionProperties]) -> Heard:
        wanted = signing.resource_of(call.properties.handle) or call.properties.handle
        signals = [each for of_one in call.signals().values() for each in of_one if each.resource_id == wanted]
        return received(signals)

    def _look(self, call: Call[ConditionProperties], since_s: float) -> Answer:
        told, properties = self._received(call), call.properties
        bad = [str(each['reason']) for each in told.values() if each['status'] == FAILURE]
        if bad:
            raise FinalFailure(f'WaitConditionFailure: {";".join(bad)}')
        if len(told) >= properties.count:
            return Done(call.physical_id or call.resource_id)
        left_s = properties.timeout - (call.age_s() - since_s)
        if left_s <= 0:
            reasons = ';'.join(str(each['reason']) for each in told.values())
            received_so_far = f'WaitConditionTimeout: {len(told)} of {properties.count} received'
            raise FinalFailure(f'{received_so_far} - {reasons}' if reasons else received_so_far)
        return InProgress({'since_s': since_s}, call.physical_id or call.resource_id, poll_after_s=left_s)


def own_signals(call: Call[HandleProperties]) -> list[Signal]:
    """The signals that a handle has received itself."""
    return [each for of_one in call.signals().values() for each in of_one if each.resource_id == call.resource_id]


def received(signals: list[Signal]) -> Heard:
    """Return the signals by id, oldest first. Of two signals with one id the later one counts."""
    told: Heard = {}
    for number, each in enumerate(signals, 1):
        details = _plain(each.details) if isinstance(each.details, dict) else {}
        told[str(details.get('id', len(told) + 1))] = {
            'status': details.get('status', SUCCESS),
            'reason': details.get('reason', f'Signal {number} received'),
            'data': details.get('data'),
        }
    return told


def _checked(details: Json) -> dict[str, Json]:
    """A signal, if it has the form that it must have.

    :raises FinalFailure: it has not.
    """
    if details is None:
        return {}
    if not isinstance(details, dict):
        raise FinalFailure('it must be a map, or nothing at all')
    details = _plain(details)
    unknown = sorted(set(details) - set(_EXPECTED))
    if unknown:
        raise FinalFailure(f'{", ".join(unknown)} is not known; what can be said is {", ".join(_EXPECTED)}')
    if details.get('status', SUCCESS) not in (SUCCESS, FAILURE):
        raise FinalFailure(f'the status must be {SUCCESS} or {FAILURE}')
    if isinstance(details.get('id'), dict | list):
        raise FinalFailure('the id must be a text or a number')
    return details


def _plain(details: Mapping[str, Json]) -> dict[str, Json]:
    """Return the signal in the words of this API: CloudFormation has others."""
    if not set(details) <= set(CLOUDFORMATION):
        return dict(details)
    return {CLOUDFORMATION[name]: value for name, value in details.items()}
