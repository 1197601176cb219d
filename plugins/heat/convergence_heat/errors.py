"""Translates errors of Heat's classes and clients into failures of the contract."""

from __future__ import annotations

from typing import Any

import requests
from heat.common import exception
from heat.engine import resource
from keystoneauth1 import exceptions as keystone

from convergence.core.model import Action
from convergence.resources.contract import (
    FinalFailure,
    ObjectNotFound,
    OutcomeUnknown,
    PluginFailure,
    ReplacementNeeded,
    TransientFailure,
)
from convergence_heat.session import BUSY, Doings


def failure_of(
    error: Exception, action: Action, ids: tuple[str | None, str | None], doings: Doings, client: Any
) -> PluginFailure:
    """The failure to raise for an error.

    :param ids: of the object, before the call and now, as far as the class knows it.
    :param client: the plugin of the type's service, which knows its errors.
    """
    physical_id = ids[1]
    if isinstance(error, PluginFailure):
        error.physical_id = error.physical_id or physical_id
        return error
    text = f'{type(error).__name__}: {error}'
    if isinstance(error, resource.UpdateReplace):
        return ReplacementNeeded(text, physical_id=physical_id)
    if client.is_not_found(error) and action in (Action.DELETE, Action.CHECK):
        return ObjectNotFound(text)
    if action is Action.CREATE and (doings.unsure or doings.made or physical_id != ids[0]):
        return OutcomeUnknown(text, physical_id=physical_id)
    # If a name cannot be resolved, Heat says that the value is wrong, and not always why.
    hidden = doings.in_vain and isinstance(error, (exception.HeatException, ValueError))
    if hidden or may_pass(error, client) or (action is Action.DELETE and client.is_conflict(error)):
        return TransientFailure(text, physical_id=physical_id)
    return FinalFailure(text, physical_id=physical_id)


def may_pass(error: Exception, client: Any) -> bool:
    """Return True if the same may succeed later: a service is down or overloaded, or a quota is used up."""
    if isinstance(error, (keystone.ConnectFailure, requests.ConnectionError, requests.Timeout)):
        return True
    if isinstance(error, exception.HeatException):
        # Heat calls a type or a value invalid if its request failed.
        before = error.__cause__ or error.__context__
        return isinstance(before, Exception) and may_pass(before, client)
    return client.is_over_limit(error) or status_of(error) in BUSY or _says_quota(error)


def _says_quota(error: Exception) -> bool:
    return status_of(error) in (403, 409, 413) and 'quota' in f'{type(error).__name__} {error}'.lower()


def status_of(error: Exception) -> int | None:
    """Return the status code of a service; None if the error has none."""
    for name in ('http_status', 'status_code', 'code'):
        value = getattr(error, name, None)
        if isinstance(value, int) and value:
            return value
    return None
