"""Settings of the resource types that work on the machine of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class LocalProviderSettings:
    """The section ``local_provider``.

    :param root: absolute.
    :param programs: absolute path of each program, by name; empty: the provider offers the Python interpreter.
    """

    enabled: bool = option(
        False,
        'Offer the resource types of Convergence::Local, which make files and run programs on the machine of the '
        'worker, as the user of the worker. Default: true only where no other user can reach the API, that is in '
        '"convergence serve" and convergence-all-in-one with authentication = noauth, an SQLite database and memory:// '
        'as the transport; false everywhere else.',
        required=True,
    )
    root: Path = option(
        '',
        'Directory in which these types make their files. They make nothing outside of it. Use a directory of its own.',
        sample='<state_dir>/local',
        required=True,
    )
    programs: Mapping[str, Path] = option(
        {},
        'Programs that templates may run, as name:absolute path, separated by commas. Default: the Python interpreter '
        'of the worker, named python, which can do everything that the user of the worker can.',
        sample='python:/usr/bin/python3',
        required=True,
    )
    check_addresses: tuple[str, ...] = option(
        (),
        'Addresses that Convergence::Local::HttpCheck may query besides the ports of the processes that the local '
        'provider runs, as host:port, separated by commas. A template learns if an answer contains a text: add only '
        'services whose answers every user of the type may read.',
        sample='127.0.0.1:8080,localhost:9000',
    )
    allow_with_keystone: bool = option(
        False,
        'Offer these types even with [api] authentication = keystone. By default such a process refuses to start. The '
        'policy rules that begin with "resource_types:Convergence::Local::" then decide which users of the cloud may '
        'run programs here; by default every user with the role admin in any project.',
    )
