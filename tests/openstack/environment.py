"""The virtual environment of the services: they come from PyPI, unmodified, with the versions of ``constraints.txt``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.openstack.layout import Layout

HERE = Path(__file__).parent
CONSTRAINTS = HERE / 'constraints.txt'
REQUIREMENTS = (
    'keystone==30.0.0',
    'openstack-placement==16.0.0',
    'glance==33.0.0',
    'neutron==29.0.0',
    'nova==34.0.0',
    'cinder==29.0.0',
    'pymysql',
    'uwsgi',
)
"""uwsgi is compiled: this needs gcc and the headers of Python."""

_STAMP = 'installed'


class CannotInstall(Exception):
    """The services could not be installed. The text says why."""


def install(layout: Layout) -> bool:
    """See to it that the services are installed; whether anything had to be done.

    :raises CannotInstall: pip fails.
    """
    stamp = layout.programs / _STAMP
    wanted = '\n'.join(REQUIREMENTS) + CONSTRAINTS.read_text() + (HERE / 'fake_driver/bound_ports.py').read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return False
    if not (layout.programs / 'bin/python').exists():
        _run(sys.executable, '-m', 'venv', str(layout.programs))
    pip = (layout.program('python'), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check')
    _run(*pip, '-c', str(CONSTRAINTS), *REQUIREMENTS)
    _run(*pip, '--no-deps', '--force-reinstall', str(HERE / 'fake_driver'))
    stamp.write_text(wanted)
    return True


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotInstall(f'{" ".join(command[:5])} …: {done.stderr.strip()[-2000:]}')
