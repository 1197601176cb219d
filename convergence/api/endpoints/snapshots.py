"""Snapshots of stacks."""

from __future__ import annotations

from http import HTTPStatus

from convergence.api.calls import Answer, Call
from convergence.api.faults import message
from convergence.rpc.engine_api import EngineApi


def create(call: Call) -> Answer:
    """Begin to take a snapshot. The answer is the snapshot itself, without a key around it."""
    return Answer(call.about_stack(EngineApi.stack_snapshot, name=(call.body or {}).get('name')))


def index(call: Call) -> Answer:
    """The snapshots of a stack."""
    return Answer({'snapshots': call.about_stack(EngineApi.stack_list_snapshots)})


def show(call: Call) -> Answer:
    """One snapshot with its data."""
    return Answer({'snapshot': call.about_stack(EngineApi.show_snapshot, snapshot_id=call.path['snapshot_id'])})


def delete(call: Call) -> Answer:
    """Begin to delete a snapshot."""
    call.about_stack(EngineApi.delete_snapshot, snapshot_id=call.path['snapshot_id'])
    return Answer()


def restore(call: Call) -> Answer:
    """Bring a stack back to a snapshot."""
    call.about_stack(EngineApi.stack_restore, snapshot_id=call.path['snapshot_id'])
    return Answer(message(HTTPStatus.ACCEPTED, 'The request is accepted for processing.'))
