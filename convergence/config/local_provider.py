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
        help='Offer the resource types Convergence::Local::*, which make files and run programs on the machine of '
        'the worker. Anybody who may create stacks can then run the programs listed below.',
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
        'interpreter of the worker, under the name python.',
    ),
]


@dataclass(frozen=True, slots=True)
class LocalProviderSettings:
    """Whether and where templates may make files and run programs on this machine.

    :param programs: absolute path of each program that may be run, by name; empty leaves it to the provider.
    """

    enabled: bool
    root: Path
    programs: Mapping[str, Path]
