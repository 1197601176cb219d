"""Results of Heat's handlers as JSON and back: another worker may run the check."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from heat.engine.clients import progress

from convergence.core.model import Json
from convergence.resources.contract import FinalFailure

_MARK = '$'
"""Begins the only key of a map that stands for something which JSON does not have."""


def carried(value: Any, what: str) -> Json:
    """A value as JSON.

    :param what: is carried, for the error.
    :raises FinalFailure: it is of a kind that another process cannot make again.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [carried(each, what) for each in value]
    if isinstance(value, Mapping):
        return {f'{_MARK}map': [[carried(key, what), carried(each, what)] for key, each in value.items()]}
    for name, (kind, put, _) in _KINDS.items():
        if isinstance(value, kind):
            return {name: carried(put(value), what)}
    if type(value).__module__ == progress.__name__:
        return {f'{_MARK}progress': type(value).__name__, 'state': carried(vars(value), what)}
    raise FinalFailure(
        f'{what} is a {type(value).__module__}.{type(value).__qualname__}, which no other worker can continue with'
    )


def restored(value: Any) -> Any:
    """Return the result from the JSON of `carried`."""
    if isinstance(value, list):
        return [restored(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    if f'{_MARK}map' in value:
        return {restored(key): restored(each) for key, each in value[f'{_MARK}map']}
    if f'{_MARK}progress' in value:
        kind = getattr(progress, value[f'{_MARK}progress'])
        made = object.__new__(kind)
        vars(made).update(restored(value['state']))
        return made
    ((name, inner),) = value.items()
    _, _, get = _KINDS[name]
    return get(restored(inner))


_KINDS: Mapping[str, tuple[type[Any] | tuple[type[Any], ...], Callable[[Any], Any], Callable[[Any], Any]]] = {
    f'{_MARK}tuple': (tuple, list, tuple),
    f'{_MARK}set': ((set, frozenset), lambda value: sorted(value, key=repr), set),
    f'{_MARK}time': (datetime, datetime.isoformat, datetime.fromisoformat),
    f'{_MARK}bytes': (bytes, lambda value: base64.b64encode(value).decode(), base64.b64decode),
}
