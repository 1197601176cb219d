"""Conditional requests: an idempotency key, and an entity tag that must still match.

The entity tag of a stack names its traversal: it changes exactly with every accepted operation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from convergence.api.calls import ApiCall
from convergence.api.faults import bad_request

LONGEST_KEY = 255
_TAG = re.compile(r'"([!#-~]{1,64})"')


def entity_tag(stack: Mapping[str, Any]) -> dict[str, str]:
    """The header that names the traversal of a stack."""
    traversal_id = stack.get('traversal_id')
    return {'ETag': f'"{traversal_id}"'} if traversal_id else {}


def expected_traversal(call: ApiCall) -> str | None:
    """Return the traversal that the stack must have for the request; None: any.

    :raises HttpProblem: 400 if the tag does not come from this API.
    """
    condition = call.headers.get('if-match', '').strip()
    if condition in ('', '*'):
        return None
    found = _TAG.fullmatch(condition)
    if found is None:
        raise bad_request('If-Match must be the ETag of a stack: one, in double quotes, and not a weak one.')
    return found[1]


def idempotency_key(call: ApiCall) -> str | None:
    """Return the idempotency key of the request; None without one.

    :raises HttpProblem: 400 if it is too long or empty.
    """
    key = call.headers.get('idempotency-key')
    if key is None:
        return None
    if not 0 < len(key) <= LONGEST_KEY or not key.isprintable() or not key.isascii():
        raise bad_request(f'Idempotency-Key must have 1 to {LONGEST_KEY} printable ASCII characters.')
    return key
