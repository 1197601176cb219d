"""What connections of all drivers have in common whose commit may take the last statements along."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

COMMIT = 'COMMIT'
"""How a text ends, or goes on, that takes the commit along."""


class Committing:
    """Part of a connection on which a commit may take the last statements along.

    :ivar with_commit: sends them with the commit; None: there are none.
    """

    with_commit: Callable[[], None] | None = None

    def commit(self) -> None:
        """Commit, with what is left for that."""
        send, self.with_commit = self.with_commit, None
        if send is None:
            super().commit()  # type: ignore[misc]
            return
        try:
            send()
        except Exception:
            # What has failed may not have been the commit, and nobody undoes a transaction whose commit has failed.
            with contextlib.suppress(Exception):
                self.rollback()
            raise

    def rollback(self) -> None:
        """Undo what was done, and forget what is left for the commit."""
        self.with_commit = None
        super().rollback()  # type: ignore[misc]
