"""The project that the messages to workers belong to: a worker shares its threads fairly among projects.

Messages carry the id of the project, and a worker that handles one uses it for the messages it sends. If the project is
unknown, the worker counts each stack as a project of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_project: ContextVar[str] = ContextVar('convergence_share', default='')


@contextmanager
def on_behalf_of(project_id: str) -> Iterator[None]:
    """Set the project of all messages to workers that this thread sends inside the block."""
    token = _project.set(project_id)
    try:
        yield
    finally:
        _project.reset(token)


def beneficiary() -> str:
    """Return the id of the project that `on_behalf_of` set for this thread; empty if none is set."""
    return _project.get()
