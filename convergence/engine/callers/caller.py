"""Who asks an engine for something."""

from __future__ import annotations

from typing import Protocol


class Caller(Protocol):
    """What the engine knows of who asks: a part of the request's context.

    :ivar request_id: is told in the log and kept with the traversal that the request begins.
    :ivar project_id: whose stacks the caller may see and change.
    """

    request_id: str
    project_id: str
