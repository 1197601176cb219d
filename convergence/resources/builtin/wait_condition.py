"""``OS::Heat::WaitCondition`` and its handles: a stack waits until programs outside have said that they are ready.

The handle is what is signalled, and the condition waits. While it does it holds no thread: it is parked in its row, and
each signal to its handle has it looked at again.
"""


from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from convergence.core.model import Action, Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedValues, Range
from convergence.resources.contract import Answer, Call, Done, FinalFailure, InProgress, ResourceType, Signal
from convergence.resources.schema import prop

SUCCESS, FAILURE = 'SUCCESS', 'FAILURE'
_EXPECTED = ('status', 'reason', 'data', 'id')
_OWN = ('TOKEN_SIGNAL', 'HEAT_SIGNAL', 'NO_SIGNAL')
_OTHERS = ('CFN_SIGNAL', 'TEMP_URL_SIGNAL', 'ZAQAR_SIGNAL')
API = 'http://127.0.0.1:8004/v1'

Heard = dict[str, dict[str, Json]]
"""What a handle was told, by the id of the signal: status, reason and data."""


@dataclass(frozen=True)
class HandleProperties:
    """See the descriptions of the fields."""

    signal_transport: str = prop(
        'TOKEN_SIGNAL',
        constraints=[AllowedValues((*_OWN, *_OTHERS))],
        description='How the signal comes: TOKEN_SIGNAL and HEAT_SIGNAL through the Orchestration API.',
    )


@dataclass(frozen=True)
class HandleAttributes:
    """What can be asked of a handle."""

    token: str | None = attr('Always empty: whoever sends a signal brings a token of its own.')
    endpoint: str | None = attr('The address to which signals are posted.')
    curl_cli: str | None = attr(
        'A command line that sends a signal, to be completed with --data-binary; it takes the token from OS_TOKEN.'
    )
    signal: str | None = attr('How to send a signal, as JSON.')


class WaitConditionHandle(ResourceType[HandleProperties]):
    """Takes the signals that wait conditions wait for.

    :param api: address of the Orchestration API, as the senders of signals reach it.
    """

    Properties = HandleProperties
    Attributes = HandleAttributes
    token_enforced = True  # Nothing real is made.
    takes_signals = True

    def __init__(self, api: str = API) -> None:
        self._api = api.rstrip('/')

    def create(self, call: Call[HandleProperties]) -> Answer:
        """Nothing to do but to be there.

        :raises FinalFailure: the signals were to come through another service.
        """
        transport = call.properties.signal_transport
        if transport in _OTHERS:
            raise FinalFailure(f'signal_transport {transport} needs another service; use one of {", ".join(_OWN)}')
        return Done(call.resource_id)

    def reference_id(self, call: Call[HandleProperties]) -> str | None:
        """What wait conditions know their handle by. A new handle, with no signals yet, has another one."""
        return call.resource_id

    def signal(self, call: Call[HandleProperties], details: Json) -> str:
        """Take a signal: ``{"status": …, "reason": …, "data": …, "id": …}``, each of which may be missing."""
        told = received([*own_signals(call), Signal(_checked(details), 0.0, call.resource_id)])
        latest = str(_checked(details).get('id', len(told)))
        return f'Signal: status:{told[latest]["status"]} reason:{told[latest]["reason"]}'

    def metadata(self, call: Call[HandleProperties]) -> Json:
        """What was told, by the ids of the signals."""
        told: dict[str, Json] = dict(received(own_signals(call)).items())
        return {**call.metadata, **told} if isinstance(call.metadata, dict) else told

    def attribute(self, call: Call[HandleProperties], name: str) -> Json:
        """How to send a signal."""
        if call.properties.signal_transport == 'NO_SIGNAL' or name == 'token':
            return None
        path = '/'.join(quote(part, safe='') for part in (call.stack_name, call.stack_id, 'resources', call.name))
        endpoint = f'{self._api}/{quote(call.project_id, safe="")}/stacks/{path}/signal'
        headers = {'X-Auth-Token': '$OS_TOKEN', 'Content-Type': 'application/json', 'Accept': 'application/json'}
        if name == 'curl_cli':
            given = ' '.join(f'-H "{key}: {value}"' for key, value in headers.items())
            return f'curl -i -X POST {given} {endpoint}'
        if name == 'signal':
            return json.dumps({'alarm_url': endpoint, 'method': 'POST'})
        return endpoint


