"""``AWS::CloudFormation::WaitCondition`` and its handle: wait conditions in the words of CloudFormation.

Programs on servers (``cfn-signal``, for example) put a document with ``Status``, ``Reason``, ``Data`` and ``UniqueId``
to the address that a reference to the handle gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.wait_condition import (
    CLOUDFORMATION,
    WaitCondition,
    WaitConditionHandle,
    own_signals,
    received,
)
from convergence.resources.constraints import Range
from convergence.resources.contract import Call, FinalFailure
from convergence.resources.schema import prop
from convergence.resources.support import since

_ID = 'UniqueId'
_SHOWN = {name: theirs for theirs, name in CLOUDFORMATION.items() if theirs != _ID}


@dataclass(frozen=True)
class AwsHandleProperties:
    """None: it is always signalled at its address."""

    signal_transport: ClassVar[str] = 'CFN_SIGNAL'


class AwsWaitConditionHandle(WaitConditionHandle):
    """Takes the signals that wait conditions of CloudFormation wait for. Its reference is its signal address."""

    support = since('2014.1')
    Properties = AwsHandleProperties
    Attributes = None
    reference_of = ()

    @override
    def reference_id(self, call: Call[Any]) -> str | None:
        """Return the signal address, or the id while the address of the API is not known. Conditions accept either."""
        return self.address(call) or call.resource_id

    @override
    def signal(self, call: Call[Any], details: Json) -> str:
        """Take a signal that says everything: ``Status``, ``Reason``, ``Data`` and ``UniqueId``."""
        if not isinstance(details, Mapping) or set(details) != set(CLOUDFORMATION):
            raise FinalFailure(f'Metadata format invalid: it must be a map of {", ".join(CLOUDFORMATION)}')
        return super().signal(call, details)

    @override
    def metadata(self, call: Call[Any]) -> Json:
        """Return the signals by their ids, in the words of their senders."""
        told: dict[str, Json] = {
            signal_id: {theirs: each[name] for name, theirs in _SHOWN.items()}
            for signal_id, each in received(own_signals(call)).items()
        }
        return {**call.metadata, **told} if isinstance(call.metadata, dict) else told


class UpdateWaitConditionHandle(AwsWaitConditionHandle):
    """A handle that each update of its stack replaces, so that all programs must signal again.

    Despite its name it is a handle of CloudFormation.
    """

    renewed_by_updates = True


@dataclass(frozen=True)
class AwsConditionProperties:
    """See the descriptions of the fields."""

    handle: str = prop(name='Handle', description='The handle whose signals are waited for.')
    timeout: int = prop(name='Timeout', constraints=[Range(1, 43200)], description='Seconds to wait at most.')
    count: int = prop(
        1,
        name='Count',
        update_allowed=True,
        constraints=[Range(minimum=1)],
        description='How many signals of success it takes.',
    )


@dataclass(frozen=True)
class AwsConditionAttributes:
    """The attributes of a condition."""

    data: str = attr('The data of all signals, as JSON: a map from the ids of the signals.', name='Data', of=())


class AwsWaitCondition(WaitCondition):
    """Waits until its handle has received enough success signals."""

    support = since('2014.1')
    Properties = AwsConditionProperties
    Attributes = AwsConditionAttributes
