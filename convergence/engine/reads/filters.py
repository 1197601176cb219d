"""Reads the filters, markers and sort orders of a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.rows import Stack
from convergence.db.repositories.reads.inspection import EVENT_SORT_KEYS, EventPage, StateFilter
from convergence.db.repositories.reads.stacks import STACK_SORT_KEYS, StackFilter, TagFilter
from convergence.engine.reads.formats import STACK_TYPE
from convergence.resources.reading import did_you_mean
from convergence.rpc.engine_api import EventQuery, StackQuery
from convergence.template.functions.base import type_name

_STACK_COLUMNS = {
    'id': 'id',
    'name': 'name',
    'stack_name': 'name',
    'stack_status_reason': 'status_reason',
    'disable_rollback': 'disable_rollback',
    'timeout_mins': 'timeout_mins',
    'tenant': 'project_id',
    'project': 'project_id',
    'owner_id': 'parent_id',
    'parent': 'parent_id',
}
_PARENT = ('owner_id', 'parent')
"""Fields that name the parent stack: a filter by one of them includes nested stacks."""

_ALWAYS_NULL = ('stack_owner', 'stack_user_project_id', 'username')
"""Fields of a stack that nothing has a value for here: a filter for one of them selects nothing."""

_STACK_STATES = ('action', 'stack_action'), ('status', 'stack_status')
_STACK_FILTERS = (*_STACK_COLUMNS, *_ALWAYS_NULL, *_STACK_STATES[0], *_STACK_STATES[1])

_EVENT_COLUMNS = {
    'id': 'id',
    'uuid': 'id',
    'resource_name': 'resource_name',
    'logical_resource_id': 'resource_name',
    'physical_resource_id': 'physical_id',
    'resource_type': 'resource_type',
}
_EVENT_STATES = ('resource_action',), ('resource_status',)
_EVENT_FILTERS = (*_EVENT_COLUMNS, *_EVENT_STATES[0], *_EVENT_STATES[1])

_RESOURCE_STATES = ('action', 'resource_action'), ('status', 'resource_status')
_RESOURCE_FILTERS = (
    *('name', 'resource_name', 'type', 'resource_type', 'id', 'physical_resource_id'),
    *_RESOURCE_STATES[0],
    *_RESOURCE_STATES[1],
)


def stack_query(project_id: str, query: StackQuery, hidden_tags: Collection[str] = ()) -> StackFilter:
    """The query in the terms of the database.

    :param hidden_tags: stacks with one of these tags are left out unless the query includes hidden ones.
    :raises Invalid: an argument is invalid; the text names it.
    """
    keys = _sort_keys(query.sort_keys, STACK_SORT_KEYS)
    asked = _filters(query.filters, _STACK_FILTERS)
    filters: dict[str, Any] = {
        _STACK_COLUMNS[name]: [_typed(name, value) for value in values]
        for name, values in asked.items()
        if name in _STACK_COLUMNS
    }
    states = _states(asked, *_STACK_STATES)
    if states is not None:
        filters['state'] = states
    if any(name in asked for name in _ALWAYS_NULL):
        filters['id'] = []
    return StackFilter(
        project_id=project_id,
        filters=filters,
        show_deleted=bool(query.show_deleted),
        limit=limit_of(query.limit),
        marker=query.marker or None,
        sort_keys=keys,
        # Newest first, but a key that the caller chose is taken in its natural order.
        descending=_descending(query.sort_dir, unsaid=not keys),
        show_nested=bool(query.show_nested) or any(name in asked for name in _PARENT),
        tags=TagFilter(
            every=_words(query.tags),
            some=_words(query.tags_any),
            not_every=_words(query.not_tags),
            not_some=[*_words(query.not_tags_any), *(() if query.show_hidden else hidden_tags)],
        ),
    )


def event_page(stack: Stack, query: EventQuery) -> EventPage:
    """The event query in the terms of the database; name and type select the stack itself.

    :raises Invalid: an argument makes no sense; the text names it.
    """
    asked = _filters(query.filters, _EVENT_FILTERS)
    itself = {'resource_type': STACK_TYPE}
    filters: dict[str, Sequence[str | None]] = {}
    for name, values in asked.items():
        if name in _EVENT_COLUMNS:
            column = _EVENT_COLUMNS[name]
            filters[column] = [*values, None] if itself.get(column) in values else values
    return EventPage(
        stack_id=stack.id,
        filters=filters,
        nested_depth=int(query.nested_depth or 0),
        states=_states(asked, *_EVENT_STATES),
        marker=query.marker or None,
        limit=limit_of(query.limit),
        sort_keys=_sort_keys(query.sort_keys, EVENT_SORT_KEYS),
        descending=_descending(query.sort_dir, unsaid=False),
    )


def values_of(wanted: Any) -> list[str]:
    """The values of a filter, which may be one value or a list."""
    return [str(value) for value in (wanted if isinstance(wanted, (list, tuple, set)) else [wanted])]


def in_state(action: Action, status: Status, states: Sequence[StateFilter] | None) -> bool:
    """Return True if a state is one of the selected ones."""
    return states is None or any(
        wanted != (None, None) and wanted[0] in (None, action) and wanted[1] in (None, status) for wanted in states
    )


def resource_filters(filters: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """The filters of a list of resources: the selected values by name.

    :raises Invalid: there is no such filter; the text names it.
    """
    return _filters(filters, _RESOURCE_FILTERS)


def resource_states(filters: Mapping[str, list[str]]) -> list[StateFilter] | None:
    """The states that the filters of a list of resources select; None: all."""
    return _states(filters, *_RESOURCE_STATES)


def _typed(name: str, text: str) -> str | int | bool:
    """The value of a filter as the column has it."""
    if name == 'timeout_mins':
        if not text.isdecimal():
            raise errors.Invalid(f'{name}: {text!r} is not a whole number of minutes')
        return int(text)
    if name == 'disable_rollback':
        if text.lower() not in ('true', 'false'):
            raise errors.Invalid(f'{name}: {text!r} is neither true nor false')
        return text.lower() == 'true'
    return text


def _words(tags: list[str] | str | None) -> list[str]:
    words = {tag.strip() for tag in (tags.split(',') if isinstance(tags, str) else tags or [])}
    return sorted(words - {''})


def _filters(filters: Mapping[str, Any] | None, known: Collection[str]) -> dict[str, list[str]]:
    if filters is not None and not isinstance(filters, Mapping):
        raise errors.Invalid(f'filters: expected a map, not {type_name(filters)}')
    for name in filters or {}:
        if name not in known:
            raise errors.Invalid(f'filters: there is no filter {name}{did_you_mean(name, known)}')
    return {name: values_of(wanted) for name, wanted in (filters or {}).items() if wanted is not None}


def _states(
    filters: Mapping[str, list[str]], action_names: Sequence[str], status_names: Sequence[str]
) -> list[StateFilter] | None:
    """The selected states: ``COMPLETE`` of any action, or ``CREATE_COMPLETE``; an unknown state selects none."""
    actions = [value for name in action_names for value in filters.get(name, ())]
    statuses = [value for name in status_names for value in filters.get(name, ())]
    if not any(name in filters for name in (*action_names, *status_names)):
        return None
    wanted = [_state(text) for text in statuses] if statuses else [(None, status) for status in Status]
    if not actions:
        return [state for state in wanted if state != (None, None)]
    allowed = [Action(text.upper()) for text in actions if text.upper() in Action.__members__]
    return [
        (action, status)
        for action in allowed
        for named, status in wanted
        if status is not None and named in (None, action)
    ]


def _state(text: str) -> StateFilter:
    if text.upper() in Status.__members__:
        return None, Status(text.upper())
    action, _, status = text.upper().partition('_')
    if action in Action.__members__ and status in Status.__members__:
        return Action(action), Status(status)
    return None, None


def _sort_keys(keys: list[str] | str | None, known: Mapping[str, Any]) -> tuple[str, ...]:
    names = tuple([keys] if isinstance(keys, str) else keys or ())
    for name in names:
        if name not in known:
            raise errors.Invalid(f'sort_keys: {name!r} is not one of {", ".join(known)}')
    return names


def _descending(direction: str | None, *, unsaid: bool) -> bool:
    if direction is None:
        return unsaid
    if str(direction).lower() not in ('asc', 'desc'):
        raise errors.Invalid(f'sort_dir: {direction!r} is neither asc nor desc')
    return str(direction).lower() == 'desc'


def limit_of(limit: Any) -> int | None:
    """The maximum number of results; None: no limit.

    :raises Invalid: it is not a whole number of at least 0.
    """
    if limit is None:
        return None
    try:
        number = int(limit)
    except (TypeError, ValueError):
        raise errors.Invalid(f'limit: {limit!r} is not a whole number') from None
    if number < 0:
        raise errors.Invalid(f'limit: {number} is less than 0')
    return number
