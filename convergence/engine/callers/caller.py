"""The caller of an engine."""

from __future__ import annotations

from typing import Protocol


class Caller(Protocol):
    """The part of a request's context that the engine reads.

    :ivar request_id: written to the log, and stored with the traversal that the request starts.
    :ivar project_id: the caller may see and change the stacks of this project.
    """

    request_id: str
    project_id: str
