"""Who may import whom. The contract itself stands in setup.cfg, section importlinter."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, SIMULATOR, is_within, sources

DOORS = {
    'cryptography': ('convergence.db.schema.sealing',),
    'networkx': ('convergence.core.graph',),
    'sqlalchemy': ('convergence.db', 'migrations', 'convergence_simulator.stores.database'),
    'oslo_db': ('convergence.db', 'migrations'),
    'alembic': ('convergence.db', 'migrations'),
    'oslo_messaging': ('convergence.rpc',),
    'eventlet': ('convergence.concurrency',),
    'greenlet': ('convergence.concurrency', 'convergence_simulator.world.kernel'),
    'threading': ('convergence.concurrency', 'convergence.rpc'),
    'concurrent.futures': ('convergence.concurrency',),
    'stevedore': ('convergence.resources',),
    'yaml': ('convergence.template', 'convergence.cli.output', 'convergence.resources.builtin.software.configs'),
    'yaql': ('convergence.expressions',),
    'oslo_log': ('convergence.logs',),
    'oslo_service': (),
    'falcon': ('convergence.api',),
    'h11': ('convergence.api.serving',),
    'asyncio': ('convergence.api.server', 'convergence.api.serving', 'convergence.cli.template.language_server'),
    'oslo_policy': ('convergence.api', 'convergence.cmd'),
    'keystonemiddleware': ('convergence.cmd',),
    'rich': ('convergence.cli', 'convergence.cmd', 'convergence_simulator.cli'),
    'click': ('convergence.cli', 'convergence.cmd'),
    'requests': ('convergence.cli.connection.client', 'convergence.resources.openstack.waiting'),
    'lsprotocol': ('convergence.cli.template.language_server',),
    'pygls': ('convergence.cli.template.language_server',),
    'keystoneauth1': (
        'convergence.cli.connection.keystone',
        'convergence.credentials.keystone',
        'convergence.cmd.wiring.keystone',
    ),
    'openstack': ('convergence.cli.connection.clouds',),
}
"""The only places that may import each library."""

PURE = ('convergence.core', 'convergence.template')
IMPURE = (
    'asyncio',
    'datetime.datetime',
    'http',
    'logging',
    'multiprocessing',
    'os',
    'pathlib',
    'random',
    'secrets',
    'shutil',
    'socket',
    'subprocess',
    'tempfile',
    'threading',
    'time',
    'urllib.request',
    'uuid',
)
"""What reads a clock, makes ids or talks to the world: values in, values out leaves no place for it."""

CONF_READERS = ('convergence.config', 'convergence.cmd', 'convergence.logs', 'convergence.rpc')
"""Who may know oslo.config. rpc hands a ConfigOpts on to oslo.messaging, which insists on one."""


def lint(directory: Path) -> subprocess.CompletedProcess:
    """Run import-linter on the package in `directory`."""
    program = Path(sys.executable).with_name('lint-imports')
    return subprocess.run(
        [str(program), '--config', str(ROOT / 'setup.cfg'), '--no-cache'],
        cwd=directory,
        env=os.environ | {'PYTHONPATH': os.pathsep.join((str(directory), str(SIMULATOR)))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_layers_hold():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def skeleton(directory: Path) -> Path:
    """A package that has every layer of every contract and nothing in them."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    for section in parser.values():
        if section.get('type') != 'layers':
            continue
        layers = section['layers'].replace('|', ' ').replace('(', ' ').replace(')', ' ').split()
        for container in section['containers'].split():
            for name in layers:
                (directory.joinpath(*container.split('.')) / name).mkdir(parents=True, exist_ok=True)
    package = directory / 'convergence'
    simulator = directory / 'convergence_simulator'
    for folder in (package, *package.rglob('*'), simulator, *simulator.rglob('*')):
        (folder / '__init__.py').touch()
    return package


