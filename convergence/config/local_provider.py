"""The resource types that work on the machine of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help='Offer the resource types of Convergence::Local, which make files and run programs on the machine of '
        'the worker, as the user of the worker. Default: only where nobody else can ask, that is in "convergence '
        'serve" and convergence-all-in-one with authentication = noauth, an SQLite database and memory:// as the '
        'transport; false everywhere else.',
    ),
    cfg.BoolOpt(
        'allow_with_keystone',
        default=False,
        help='Offer these types even though [api] authentication is keystone. Without it such a process refuses to '
        'start. The policy rules that begin with "resource_types:Convergence::Local::" then decide who of the cloud '
        'may run programs here; by default everybody with the role admin in any project.',
    ),
    cfg.StrOpt(
        'root',
        sample_default='<state_dir>/local',
        help='The only directory in which these types make anything. Use a directory of its own.',
    ),
    cfg.DictOpt(
        'programs',
        default={},
        sample_default='python:/usr/bin/python3',
        help='The programs that templates may run: name:absolute path, separated by commas. Without it: the Python '
        'interpreter of the worker, under the name python, which can do whatever the user of the worker can.',
    ),
    cfg.ListOpt(
        'check_addresses',
        default=[],
        sample_default='127.0.0.1:8080,localhost:9000',
        help='What Convergence::Local::HttpCheck may ask besides the ports of the processes that the local provider '
        'runs: host:port, separated by commas. A template learns whether an answer contains a text: name no service '
        'whose answers are not for everybody who may use the type.',
    ),
]


@dataclass(frozen=True, slots=True)
class LocalProviderSettings:
    """Whether and where templates may make files and run programs on this machine.

    :param programs: absolute path of each program that may be run, by name; empty leaves it to the provider.
    :param check_addresses: ``host:port`` of what checks over HTTP may ask besides the provider's own processes.
    :param allow_with_keystone: whether to offer the types although Keystone lets others in.
    """

    enabled: bool
    root: Path
    programs: Mapping[str, Path]
    check_addresses: tuple[str, ...] = ()
    allow_with_keystone: bool = False
