"""Removes credentials that no stack needs any more: the last step in the life of a stack.

Runs in a thread of its own, so that a Keystone without answers delays no sweep. Every engine polls; each row is handed
out to one of them.
"""

from __future__ import annotations

import logging
from typing import Protocol

from convergence.concurrency import RunningThread, ThreadEvent, start_thread
from convergence.credentials.model import StoredCredentials
from convergence.db.ports import CredentialsPort
from convergence.errors import ConvergenceError, DatabaseUnavailable

LOG = logging.getLogger(__name__)

LIMIT = 100
"""Maximum number of rows handled in one turn."""


class Remover(Protocol):
    """Removes credentials: the part of `convergence.credentials.keystone.Keystone` that engines need."""

    def remove(self, stored: StoredCredentials) -> None:
        """Remove credentials. Missing credentials are no error."""


class CredentialRemoval:
    """Polls for credentials without a stack.

    :param interval_s: seconds between two turns.
    :param settles_s: seconds during which new credentials may still get a stack.
    """

    def __init__(self, rows: CredentialsPort, keystone: Remover, interval_s: float, settles_s: float) -> None:
        self._rows = rows
        self._keystone = keystone
        self._interval_s = interval_s
        self._settles_s = settles_s
        self._stopping = ThreadEvent()
        self._thread: RunningThread | None = None

    def start(self) -> None:
        """Start, in a thread of its own."""
        self._thread = start_thread('credentials', self._run)

    def stop(self) -> None:
        """Stop after the turn in progress. Returns at once; `wait` waits for that turn."""
        self._stopping.set()

    def wait(self, timeout_s: float) -> bool:
        """After `stop`: wait for the turn in progress; True if it ended in time."""
        return self._thread is None or self._thread.wait(timeout_s)

    def turn(self) -> int:
        """Find unneeded credentials, and remove them; the number removed.

        :raises DatabaseUnavailable: the database is out of reach; the next turn continues.
        """
        self._rows.drop_unwanted(self._settles_s, LIMIT)
        return sum(self._remove(each) for each in self._rows.take_unwanted(LIMIT))

    def _remove(self, unwanted: StoredCredentials) -> bool:
        try:
            self._keystone.remove(unwanted)
        except DatabaseUnavailable:
            raise
        except ConvergenceError as error:
            LOG.warning(
                'Credentials %s (%s of user %s in project %s) are unneeded but not removed yet, will retry: %s',
                unwanted.id,
                unwanted.method,
                unwanted.user_id,
                unwanted.project_id,
                error,
            )
            self._rows.not_yet(unwanted, str(error))
            return False
        LOG.info('Removed credentials %s of user %s', unwanted.id, unwanted.user_id)
        self._rows.forget(unwanted.id)
        return True

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            try:
                self.turn()
            except DatabaseUnavailable as error:
                LOG.warning('Removal of credentials paused, will retry: %s', error)
            except Exception:
                LOG.exception('Removal of credentials failed unexpectedly, will retry')
