"""Under which name clients reach the API: what the links in its answers begin with.

A link may be followed by somebody else than the client that asked. So no link is made of a name that a request made up:
either the operator says where the API is, or the name in the request is one that the operator or this machine knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from convergence.api.faults import HttpProblem
from convergence.api.identity import is_loopback

_HOST = re.compile(r'(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?', re.ASCII)


class Hosts:
    """Makes the beginning of links.

    :param public_url: where the API is; empty: see `known`.
    :param known: further names and addresses under which requests may come, besides those of this machine for itself.
    """

    def __init__(self, public_url: str, known: Iterable[str] = ()) -> None:
        self._public_url = public_url.rstrip('/')
        self._known = {_plain(each) for each in known}

    def base(self, scheme: str, host: str) -> str:
        """The beginning of the links in an answer, without a slash at the end.

        :param host: to which the request was sent, with its port if it has one.
        :raises HttpProblem: 421, nobody knows that host.
        """
        if self._public_url:
            return self._public_url
        found = _HOST.fullmatch(host)
        name = _plain(found['name']) if found is not None else ''
        if not name or not (is_loopback(name) or name in self._known):
            raise HttpProblem(
                HTTPStatus.MISDIRECTED_REQUEST,
                'The API is not known under the host of this request. Its operator names those that are, in '
                '[api] allowed_hosts or public_url.',
            )
        return f'{scheme}://{host}'


def _plain(name: str) -> str:
    return name.strip('[]').rstrip('.').lower()