def test_the_contract_accepts_an_empty_skeleton(tmp_path):
    skeleton(tmp_path)
    done = lint(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ('lower', 'higher'),
    [
        ('errors', 'core'),
        ('core', 'template'),
        ('template', 'resources'),
        ('db', 'rpc'),
        ('rpc', 'resources'),
        ('resources', 'dispatch'),
        ('dispatch', 'engine'),
        ('engine', 'worker'),
        ('worker', 'engine'),
        ('api', 'cli'),
    ],
)
def test_the_contract_refuses_an_import_upwards_or_sideways(tmp_path, lower, higher):
    (skeleton(tmp_path) / lower / '__init__.py').write_text(f'import convergence.{higher}\n')
    done = lint(tmp_path)
    assert done.returncode != 0
    assert f'convergence.{lower} is not allowed to import convergence.{higher}' in done.stdout


def test_the_contract_refuses_an_import_of_the_simulator(tmp_path):
    (skeleton(tmp_path) / 'engine' / '__init__.py').write_text('import convergence_simulator\n')
    done = lint(tmp_path)
    assert done.returncode != 0
    assert 'convergence.engine -> convergence_simulator' in done.stdout


def test_a_package_without_a_layer_is_an_error(tmp_path):
    package = skeleton(tmp_path)
    shutil.copytree(package / 'core', package / 'helpers')
    done = lint(tmp_path)
    assert done.returncode != 0
    assert 'helpers' in done.stdout


@pytest.mark.parametrize('library', DOORS)
def test_each_library_has_one_door(library):
    allowed = DOORS[library]
    elsewhere = [
        f'{source.name}:{line} imports {name}'
        for source in sources()
        for line, name in source.imports
        if is_within(name, library) and not any(is_within(source.module, door) for door in allowed)
    ]
    assert elsewhere == [], f'{library} is used by {" and ".join(allowed) or "nobody"} only'


def test_the_core_and_the_language_are_pure():
    found = [
        f'{source.name}:{line} imports {name}'
        for source in sources()
        if any(is_within(source.module, package) for package in PURE)
        for line, name in source.imports
        if any(is_within(name, package) for package in IMPURE)
    ]
    assert found == []


def test_only_composition_roots_read_the_configuration():
    found = [
        f'{source.name}:{line}'
        for source in sources()
        if not any(is_within(source.module, reader) for reader in CONF_READERS)
        for line, name in source.imports
        if is_within(name, 'oslo_config')
    ]
    assert found == []


def test_the_api_reaches_the_rest_through_rpc_alone():
    # Locks and threads are no part of the rest, nor is the version, what a signature in a URL looks like, or how a JSON
    # text is read. Credentials are made where the token of their user is, and nowhere else.
    allowed = (
        'convergence.api',
        'convergence.rpc',
        'convergence.errors',
        'convergence.logs',
        'convergence.concurrency',
        'convergence.signing',
        'convergence.credentials.issuing',
        'convergence.documents',
        'convergence.drawing',
        'convergence.__version__',
    )
    found = [
        f'{source.name}:{line} imports {name}'
        for source in sources()
        if is_within(source.module, 'convergence.api')
        for line, name in source.imports
        if is_within(name, 'convergence') and not any(is_within(name, package) for package in allowed)
    ]
    assert found == []


def test_nothing_is_imported_relatively():
    """Relative imports would slip past the tests above."""
    import ast

    found = [
        f'{source.name}:{node.lineno}'
        for source in sources()
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert found == []


def test_every_package_is_shipped():
    """A directory without __init__.py is silently left out of the wheel."""
    missing = [
        str(directory.relative_to(ROOT))
        for directory in {
            path.parent for path in (*PACKAGE.rglob('*.py'), *(SIMULATOR / 'convergence_simulator').rglob('*.py'))
        }
        | {ROOT / 'migrations' / 'versions'}
        if not (directory / '__init__.py').exists()
    ]
    assert missing == []
