"""Connections of PyMySQL and mysqlclient on which what only reads costs one way to the server; see `drivers`.

These drivers begin a transaction with the first statement, also where that only reads, and to end it they would send a
message of its own.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from convergence.db.connections.committing import COMMIT, Committing


class EndingInText(Committing):
    """Part of a connection that may end the transaction of a statement in the text of that.

    :ivar reads_alone: True if each statement is a transaction of its own.
    :ivar is_over: True if the last text has ended its transaction, so that there is none to be undone.
    """

    reads_alone = False
    is_over = False

    def query(self, text: Any, *more: Any) -> int | None:
        """Send a text, with a commit if the statement is a transaction of its own. A failing text ends nothing."""
        self.is_over = False
        answer: int | None = super().query(self._ended(text) if self.reads_alone else text, *more)  # type: ignore[misc]
        self.is_over = self.reads_alone
        return answer

    def _ended(self, text: str | bytes | bytearray) -> str | bytes:
        ends = f'; {COMMIT}'
        return text + ends if isinstance(text, str) else bytes(text) + ends.encode()

    @override
    def rollback(self) -> None:
        """As the base class; nothing is sent where the last text has ended its transaction."""
        if self.is_over:
            self._take_answers()
        else:
            super().rollback()

    def _take_answers(self) -> None:
        """Read the rest of an answer that was read in part. PyMySQL does so itself before the next text."""
        discard = getattr(self, 'discard_result', None)
        while discard is not None and self.next_result() == 0:  # type: ignore[attr-defined]
            discard()
