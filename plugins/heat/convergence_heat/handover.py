"""Before a replacement and back, as the classes of Heat do it: ports and servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from heat.common.exception import InterfaceAttachFailed, InterfaceDetachFailed
from typing_extensions import override

from convergence.core.model import Action
from convergence.resources.contract import Call, ResourceType, TransientFailure
from convergence_heat.operation import Operation


class HandsOver(ResourceType[Any]):
    """The handover of types whose class has ``prepare_for_replace``; before `convergence_heat.kind.HeatType`."""

    _bridged: type[Any]
    _at_work: Callable[..., Any]

    @override
    def release_for_replacement(self, call: Call[Any]) -> None:
        """``prepare_for_replace``. The data of the class are stored before it continues."""
        with self._giving(call) as at_work:
            at_work.one.begin_giving_way()
            at_work.one.prepare_for_replace()
            at_work.one.store_data()

    @override
    def reclaim(self, call: Call[Any]) -> None:
        """``restore_prev_rsrc``, called on a successor that was never made, because all others have released."""
        with self._giving(call) as at_work:
            successor = self._bridged(call.name, at_work.definition(call.properties), at_work.stack)
            successor.begin(replace(call, physical_id=None, data={}), Action.UPDATE.value)
            at_work.stack.before = {call.name: at_work.one}
            successor.restore_prev_rsrc()
            at_work.one.has_taken_back()
            at_work.one.store_data()

    @contextmanager
    def _giving(self, call: Call[Any]) -> Iterator[Operation]:
        # An object that is gone, and one that is in use, are what they are to a deletion.
        with self._at_work(call, Action.DELETE) as at_work:
            try:
                yield at_work
            except (InterfaceAttachFailed, InterfaceDetachFailed) as error:
                raise TransientFailure(f'{call.name}: {error}') from error
