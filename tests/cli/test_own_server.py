"""A token is sent only to the server that it belongs to, and a command goes to no server that it was not sent to."""

import contextlib
import json
import os
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from convergence.api.server import HttpServer
from convergence.cli.connection import local_servers, local_token, targets
from convergence.cli.connection.client import Api
from convergence.cli.connection.local_servers import LocalServer
from convergence.cli.exits import Unreachable
from convergence.cmd import convergence as command
from convergence.signing import server_proof
from tests.api.installation import application

SECRET = 'b' * 64


class Thief(ThreadingHTTPServer):
    """A process of another account. It keeps all headers that it gets, and answers as told."""

    def __init__(self, address, proof=lambda path: '0' * 64, family=socket.AF_INET):
        self.address_family, self.seen, self.proof = family, [], proof
        super().__init__(address, Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def tokens(self):
        return [headers['X-Auth-Token'] for headers in self.seen if headers['X-Auth-Token']]


class Answers(BaseHTTPRequestHandler):
    """Answers every request of a `Thief`."""

    def do_GET(self):
        self.server.seen.append(self.headers)
        body = json.dumps({'proof': self.server.proof(self.path), 'stacks': []}).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def thief(host='127.0.0.1', port=0, **options):
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    server = Thief((host, port), family=family, **options)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """The registry of this test; no other server is configured."""
    for name in [name for name in os.environ if name.startswith(('OS_', 'CONVERGENCE_'))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'config'))
    (tmp_path / 'work').mkdir()
    monkeypatch.chdir(tmp_path / 'work')
    return local_servers.registry(os.environ)


@contextlib.contextmanager
def announced(directory, url, copies, secret=SECRET):
    """The files of a running server; it may listen or not."""
    data = directory / local_servers.DATA
    token_file = data / 'token'
    with local_servers.claimed(data):
        local_token.made(token_file)
        server = LocalServer(url, os.getpid(), str(data), '1', str(token_file), secret)
        with local_servers.announced(server, copies):
            yield server


@pytest.fixture
def served(installation, tmp_path, copies):
    """A real server that proves its identity, and its record."""
    data = tmp_path / local_servers.DATA
    made = []
    wsgi = application(
        installation.embedded.client,
        token=local_token.made(data / 'token'),
        prove=lambda nonce: server_proof(SECRET, nonce, made[0].address),
    )
    made.append(HttpServer(wsgi, '127.0.0.1', 0, threads=4))
    made[0].start()
    with announced(tmp_path, made[0].address, copies) as server:
        yield server
    made[0].stop(10)


def ask(**environment):
    return Api(targets.find(targets.ServerArguments(), dict(os.environ) | environment, targets.Path.cwd())).get(
        'stacks', repeats=1
    )


def test_the_own_server_gets_its_token(served, copies):
    assert ask() == ask(CONVERGENCE_ENDPOINT=served.url) == {'stacks': []}
    assert ask(CONVERGENCE_ENDPOINT=served.url, CONVERGENCE_TOKEN=served.token()) == {'stacks': []}


def test_another_host_with_the_same_port_gets_no_token(served, copies):
    port = urlsplit(served.url).port
    with thief('::1', port) as other:
        ask(CONVERGENCE_ENDPOINT=f'http://[::1]:{port}')
        assert other.seen and other.tokens == []
        with pytest.raises(Unreachable, match='was not sent'):
            ask(CONVERGENCE_ENDPOINT=f'http://[::1]:{port}', CONVERGENCE_TOKEN=served.token())
        assert other.tokens == []
    with thief('127.0.0.2', port) as other:
        ask(CONVERGENCE_ENDPOINT=f'http://127.0.0.2:{port}')
        assert other.seen and other.tokens == []


