"""How paths are read before anything is decided by them: thread by the server, route by the application. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

_ARN = re.compile(
    r'(?P<root>/v1/(?P<project>[^/]+)/stacks/)arn:openstack:heat::(?P=project):stacks/[^/]+/(?P<id>[^/]+)'
)
"""A stack named as the field's RPC does, in one piece."""


def plain(path: str) -> str:
    """A path, decoded, in which a stack is named by its id where it was named in one piece.

    What would become another path by that, because there is a slash in what stands for the id, is left as it is: no
    route leads there.
    """
    named = _ARN.match(path)
    if named is None:
        return path
    stack_id = unquote(named['id'])
    return path if '/' in stack_id else f'{named["root"]}{stack_id}{path[named.end() :]}'
