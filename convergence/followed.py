"""The operation that a request began, in the history of its stack. Pure.

A stack has one operation after another, and an operation can supersede the one before it. A program that waits for its
own operation must not take the end of a later one for its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convergence.documents import Document

UNDER_WAY = ('RUNNING', 'CANCELLING')


@dataclass(frozen=True, slots=True)
class Followed:
    """An operation to follow. An automatic rollback belongs to the operation that it undoes.

    :param request_id: the request that began it. The rollback has it too.
    :param traversal_id: the traversal of an operation without a request, such as a repair.
    """

    request_id: str = ''
    traversal_id: str = ''

    @classmethod
    def of(cls, history: Sequence[Document], request_id: str = '') -> Followed:
        """Return the operation of a request; the newest one if the request began none, or is empty.

        :param history: the operations on the stack, the newest first.
        """
        found = [each for each in history if request_id and each['request_id'] == request_id] or history[:1]
        return cls(str(found[0]['request_id']), str(found[0]['id'])) if found else cls()

    def begins(self, operation: Document) -> bool:
        """Return True if an entry of the history belongs to the operation."""
        if self.request_id:
            return bool(operation['request_id'] == self.request_id)
        return bool(operation['id'] == self.traversal_id)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a followed operation.

    :param entry: its newest entry in the history; None: the history has it no more.
    :param successor: the operation after it; None: it is the newest one.
    """

    entry: Document | None
    successor: Document | None

    @classmethod
    def of(cls, followed: Followed, history: Sequence[Document]) -> Standing:
        """Return the state of an operation.

        :param history: the operations on the stack, the newest first.
        """
        place = next((number for number, each in enumerate(history) if followed.begins(each)), None)
        if place is None:
            return cls(None, history[-1] if history else None)
        return cls(history[place], history[place - 1] if place else None)

    @property
    def is_superseded(self) -> bool:
        """True if another operation took over before this one ended."""
        return self.successor is not None and (self.entry is None or self.entry['status'] == 'SUPERSEDED')

    @property
    def state(self) -> str:
        """The final state, such as UPDATE_COMPLETE, of an operation that has ended; empty before."""
        if self.entry is None or self.entry['status'] in UNDER_WAY:
            return ''
        return f'{self.entry["action"]}_{"COMPLETE" if self.entry["status"] == "COMPLETE" else "FAILED"}'


def named(operation: Document) -> str:
    """Return the name of an operation for messages."""
    return f'{operation["action"]} {operation["id"]} of {operation["started_at"]}'
