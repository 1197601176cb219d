"""A server in this process, and the command line in an empty directory."""

import os
import uuid

import pytest

from convergence.api.server import HttpServer
from convergence.cmd import convergence as command
from convergence.config import ApiSettings, EngineSettings, NotificationSettings
from tests.api.installation import application, installed
from tests.receiver import receiving

PUBLIC = 'http://orchestration.example.org'
ENGINE = EngineSettings(
    sweep_interval_s=0.2, enable_stack_abandon=True, enable_stack_adopt=True, hidden_stack_tags=['of-a-service']
)
NOTIFICATIONS = NotificationSettings(allowed_networks=('127.0.0.1',), interval_s=0.05, timeout_s=20.0)


@pytest.fixture(scope='package')
def installation(tmp_path_factory):
    """An installation for all tests of the command line. Each test has a project of its own."""
    parts = {'api': ApiSettings(public_url=PUBLIC), 'engine': ENGINE, 'notifications': NOTIFICATIONS}
    with installed(tmp_path_factory.mktemp('served'), **parts) as api:
        yield api


@pytest.fixture(scope='package')
def url(installation):
    """The URL of its server."""
    server = HttpServer(application(installation.embedded.client), '127.0.0.1', 0, threads=8)
    server.start()
    yield server.address
    server.stop(10)


@pytest.fixture
def here(url, tmp_path, monkeypatch):
    """An empty directory, in which commands find the server and a new project by a variable."""
    for name in [name for name in os.environ if name.startswith(('OS_', 'CONVERGENCE_'))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'config'))
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setenv('CONVERGENCE_ENDPOINT', f'{url}/v1/{uuid.uuid4().hex}')
    return tmp_path


@pytest.fixture
def command_line(here, capfd):
    """Run a command: exit code, standard output, standard error."""

    def run(*arguments):
        code = command.main(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def receiver():
    """A server that webhooks tell."""
    with receiving() as made:
        yield made
