"""Deletes the data that resource types stored for a snapshot, after the snapshot was deleted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from convergence import logs
from convergence.concurrency import Task, TaskKilled
from convergence.core.claim import NO_NODE
from convergence.core.rows import SnapshotItem
from convergence.credentials.model import Credentials
from convergence.db.ports import ReaderPort, SnapshotsPort
from convergence.resources.contract import ObjectNotFound
from convergence.resources.invocation import Subject, build_call
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.secrets import secret_properties
from convergence.resources.storable import text_of
from convergence.values import replace
from convergence.worker.attempts.port import NO_NESTING, NestingPort, none_of_stack
from convergence.worker.scheduler.thread_groups import Check, ThreadGroups

LOG = logging.getLogger(__name__)

MOST_AT_ONCE = 10
"""Maximum number of items that one heartbeat takes."""


class SnapshotRemoval:
    """Searches, with each heartbeat, for data of deleted snapshots, and deletes it in threads of the worker."""

    def __init__(
        self,
        rows: SnapshotsPort,
        reader: ReaderPort,
        registry: Registry,
        groups: ThreadGroups,
        nested: NestingPort = NO_NESTING,
        credentials: Callable[[str], Credentials] = none_of_stack,
    ) -> None:
        self._nested = nested
        self._rows = rows
        self._reader = reader
        self._registry = registry
        self._groups = groups
        self._credentials = credentials

    def __call__(self) -> None:
        """Take some items and delete each in a thread."""
        if self._groups.is_closed or not self._groups.occupancy().idle:
            return
        for item in self._rows.take_unwanted(min(MOST_AT_ONCE, self._groups.occupancy().idle)):
            self._groups.submit(Check('', NO_NODE), partial(self._delete, item))
        self._rows.remove_empty()

    def _delete(self, item: SnapshotItem, task: Task) -> None:
        """Delete one item. A deletion that fails is retried later; no operation waits for it."""
        if self._groups.is_closed:
            return
        with logs.masking(secret_properties(self._registry, item.type, item.properties)):
            self._delete_quietly(item, task)

    def _delete_quietly(self, item: SnapshotItem, task: Task) -> None:
        try:
            kind = self._registry.get(item.type)
            subject = self._subject(item)
            call = build_call(
                kind,
                subject,
                item.properties,
                strictness=Strictness.LENIENT,
                cancelled=task.cancelled.is_set,
            )
            call = replace(call, credentials=partial(self._credentials, item.stack_id))
            if kind.nests:
                call = replace(call, nested=self._nested.kept(item.physical_id or '', subject.project_id))
            with task.killable():
                kind.delete_snapshot(call, item.snapshot_id, item.kept)
        except ObjectNotFound:
            pass
        except TaskKilled:
            raise
        except BaseException as error:  # noqa: BLE001 - a type may raise anything at all; it must not end the worker
            LOG.warning(
                'Snapshot data of %s not deleted for snapshot %s, retrying: %s',
                item.name,
                item.snapshot_id,
                error,
            )
            self._rows.not_yet(item, f'resources.{item.name}: {text_of(error)}; its deletion is repeated')
            return
        self._rows.forget(item)
        self._rows.remove_empty()

    def _subject(self, item: SnapshotItem) -> Subject:
        stack = self._reader.stack(item.stack_id)
        return Subject(
            name=item.name,
            stack_name=stack.name if stack is not None else '',
            stack_id=item.stack_id,
            project_id=stack.project_id if stack is not None else '',
            resource_id=item.resource_id,
            token='',
            physical_id=item.physical_id,
            data=item.data,
        )
