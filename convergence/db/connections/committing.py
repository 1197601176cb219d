"""Base of driver connections whose commit may carry the last statements along."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

COMMIT = 'COMMIT'
"""SQL text of a commit that ends, or continues, a text of several statements."""


class Committing:
    """Part of a connection on which a commit may take the last statements along.

    :ivar with_commit: sends them with the commit; None: there are none.
    """

    with_commit: Callable[[], None] | None = None

    def commit(self) -> None:
        """Commit, together with the statements left for the commit."""
        send, self.with_commit = self.with_commit, None
        if send is None:
            super().commit()  # type: ignore[misc]
            return
        try:
            send()
        except Exception:
            # The statement that failed may have come before the commit, and SQLAlchemy does not roll back after a
            # failed commit.
            with contextlib.suppress(Exception):
                self.rollback()
            raise

    def rollback(self) -> None:
        """Roll back, and drop the statements left for the commit."""
        self.with_commit = None
        super().rollback()  # type: ignore[misc]
