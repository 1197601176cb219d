"""A real control plane on this machine, and tests against it: ``python -m tests.openstack --help``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.openstack.control_plane import ControlPlane
from tests.openstack.environment import CannotInstall
from tests.openstack.layout import PASSWORD, REGION, VARIABLE, Layout
from tests.openstack.processes import DoesNotStart
from tests.openstack.servers import Refused
from tests.services import SERVICES, Missing

TESTS = 'tests/openstack'
WHAT = ('test', 'start', 'stop', 'status', 'env', 'remove')


def main(arguments: list[str] | None = None) -> int:
    """The exit code: that of pytest, or 1 where there is no control plane."""
    asked, rest = _parser().parse_known_args(_with_what_to_do(sys.argv[1:] if arguments is None else arguments))
    if rest and asked.do != 'test':
        _parser().error(f'{asked.do} takes no arguments: {" ".join(rest)}')
    try:
        return _do(asked, rest)
    except (Missing, Refused, CannotInstall, DoesNotStart) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        SERVICES.close()


def _with_what_to_do(arguments: list[str]) -> list[str]:
    """The arguments, with ``test`` in front where they begin with something for pytest."""
    named = [each for each in arguments if not each.startswith('-')]
    return arguments if not named or named[0] in WHAT else ['test', *arguments]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python -m tests.openstack',
        description='Keystone, placement, Glance, Neutron, Nova and Cinder on this machine, from PyPI, with a hypervisor '
        f'and disks that only pretend. They need MariaDB, RabbitMQ, 2 GiB of memory and 1 GiB of disk ({VARIABLE} says '
        'where), and some minutes the first time.',
        epilog='What stands behind "test", or is none of these words, goes to pytest: a file, -k rollback, --every-request.',
    )
    parser.add_argument('do', nargs='?', default='test', choices=WHAT)
    parser.add_argument('--keep', action='store_true', help='leave it running after the tests, and use it if it runs')
    return parser


def _do(asked: argparse.Namespace, rest: list[str]) -> int:
    plane = ControlPlane(Layout.here(), lambda line: print(line, flush=True))
    if asked.do == 'status':
        running = plane.processes.running()
        for name in plane.processes.names:
            print(f'{name:<20} {running.get(name, "-")}')
        return 0 if plane.is_at_work() else 1
    if asked.do == 'env':
        print(_variables(plane.layout))
    elif asked.do == 'start':
        plane.start()
        print(_variables(plane.layout))
    elif asked.do == 'stop':
        plane.stop()
    elif asked.do == 'remove':
        plane.remove()
    else:
        return _test(plane, asked.keep, rest)
    return 0


def _test(plane: ControlPlane, keep: bool, rest: list[str]) -> int:
    try:
        if not (keep and plane.is_at_work()):
            plane.start()
        named = [each for each in rest if each.startswith(('tests/', 'plugins/'))]
        command = [sys.executable, '-m', 'pytest', *([] if named else [TESTS]), *rest]
        return subprocess.run(command, env=os.environ | {VARIABLE: str(plane.layout.directory)}, check=False).returncode
    finally:
        if not keep:
            plane.stop()


def _variables(layout: Layout) -> str:
    """How the user ``demo`` logs in, for a shell."""
    values = {
        'AUTH_URL': layout.auth_url,
        'USERNAME': 'demo',
        'PASSWORD': PASSWORD,
        'PROJECT_NAME': 'demo',
        'USER_DOMAIN_ID': 'default',
        'PROJECT_DOMAIN_ID': 'default',
        'IDENTITY_API_VERSION': '3',
        'REGION_NAME': REGION,
    }
    return '\n'.join(f'export OS_{name}={value}' for name, value in values.items())


if __name__ == '__main__':
    sys.exit(main())
