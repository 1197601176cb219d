"""The host name in the links of answers.

Other users may follow a link, so no link contains a host name that a request invented. The operator sets the address of
the API, or the host of the request is one that the operator or this machine knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from convergence.api.faults import HttpProblem
from convergence.api.identity import is_loopback

_HOST = re.compile(r'(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?', re.ASCII)


class Hosts:
    """Creates the prefix of links.

    :param public_url: address of the API; empty: see `known`.
    :param known: permitted hosts of requests, besides the names of this machine for itself.
    """

    def __init__(self, public_url: str, known: Iterable[str] = ()) -> None:
        self._public_url = public_url.rstrip('/')
        self._known = {_plain(each) for each in known}

    def base(self, scheme: str, host: str) -> str:
        """Return the prefix of the links in an answer, without a slash at the end.

        :param host: host header of the request, with its port if it has one.
        :raises HttpProblem: 421 for an unknown host.
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
