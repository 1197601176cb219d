"""Fixtures and rules for all tests, those of the simulator and of the plugins included.

`database_url` gives an empty database of each kind in turn, `rabbit_url` a broker, `exchange` a name of its own.
Tests run in a shuffled order, always the same one: ``--order-seed=7`` (or ``random``) gives another.
"""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, settings
from oslo_context import context as request_context
from stevedore.extension import ExtensionManager

from convergence import logs
from convergence.resources.custom import installed_checks
from tests.services import SERVICES, service, unique_name

DATABASES = ('sqlite', 'postgresql', 'mariadb')
_order_seed = pytest.StashKey[int]()

# How fast a machine is, and what else it does, is no property of the code.
settings.register_profile('any machine', deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile('any machine')
# For make test-quick: a fifth of the random examples of each test.
settings.register_profile('quick', settings.get_profile('any machine'), max_examples=20)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the order of the tests be chosen."""
    parser.addoption('--order-seed', default='1', help='order of the tests: a number, or "random"')


def pytest_configure(config: pytest.Config) -> None:
    """Settle the order, so that it can be shown even if nothing runs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in its background so, and programs that are interrupted by tests would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = config.getoption('--order-seed')
    seed = random.randrange(1_000_000) if asked == 'random' else int(asked)
    config.stash[_order_seed] = seed
    config.option.order_seed = str(seed)  # processes that share the tests get it: all have one order


def pytest_report_header(config: pytest.Config) -> str:
    """Show how to repeat this order."""
    return f'order: --order-seed={config.stash[_order_seed]}'


MARIADB_TOO = (
    'tests/contract/test_store_effects',
    'tests/contract/test_store_races',
    'tests/contract/test_store_following',
    'tests/contract/test_store_free_nodes',
    'tests/contract/test_store_sql',
    'tests/contract/test_store_older_state',
    'tests/contract/test_guards',
    'tests/contract/test_many_rows',
    'tests/contract/test_connections',
    'tests/contract/test_statement_batch',
    'tests/db/',
    'tests/cmd/',
)
"""Modules whose tests run on MariaDB with each commit as well: locks, guards, races, batches, outages, migrations.

Elsewhere PostgreSQL stands for both servers, and the test on MariaDB has the mark ``long``.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test on MariaDB as long, except in the modules of `MARIADB_TOO`."""
    call = getattr(item, 'callspec', None)
    if call and 'mariadb' in call.params.values() and not item.nodeid.startswith(MARIADB_TOO):
        item.add_marker(pytest.mark.long)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle modules, and tests inside each: no test may rely on another one having run.

    A single named test, or a list of them, runs as named.
    """
    if _are_named(config):
        return
    shuffle = random.Random(config.stash[_order_seed]).shuffle
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition('::')[0], []).append(item)
    names = sorted(modules)
    shuffle(names)
    for name in names:
        shuffle(modules[name])
    items[:] = [item for name in names for item in modules[name]]


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage among what tests leave, not among all the modules and tests again and again: that costs a
    quarter of the time. While those are made, nothing is garbage.
    """
    gc.disable()
    yield
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Have each of the processes that share the work begin elsewhere.

    All collect all tests. If they went the same way, each would compile each module itself: at any moment all would be
    at the same one, which no other has finished. Now each finds in the cache the modules that the others compiled. The
    order of collection makes no difference later: `pytest_collection_modifyitems` sorts the tests.
    """
    outcome = yield
    shared = getattr(collector.config, 'workerinput', None)
    if shared is not None and isinstance(collector, pytest.Directory) and not _are_named(collector.config):
        found = outcome.get_result().result
        start = len(found) * int(shared['workerid'].removeprefix('gw')) // shared['workercount']
        found[:] = found[start:] + found[:start]


def _are_named(config: pytest.Config) -> bool:
    """Return True if the command line names single tests."""
    return any('::' in argument for argument in config.args)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Make what a test has printed and logged fit to travel between processes, also if it contains hostile text."""
    outcome = yield
    report = outcome.get_result()
    report.sections = [(name, text.encode('utf-8', 'backslashreplace').decode()) for name, text in report.sections]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints the summary which servers this one did not find."""
    output = getattr(session.config, 'workeroutput', None)
    if output is not None:
        output['missing services'] = dict(SERVICES.missing)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    """Hear which servers a process that shared the work did not find."""
    SERVICES.missing.update(getattr(node, 'workeroutput', {}).get('missing services', {}))


def pytest_terminal_summary(terminalreporter) -> None:
    """Say in one line which servers were not there, however many tests that concerns."""
    if SERVICES.missing:
        reasons = ' | '.join(f'{kind} ({reason})' for kind, reason in sorted(SERVICES.missing.items()))
        terminalreporter.write_line(f'services without tests: {reasons}')


def pytest_unconfigure() -> None:
    """Leave the servers as they were."""
    SERVICES.close()


@pytest.fixture(autouse=True)
def nothing_to_log_about() -> Iterator[None]:
    """Begin and end without a current request and without log fields of earlier tests.

    `RequestContext` makes itself the current request of its thread unless told otherwise, and stays that.
    """
    _forget_the_request()
    with logs.bind(**dict.fromkeys(logs.FIELDS)):
        yield
    _forget_the_request()


def _forget_the_request() -> None:
    if request_context.get_current() is not None:
        del request_context._request_store.context


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path) -> Iterator[str]:
    """URL of an empty database of the test's own; the test runs once for each kind.

    Limit it with ``@pytest.mark.parametrize('database_url', ['sqlite'], indirect=True)``.
    """
    if request.param == 'sqlite':
        yield f'sqlite:///{tmp_path / "convergence.sqlite"}'
        return
    server = service(request.param)
    url = server.create()
    yield url
    server.drop(urlsplit(url).path.lstrip('/'))


@pytest.fixture
def rabbit_url() -> str:
    """URL of a broker, in a virtual host of this run where possible. Keep tests apart with `exchange`."""
    return service('rabbit').url


@pytest.fixture
def exchange() -> str:
    """A name for an exchange, topic or queue that no other test uses."""
    return unique_name()


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the manifests and constraints of plugins, which this environment may have."""
    listed = ExtensionManager.list_entry_points
    own = 'convergence.resource_types'
    monkeypatch.setattr(
        ExtensionManager, 'list_entry_points', lambda manager: listed(manager) if manager.namespace == own else []
    )
    installed_checks.cache_clear()
    yield
    installed_checks.cache_clear()
