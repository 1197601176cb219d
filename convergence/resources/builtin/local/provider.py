"""The limits that the operator sets for the local provider."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from convergence.errors import ConfigurationError


def running_python() -> dict[str, str]:
    """The allow-list with nothing but the interpreter that runs this process, as ``python``."""
    return {'python': sys.executable}


@dataclass(frozen=True)
class LocalProvider:
    """Settings of the local provider. Give it to a `Registry` to enable the ``Convergence::Local`` types.

    :param root: directory of all files of the provider; made when it is needed.
    :param programs: programs that may run: name in templates to absolute path of the executable.
    :param check_addresses: ``host:port`` that `Convergence::Local::HttpCheck` may request besides the processes that
        the provider runs itself.
    :raises ConfigurationError: the root or a program is not an absolute path, or is not usable.
    """

    root: Path
    programs: Mapping[str, str] = field(default_factory=running_python)
    check_addresses: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not Path(self.root).is_absolute():
            raise ConfigurationError(f'The root of the local provider must be an absolute path, not {self.root}')
        for name, executable in self.programs.items():
            if not Path(executable).is_absolute() or not Path(executable).is_file():
                raise ConfigurationError(
                    f'The program {name} of the local provider must be the absolute path of an executable file, '
                    f'not {executable}'
                )
        root = Path(self.root)
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f'The root of the local provider, {root}, cannot be made: {error}') from error
        object.__setattr__(self, 'root', root.resolve())
        plain = frozenset(each.lower().replace('[', '').replace(']', '') for each in self.check_addresses)
        object.__setattr__(self, 'check_addresses', plain)