@pytest.mark.parametrize('resolved', [['::1'], ['::1', '127.0.0.1']])
def test_localhost_is_the_announced_address_or_none(served, copies, monkeypatch, resolved):
    """On most machines localhost is ::1 first, where another account may listen."""
    port, real = urlsplit(served.url).port, socket.getaddrinfo

    def looked_up(host, *arguments, **options):
        if host != 'localhost':
            return real(host, *arguments, **options)
        return [each for address in resolved for each in real(address, *arguments, **options)]

    monkeypatch.setattr(socket, 'getaddrinfo', looked_up)
    with thief('::1', port) as other:
        assert ask(CONVERGENCE_ENDPOINT=f'http://localhost:{port}') == {'stacks': []} or other.seen
        assert other.tokens == []
        assert bool(other.seen) == ('127.0.0.1' not in resolved)


def relayed(url):
    """What another process gets if it asks the real server for the proof."""
    import urllib.request

    def proof(path):
        with urllib.request.urlopen(url + path) as answer:
            return json.load(answer)['proof']

    return proof


@pytest.mark.parametrize('how', ['guess', 'relay', 'old'])
def test_a_process_in_the_place_of_the_server_gets_no_token(served, copies, tmp_path, how):
    """The server died and another process took its port; its record is still believed. The proof is not."""
    proofs = {
        'guess': lambda path: '0' * 64,
        'relay': relayed(served.url),
        'old': lambda path: server_proof('c' * 64, path.partition('=')[2], served.url),
    }
    with thief(proof=proofs[how]) as other:
        url = f'http://127.0.0.1:{other.server_port}'
        (tmp_path / 'two').mkdir()
        with announced(tmp_path / 'two', url, copies) as record:
            for environment in ({}, {'CONVERGENCE_TOKEN': record.token()}):
                with pytest.raises(Unreachable, match=r'is not the server with data in .*no token was sent'):
                    ask(CONVERGENCE_ENDPOINT=url, **environment)
        assert other.seen and other.tokens == []


def test_a_process_that_takes_the_port_between_two_requests_gets_no_token(copies, tmp_path):
    """A command with --wait outlives its server."""
    with thief() as other:
        url = f'http://127.0.0.1:{other.server_port}'
        other.proof = lambda path: server_proof(SECRET, path.partition('=')[2], url)
        with announced(tmp_path, url, copies) as record:
            api = Api(targets.find(targets.ServerArguments(), os.environ, targets.Path.cwd()))
            api.get('stacks', repeats=1)
            assert other.tokens == [record.token()]
            other.proof = lambda path: 'ü'
            with pytest.raises(Unreachable, match='no token was sent'):
                api.get('stacks', repeats=1)
            assert len(other.tokens) == 1
        with pytest.raises(Unreachable, match='does not run, so its token was not sent'):
            api.get('stacks', repeats=1)


def test_a_token_that_was_exported_goes_to_no_other_process_when_the_server_is_down(copies, tmp_path):
    with thief() as other:
        url = f'http://127.0.0.1:{other.server_port}'
        with announced(tmp_path / 'elsewhere', url, copies) as record:
            token = record.token()
        for endpoint in (url, 'http://192.0.2.1:8004'):
            with pytest.raises(Unreachable, match='does not run, so its token was not sent to'):
                ask(CONVERGENCE_ENDPOINT=endpoint, CONVERGENCE_TOKEN=token)
        assert other.seen == []
        ask(CONVERGENCE_ENDPOINT=url, CONVERGENCE_TOKEN='of-another-kind-of-server')
        assert other.tokens == ['of-another-kind-of-server']


def test_a_server_in_the_configuration_file_gets_the_token_in_the_same_way(served, copies, tmp_path):
    path = tmp_path / 'cli.yaml'
    path.write_text(f'servers: {{mine: {{endpoint: "{served.url}"}}}}\ndefault: mine\n')
    assert ask(CONVERGENCE_CLIENT_CONFIG=str(path)) == {'stacks': []}
    with thief() as other:
        path.write_text(
            f'servers: {{mine: {{endpoint: "http://127.0.0.1:{other.server_port}", token: "{served.token()}"}}}}\n'
        )
        with pytest.raises(Unreachable, match='was not sent'):
            ask(CONVERGENCE_CLIENT_CONFIG=str(path), CONVERGENCE_SERVER='mine')
        assert other.tokens == []


