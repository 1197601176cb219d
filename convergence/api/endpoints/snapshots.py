"""Snapshots of stacks."""

from __future__ import annotations

from http import HTTPStatus

from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.faults import message
from convergence.rpc.engine_api import EngineApi


def create(call: ApiCall) -> ApiAnswer:
    """Start to take a snapshot. The body of the answer is the snapshot itself, without an enclosing key."""
    return ApiAnswer(call.about_stack(EngineApi.stack_snapshot, name=(call.body or {}).get('name')))


def index(call: ApiCall) -> ApiAnswer:
    """List the snapshots of a stack."""
    return ApiAnswer({'snapshots': call.about_stack(EngineApi.stack_list_snapshots)})


def show(call: ApiCall) -> ApiAnswer:
    """Show one snapshot with its data."""
    return ApiAnswer({'snapshot': call.about_stack(EngineApi.show_snapshot, snapshot_id=call.path['snapshot_id'])})


def delete(call: ApiCall) -> ApiAnswer:
    """Start to delete a snapshot."""
    call.about_stack(EngineApi.delete_snapshot, snapshot_id=call.path['snapshot_id'])
    return ApiAnswer()


def restore(call: ApiCall) -> ApiAnswer:
    """Start to restore a stack from a snapshot."""
    call.about_stack(EngineApi.stack_restore, snapshot_id=call.path['snapshot_id'])
    return ApiAnswer(message(HTTPStatus.ACCEPTED, 'The request is accepted for processing.'))
