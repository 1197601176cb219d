"""Preconditions of requests: a request takes effect once, or only if no other operation came before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergence import errors
from convergence.core.rows import Stack
from convergence.engine.compile.submission import Submission


@dataclass(frozen=True, slots=True)
class RequestMark:
    """Identifies repeated requests to create one stack.

    :param key: chosen by the caller; unique in its project. None: the caller does not repeat requests.
    :param digest: of the request's content; None without a key.
    """

    key: str | None = None
    digest: str | None = None

    @classmethod
    def of(
        cls, key: str | None, stack_name: str, submission: Submission, args: Mapping[str, Any] | None
    ) -> RequestMark:
        """The mark of a request to create a stack."""
        if key is None:
            return cls()
        asked = [stack_name, submission.content(), dict(args or {})]
        return cls(key, hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest())

    def check(self, made: Stack) -> None:
        """Refuse a stack that was made by another request with the same key.

        :raises RequestKeyReused: it was.
        """
        if made.request_digest != self.digest:
            raise errors.RequestKeyReused(
                f'Another request with the same idempotency key has made the stack {made.name}, with '
                'something else. Use a new key for a new request.'
            )


def require_traversal(stack: Stack | None, expected: str | None) -> None:
    """Refuse a stack that has another traversal than the caller expects.

    :param expected: id of the traversal that the caller has seen; None: any.
    :raises PreconditionFailed: it has another one.
    """
    if stack is not None and expected is not None and stack.traversal_id != expected:
        raise errors.PreconditionFailed(
            f'Stack {stack.name} has been changed by another operation since. Read it again, and repeat the request.'
        )