def test_only_the_account_reads_the_secret(copies, tmp_path):
    with announced(tmp_path, 'http://127.0.0.1:9', copies) as server:
        files = [tmp_path / local_servers.DATA / local_servers.NAME, *copies.iterdir()]
        assert [path.stat().st_mode & 0o777 for path in files] == [0o600] * 3
        assert SECRET not in repr(server)
        assert local_servers.alive(tmp_path / local_servers.DATA).secret == SECRET
        files[0].chmod(0o644)
        assert local_servers.alive(tmp_path / local_servers.DATA).secret == ''
        with pytest.raises(Unreachable, match='cannot prove its identity, so no token was sent'):
            ask()


def test_the_proof_reveals_nothing_and_needs_a_nonce(served, installation):
    import requests

    def proof(nonce):
        return requests.get(f'{served.url}/proof', params={'nonce': nonce}, timeout=10)

    first, second = proof('0' * 32).json(), proof('1' * 32).json()
    assert first != second and re.fullmatch('[0-9a-f]{64}', first['proof'])
    assert first == {'proof': server_proof(SECRET, '0' * 32, served.url)}
    for wrong in ('', '0' * 31, '0' * 129, 'x' * 32, f'{"0" * 32}\n'):
        assert proof(wrong).status_code == 400
    assert installation.ask('GET', '/proof').status_code == 404


# --- the server of a directory --------------------------------------------------------------------------------


def test_a_directory_whose_server_is_down_uses_no_other_server(served, copies, tmp_path, monkeypatch, capfd):
    """`stack delete prod` deleted the stack of another directory."""
    two = tmp_path / 'work' / 'two'
    with announced(two, 'http://127.0.0.1:9', copies):
        pass
    (two / 'below').mkdir()
    for directory, option in ((two, ''), (two / 'below', f' --data {two / local_servers.DATA}')):
        monkeypatch.chdir(directory)
        for arguments in (('stack', 'delete', 'prod', '--yes'), ('stack', 'list')):
            assert command.main(list(arguments)) == 5
            told = f'The server of this directory does not run; start it with "convergence serve{option}".'
            assert told in capfd.readouterr().err
    assert command.main(['stack', 'list', '--endpoint', served.url]) == 0


def test_a_directory_of_another_account_selects_nothing(served, copies, tmp_path, monkeypatch):
    with announced(tmp_path / 'work', 'http://127.0.0.1:9', copies):
        pass
    owner = os.geteuid()
    monkeypatch.setattr(os, 'geteuid', lambda: owner + 1)
    assert local_servers.find(tmp_path / 'work') is None


def test_a_server_that_was_found_elsewhere_is_named_before_something_changes(
    served, copies, tmp_path, monkeypatch, capfd
):
    other = tmp_path.parent / f'{tmp_path.name}-other'
    other.mkdir()
    (other / 's.yaml').write_text(
        'heat_template_version: wallaby\nresources: {v: {type: OS::Heat::Value}}\n'.replace(
            '{type: OS::Heat::Value}', '{type: OS::Heat::Value, properties: {value: x}}'
        )
    )
    line = f'Using the server at {served.url} with data in {tmp_path / local_servers.DATA}.\n'
    template = ('-t', str(other / 's.yaml'))
    for directory, expected in ((other, 1), (tmp_path / 'work', 0)):
        monkeypatch.chdir(directory)
        name = f's{expected}'
        for arguments, count in (
            (('stack', 'list'), 0),
            (('stack', 'create', name, *template, '--dry-run'), 0),
            (('stack', 'create', name, *template, '--wait'), expected),
            (('stack', 'update', name, *template, '--dry-run'), 0),
            (('stack', 'update', name, *template, '--wait'), expected),
            (('stack', 'show', name), 0),
            (('stack', 'delete', name, '--yes', '--wait'), expected),
        ):
            assert command.main(list(arguments)) == 0
            out, err = capfd.readouterr()
            assert (err.count(line), 'Using the server' in out) == (count, False), (arguments, err)