class UpdateWaitConditionHandle(WaitConditionHandle):
    """A handle that each update of its stack makes anew, so that everybody has to signal once more."""

    renewed_by_updates = True


@dataclass(frozen=True)
class ConditionProperties:
    """See the descriptions of the fields."""

    handle: str = prop(description='The handle whose signals are waited for.')
    timeout: float = prop(
        constraints=[Range(1, 43200)], description='Seconds to wait at most.'
    )
    count: int = prop(
        1, update_allowed=True, constraints=[Range(minimum=1)], description='How many signals of success it takes.'
    )


@dataclass(frozen=True)
class ConditionAttributes:
    """What can be asked of a condition."""

    data: str = attr('The data of all signals, as JSON: a map from the ids of the signals.')


class WaitCondition(ResourceType[ConditionProperties]):
    """Waits until its handle has been told of success often enough."""

    Properties = ConditionProperties
    Attributes = ConditionAttributes
    token_enforced = True  # Nothing real is made.

    def create(self, call: Call[ConditionProperties]) -> Answer:
        """Begin to wait."""
        return self._look(call, since_s=0.0)

    def update(self, call: Call[ConditionProperties]) -> Answer:
        """Begin to wait for as many as are wanted now; those that were received before count."""
        return self._look(call, since_s=call.age_s())

    def poll(self, call: Call[ConditionProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Look whether enough has been said."""
        since_s = progress.get('since_s')
        return self._look(call, since_s=float(since_s) if isinstance(since_s, int | float) else 0.0)

    def attribute(self, call: Call[ConditionProperties], name: str) -> Json:
        """The data of the signals."""
        return json.dumps({signal_id: each['data'] for signal_id, each in self._received(call).items()})

    @staticmethod
    def _received(call: Call[ConditionProperties]) -> Heard:
        wanted = call.properties.handle
        signals = [
            each for of_one in call.signals().values() for each in of_one if each.resource_id == wanted
        ]
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
            raise FinalFailure(f'WaitConditionTimeout: {len(told)} of {properties.count} received')
        return InProgress({'since_s': since_s}, call.physical_id or call.resource_id, poll_after_s=left_s)


def handles(api: str = API) -> dict[str, ResourceType[Any]]:
    """The types of handles, by name, that know where signals are to be sent.

    :param api: address of the Orchestration API, as the senders of signals reach it.
    """
    return {
        'OS::Heat::WaitConditionHandle': WaitConditionHandle(api),
        'OS::Heat::UpdateWaitConditionHandle': UpdateWaitConditionHandle(api),
    }


def own_signals(call: Call[HandleProperties]) -> list[Signal]:
    """The signals that a handle has received itself."""
    return [each for of_one in call.signals().values() for each in of_one if each.resource_id == call.resource_id]


def received(signals: list[Signal]) -> Heard:
    """What signals say, the oldest first. One that comes twice under the same id counts once, as it came last."""
    told: Heard = {}
    for number, each in enumerate(signals, 1):
        details = each.details if isinstance(each.details, dict) else {}
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
    unknown = sorted(set(details) - set(_EXPECTED))
    if unknown:
        raise FinalFailure(f'{", ".join(unknown)} is not known; what can be said is {", ".join(_EXPECTED)}')
    if details.get('status', SUCCESS) not in (SUCCESS, FAILURE):
        raise FinalFailure(f'the status must be {SUCCESS} or {FAILURE}')
    if isinstance(details.get('id'), dict | list):
        raise FinalFailure('the id must be a text or a number')
    return details
