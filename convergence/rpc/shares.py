"""On whose behalf workers are told of nodes: a worker shares its threads among projects.

It is told with the message, and handed on by whoever does something about it. Where nobody knows, a stack stands for
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_project: ContextVar[str] = ContextVar('convergence_share', default='')


@contextmanager
def on_behalf_of(project_id: str) -> Iterator[None]:
    """Whatever is told to workers inside the block, in this thread, is for that project."""
    token = _project.set(project_id)
    try:
        yield
    finally:
        _project.reset(token)


def beneficiary() -> str:
    """The id of the project for which something is told here and now; empty where nobody has said it."""
    return _project.get()
