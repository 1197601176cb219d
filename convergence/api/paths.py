"""Normalizes paths for the server, which selects a thread by them, and the application, which selects a route. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

_ARN = re.compile(
    r'(?P<root>/v1/(?P<project>[^/]+)/stacks/)arn:openstack:heat::(?P=project):stacks/[^/]+/(?P<id>[^/]+)'
)
"""A stack in the notation of the RPC, in one piece."""


def plain(path: str) -> str:
    """Return a decoded path in which a stack that was named in one piece is named by its id.

    If the id contains a slash, the path stays unchanged and no route matches it.
    """
    named = _ARN.match(path)
    if named is None:
        return path
    stack_id = unquote(named['id'])
    return path if '/' in stack_id else f'{named["root"]}{stack_id}{path[named.end() :]}'
