"""The server and clients that are slow, many, malformed or behind a proxy."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import logging
import socket
import ssl
import threading
import time
from dataclasses import replace

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from convergence import errors
from convergence.api.paths import plain
from convergence.api.server import HttpServer, Serving, Tls, _Refusals
from convergence.api.serving.lanes import Lane, lane_of
from convergence.api.serving.ledger import ConnectionLedger
from convergence.api.serving.limits import ServingLimits
from convergence.api.serving.proxies import Origin, Proxies
from tests.api.installation import LONG_S
from tests.sockets.hostile import KINDS, Hostile, Target

LONG_ANSWER = b'x' * 32 * 1024 * 1024
"""More than the buffers of two sockets hold."""
SMALL = 'GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n'


class Application:
    """Answers by the path. `/hang` takes until `release` is set; `/stream` has no end until then."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.hanging = threading.Semaphore(0)
        self.closed = threading.Event()
        self.environs: list[dict] = []

    def __call__(self, environ, start_response):
        self.environs.append(environ)
        path = environ['PATH_INFO']
        if path.startswith('/hang'):
            self.hanging.release()
            assert self.release.wait(LONG_S)
        if path.startswith('/stream'):
            start_response('200 OK', [('Content-Type', 'text/event-stream')])
            return self.stream()
        body = LONG_ANSWER if path == '/long' else environ['wsgi.input'].read() or b'small'
        start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', str(len(body)))])
        return [body]

    def stream(self):
        try:
            yield b'first'
            self.hanging.release()
            while not self.release.wait(0.01):
                yield b''
        finally:
            self.closed.set()


@pytest.fixture
def application():
    """The application; what hangs in it ends with the test."""
    made = Application()
    yield made
    made.release.set()


@pytest.fixture
def serve(application):
    """Starts servers; they end with the test."""
    started = []

    def start(limits: ServingLimits | None = None, *, threads: int = 2, **serving) -> HttpServer:
        server = HttpServer(
            application, '127.0.0.1', 0, threads=threads, serving=Serving(limits or ServingLimits(), **serving)
        )
        server.start()
        started.append(server)
        return server

    yield start
    application.release.set()
    for server in started:
        server.stop(LONG_S)


def get(server: HttpServer, path: str = '/small', **arguments) -> requests.Response:
    return requests.get(f'{server.address}{path}', timeout=LONG_S, **arguments)


@contextlib.contextmanager
def opened(server: HttpServer, said: str | bytes = b''):
    """A socket to a server, on which something has been said."""
    host, port = server.address.rpartition('/')[2].rsplit(':', 1)
    with socket.create_connection((host, int(port)), timeout=LONG_S) as connection:
        connection.sendall(said.encode() if isinstance(said, str) else said)
        yield connection


def everything(connection: socket.socket) -> bytes:
    """What a server says until it closes."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b''.join(parts)


def until(condition) -> None:
    """Wait for something that cannot be seen from outside."""
    ends = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def asked(server: HttpServer, said: str | bytes) -> bytes:
    with opened(server, said) as connection:
        return everything(connection)


# --- slow clients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('kind', KINDS)
def test_slow_clients_keep_no_other_client_waiting(serve, kind):
    """With far more of them than there are threads, from another address of this machine."""
    server = serve(replace(ServingLimits(), max_client_connections=30), threads=2)
    target = Target(server.address, post='/body', get='/long', source='127.0.0.2')
    with Hostile(target, kind, 60, pause_s=0.5) as hostile:
        assert hostile.wait_until_all_have_begun(LONG_S)
        for _ in range(20):
            assert get(server).text == 'small'


def test_a_header_has_to_arrive_within_its_time_however_many_bytes_come(serve):
    server = serve(replace(ServingLimits(), header_timeout_s=0.5))
    with opened(server, 'GET /small HTTP/1.1\r\nX-Slow: ') as connection:
        ended = threading.Event()

        def dribble() -> None:
            with contextlib.suppress(OSError):
                while not ended.wait(0.05):
                    connection.sendall(b'x')

        threading.Thread(target=dribble, daemon=True).start()
        answer = everything(connection)
        ended.set()
    assert answer.startswith(b'HTTP/1.1 408 ')
    assert json.loads(answer.partition(b'\r\n\r\n')[2])['error']['message'].startswith('The request has taken too long')


def test_who_says_nothing_at_all_is_cut_off_without_a_word(serve):
    assert asked(serve(replace(ServingLimits(), header_timeout_s=0.2)), b'') == b''


def test_a_body_that_does_not_arrive_is_answered_with_408_and_fills_no_log(serve, caplog):
    server = serve(replace(ServingLimits(), body_timeout_s=0.3))
    with caplog.at_level(logging.DEBUG, 'convergence'):
        answer = asked(server, 'POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{')
    assert answer.startswith(b'HTTP/1.1 408 ')
    said = [record for record in caplog.records if '408' in record.getMessage()]
    assert [record.levelname for record in said] == ['DEBUG']
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_who_does_not_take_its_answer_holds_no_thread_and_is_cut_off(serve):
    server = serve(replace(ServingLimits(), send_timeout_s=1.0), threads=1)
    with opened(server, 'GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n') as connection:
        assert get(server).text == 'small'
        until(lambda: not server._connections)
        assert len(everything(connection)) < len(LONG_ANSWER)


def test_a_connection_is_closed_that_is_not_used(serve):
    with opened(serve(replace(ServingLimits(), keep_alive_s=0.3)), SMALL) as connection:
        answer = everything(connection)
    assert answer.startswith(b'HTTP/1.1 200 ')
    assert answer.endswith(b'small')


# --- many clients -------------------------------------------------------------------------------------------------


def test_of_too_many_connections_the_one_that_waits_longest_goes(serve):
    server = serve(replace(ServingLimits(), max_client_connections=3))
    with contextlib.ExitStack() as stack:
        first, *others = [stack.enter_context(opened(server)) for _ in range(3)]
        assert get(server).text == 'small'
        assert everything(first) == b''
        for each in others:
            each.sendall(SMALL.encode())
            assert each.recv(100).startswith(b'HTTP/1.1 200 ')


def test_a_connection_that_is_being_served_is_not_given_up_for_another(serve, application):
    server = serve(replace(ServingLimits(), max_client_connections=2))
    hang = 'GET /hang HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    with opened(server, hang) as first, opened(server, hang) as second:
        for _ in range(2):
            assert application.hanging.acquire(timeout=LONG_S)
        assert asked(server, SMALL) == b''
        application.release.set()
        assert everything(first).endswith(b'small')
        assert everything(second).endswith(b'small')


def test_one_client_may_have_so_many_requests_waiting_and_no_more(serve, application):
    server = serve(replace(ServingLimits(), max_client_requests=2), threads=1)
    hang = 'GET /hang HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    with opened(server, hang) as first:
        assert application.hanging.acquire(timeout=LONG_S)
        with opened(server, hang) as second:
            until(lambda: sum(server._lanes._lanes[Lane.REQUESTS]._held.values()) == 2)
            refused = get(server)
            assert 'max_client_requests' in refused.json()['error']['message']
            assert refused.headers['Retry-After']
            application.release.set()
            assert everything(second).endswith(b'small')
        assert everything(first).endswith(b'small')


def test_probes_are_answered_while_all_threads_hang(serve, application):
    server = serve(threads=1)
    with opened(server, 'GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n'):
        assert application.hanging.acquire(timeout=LONG_S)
        for path in ('/health/live', '/health/ready', '/healthcheck'):
            assert get(server, path).status_code == 200


def test_streams_take_no_thread_from_requests_and_the_thread_of_who_has_gone_is_free(serve, application):
    server = serve(threads=1, streams=1)
    with opened(server, 'GET /stream/events?follow HTTP/1.1\r\nHost: localhost\r\n\r\n') as stream:
        assert application.hanging.acquire(timeout=LONG_S)
        assert get(server).text == 'small'
        said = b''
        while b'first' not in said:
            said += stream.recv(1000)
    assert application.closed.wait(LONG_S)


def test_a_crowd_that_follows_events_keeps_nobody_waiting(serve, application):
    server = serve(replace(ServingLimits(), max_client_connections=200, max_client_requests=200), threads=2, streams=4)
    follow = 'GET /stream/events?follow HTTP/1.1\r\nHost: localhost\r\n\r\n'
    with contextlib.ExitStack() as stack:
        for _ in range(90):
            stack.enter_context(opened(server, follow))
        assert application.hanging.acquire(timeout=LONG_S)
        for _ in range(10):
            assert get(server).text == 'small'


class Held:
    """A connection, for the ledger."""

    def __init__(self, ledger: ConnectionLedger, peer: str, waits_since: float | None = 0.0) -> None:
        self.peer = self.account = peer
        self.waits_since, self.buffered, self.why = waits_since, 0, ''
        self._ledger = ledger

    def evict(self, why: str) -> None:
        """Go."""
        self.why = why
        self._ledger.leave(self)


def test_room_is_made_where_one_client_has_most():
    ledger = ConnectionLedger(replace(ServingLimits(), max_connections=4, max_client_connections=4))
    many = [Held(ledger, 'many', waits_since=10.0 - number) for number in range(3)]
    one = Held(ledger, 'one', waits_since=-100.0)
    assert all(ledger.enter(each) for each in (*many, one))
    assert ledger.enter(Held(ledger, 'new'))
    assert (one.why, [bool(each.why) for each in many]) == ('', [False, False, True])
    assert ledger.count == 4


def test_memory_is_taken_from_those_who_hold_most_and_wait():
    ledger = ConnectionLedger(replace(ServingLimits(), max_buffered_bytes=100, max_client_buffered_bytes=60))
    large, served, small = Held(ledger, 'a'), Held(ledger, 'a', None), Held(ledger, 'a')
    other = Held(ledger, 'b')
    assert all(ledger.enter(each) for each in (large, served, small, other))
    assert ledger.charge(large, 30)
    assert ledger.charge(served, 20)
    assert ledger.charge(small, 15)
    assert (bool(large.why), ledger.buffered) == (True, 35)
    assert not ledger.charge(small, 50), 'the one that asks holds most of those that may go'
    assert ledger.charge(small, 38)
    assert ledger.charge(other, 37)
    third = Held(ledger, 'c')
    assert ledger.enter(third)
    assert ledger.charge(third, 10)
    assert (bool(small.why), other.why) == (True, '')
    for each in (third, other, other, served):
        ledger.leave(each)
    assert (ledger.count, ledger.buffered) == (0, 0)


def test_bodies_of_one_client_fill_so_much_memory_and_no_more(serve):
    server = serve(replace(ServingLimits(), max_client_buffered_bytes=1_000_000, max_body_bytes=900_000))
    head = 'POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n'
    with opened(server, head.encode() + b'x' * 899_000) as largest:
        with opened(server, head.encode() + b'x' * 500_000) as second:
            second.sendall(b'x' * 200_000)
            # One of the two had to go, and a client with a small request is served.
            assert requests.post(f'{server.address}/body', data='small', timeout=LONG_S).text == 'small'
            second.settimeout(0.0)
            largest.settimeout(LONG_S)
            gone = everything(largest)
        assert gone == b'' or gone.startswith(b'HTTP/1.1 503 ')


# --- malformed requests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('said', 'status'),
    [
        ('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400),
        ('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd', 400),
        ('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 4\r\n\r\nabcd', 400),
        ('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n', 400),
        ('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n', 501),
        ('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400),
        ('GET / HTTP/1.1\r\n\r\n', 400),
        ('GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n', 400),
        ('GET / HTTP/1.1\r\nHost: x\r\n folded\r\nX : y\r\n\r\n', 400),
        ('GET small HTTP/1.1\r\nHost: x\r\n\r\n', 400),
        ('GET /#part HTTP/1.1\r\nHost: x\r\n\r\n', 400),
        ('CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n', 400),
        ('GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n', 200),
        ('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400),
        ('GET / HTTP/1.1\r\nHost: x\r\nX-Long: ' + 'x' * 70_000, 431),
        ('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n', 413),
        ('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n' + '1\r\nx\r\n' * 10_100, 413),
    ],
    ids=lambda value: value[:60].replace('\r\n', ' ') if isinstance(value, str) else str(value),
)
def test_what_can_be_understood_in_two_ways_or_none_is_refused(serve, said, status, caplog):
    server = serve(replace(ServingLimits(), keep_alive_s=0.2))
    answer = asked(server, said.encode('latin-1'))
    assert answer.startswith(f'HTTP/1.1 {status} '.encode()), answer[:200]
    if status != 200:
        assert json.loads(answer.partition(b'\r\n\r\n')[2])['code'] == status
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_a_second_request_that_is_sent_too_early_is_not_served(serve, application):
    """Whoever could put one into the body of another would get an answer that is not his."""
    answer = asked(serve(), SMALL * 3)
    assert answer.count(b'HTTP/1.1') == 1
    assert answer.endswith(b'small')
    assert len(application.environs) == 1


def test_an_upload_that_waits_for_leave_is_given_it(serve):
    head = 'POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n'
    with opened(serve(), head) as connection:
        assert connection.recv(1000).startswith(b'HTTP/1.1 100 ')
        connection.sendall(b'body')
        assert connection.recv(1000).endswith(b'body')


def test_who_has_nothing_more_to_say_still_gets_the_answer(serve):
    with opened(serve(), SMALL) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert everything(connection).endswith(b'small')


def test_a_body_in_pieces_has_a_length_for_the_application(serve, application):
    pieces = (piece for piece in (b'one ', b'two'))
    assert requests.post(f'{serve().address}/body', data=pieces, timeout=LONG_S).text == 'one two'
    (environ,) = application.environs
    assert environ['CONTENT_LENGTH'] == '7'
    assert 'HTTP_TRANSFER_ENCODING' not in environ


def test_headers_and_paths_reach_the_application_as_wsgi_wants_them(serve, application):
    said = 'GET /a%20b%2Fc/%C3%A9?q=%20 HTTP/1.1\r\nHost: localhost\r\nX_User_Id: mallory\r\nX-Two: 1\r\nX-Two: 2\r\n'
    asked(serve(), f'{said}Connection: close\r\n\r\n')
    (environ,) = application.environs
    assert environ['PATH_INFO'] == '/a b%2Fc/\xc3\xa9'
    assert environ['QUERY_STRING'] == 'q=%20'
    assert environ['HTTP_X_TWO'] == '1,2'
    assert not [name for name in environ if 'USER_ID' in name], 'with an underscore it would pass for X-User-Id'


# --- proxies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('peer', 'headers', 'origin'),
    [
        ('192.0.2.1', {'x-forwarded-for': '1.1.1.1', 'x-forwarded-proto': 'https'}, Origin('192.0.2.1', 'http')),
        ('10.0.0.1', {}, Origin('10.0.0.1', 'http')),
        ('10.0.0.1', {'x-forwarded-for': '1.1.1.1', 'x-forwarded-proto': 'https'}, Origin('1.1.1.1', 'https')),
        ('10.0.0.1', {'x-forwarded-for': '9.9.9.9, 1.1.1.1, 10.0.0.2'}, Origin('1.1.1.1', 'http')),
        ('10.0.0.1', {'x-forwarded-for': '127.0.0.1, nonsense, 10.0.0.2'}, Origin('10.0.0.2', 'http')),
        ('10.0.0.1', {'x-forwarded-for': '[2001:db8::1]:443'}, Origin('2001:db8::1', 'http')),
        ('10.0.0.1', {'x-forwarded-for': '1.1.1.1:5000', 'x-forwarded-proto': 'gopher'}, Origin('1.1.1.1', 'http')),
    ],
)
def test_only_our_proxies_say_for_whom_they_ask(peer, headers, origin):
    assert Proxies(['10.0.0.0/8']).origin(peer, 'http', headers) == origin


@pytest.mark.parametrize('trusted', ['127.0.0.1', '127.0.0.0/8', '::ffff:127.0.0.1', '::ffff:127.0.0.0/104'])
@pytest.mark.parametrize('peer', ['127.0.0.1', '::ffff:127.0.0.1'])
def test_an_address_is_the_same_in_both_ways_of_writing_it(trusted, peer):
    proxies, said = Proxies([trusted]), {'x-forwarded-for': '::ffff:192.0.2.7'}
    assert proxies.trusts(peer)
    assert proxies.origin(peer, 'http', said) == Origin('192.0.2.7', 'http')
    assert not proxies.trusts('::1')
    assert Proxies(['::1']).origin('::ffff:192.0.2.9', 'http', said) == Origin('192.0.2.9', 'http')


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason='this machine has no sockets for both kinds')
def test_behind_a_socket_for_both_kinds_a_proxy_is_believed(application):
    server = HttpServer(
        application, '::', 0, threads=1, serving=Serving(proxies=Proxies(['127.0.0.1']), limits=ServingLimits())
    )
    server.start()
    try:
        port = int(server.address.rpartition(':')[2])
        requests.get(f'http://127.0.0.1:{port}/', headers={'X-Forwarded-For': '192.0.2.7'}, timeout=LONG_S)
        requests.get(f'http://127.0.0.1:{port}/', timeout=LONG_S)
    finally:
        server.stop(LONG_S)
    assert [each['REMOTE_ADDR'] for each in application.environs] == ['192.0.2.7', '127.0.0.1']


STACK_BY_ARN = '/v1/p/stacks/arn:openstack:heat::p:stacks/s/'


@pytest.mark.parametrize(
    ('path', 'query', 'lane'),
    [
        ('/v1/p/stacks/s/1/events', 'follow', Lane.STREAMS),
        ('/v1/p/stacks/s/1/events', 'foll%6Fw=1', Lane.STREAMS),
        ('/v1/p/stacks/s/1/events', '', Lane.REQUESTS),
        (f'{STACK_BY_ARN}1/events', 'follow', Lane.STREAMS),
        (f'{STACK_BY_ARN}s%2F1%2Fevents', 'follow', Lane.REQUESTS),
        (f'{STACK_BY_ARN}%65vents', 'follow', Lane.STREAMS),
        ('/health/live', '', Lane.ALIVE),
        ('/health/ready', '', Lane.PROBES),
    ],
)
def test_the_thread_is_chosen_by_the_path_as_the_application_reads_it(path, query, lane):
    assert lane_of(path, query) is lane


@pytest.mark.parametrize(
    ('path', 'read'),
    [
        (f'{STACK_BY_ARN}1/events', '/v1/p/stacks/1/events'),
        (f'{STACK_BY_ARN}a%20b', '/v1/p/stacks/a b'),
        (f'{STACK_BY_ARN}s%2F1%2Fevents', f'{STACK_BY_ARN}s%2F1%2Fevents'),
        ('/v1/p/stacks/arn:openstack:heat::q:stacks/s/1', '/v1/p/stacks/arn:openstack:heat::q:stacks/s/1'),
    ],
)
def test_a_name_in_one_piece_becomes_one_part_of_the_path_and_no_more(path, read):
    assert plain(path) == read


def test_what_a_proxy_says_does_not_reach_the_application_from_anybody_else(serve, application):
    headers = {'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'evil.example'}
    get(serve(), headers=headers)
    get(serve(proxies=Proxies(['127.0.0.0/8'])), headers=headers)
    stranger, proxy = application.environs
    assert (stranger['REMOTE_ADDR'], stranger['wsgi.url_scheme']) == ('127.0.0.1', 'http')
    assert (proxy['REMOTE_ADDR'], proxy['wsgi.url_scheme']) == ('192.0.2.7', 'https')
    assert not [name for each in (stranger, proxy) for name in each if 'FORWARDED' in name]


# --- TLS, beginning and end ---------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    """A certificate for this machine, signed by itself."""
    directory = tmp_path_factory.mktemp('tls')
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, 'localhost')])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName('localhost')]), critical=False)
        .sign(key, hashes.SHA256())
    )
    found = Tls(directory / 'api.crt', directory / 'api.key')
    found.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    found.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return found


def test_with_a_certificate_the_server_speaks_https_and_nothing_else(serve, application, certificate):
    server = serve(replace(ServingLimits(), header_timeout_s=1.0), tls=certificate)
    assert server.address.startswith('https://')
    url = server.address.replace('127.0.0.1', 'localhost')
    with requests.Session() as session:
        session.trust_env = False  # it would name other certificates
        session.verify = str(certificate.certificate)
        for _ in range(2):
            assert session.get(f'{url}/small', timeout=LONG_S).text == 'small'
        assert len(session.get(f'{url}/long', timeout=LONG_S).content) == len(LONG_ANSWER)
        assert session.post(f'{url}/body', data=b'x' * 200_000, timeout=LONG_S).text == 'x' * 200_000
    assert application.environs[0]['wsgi.url_scheme'] == 'https'
    assert b'HTTP/1.1 200' not in asked(server, SMALL)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(('127.0.0.1', int(url.rpartition(':')[2]))) as plain, old.wrap_socket(plain) as made:
        assert made.version() == 'TLSv1.2'


def test_who_never_ends_the_handshake_makes_room_for_others(serve, certificate):
    server = serve(replace(ServingLimits(), max_client_connections=3), tls=certificate)
    url = server.address.replace('127.0.0.1', 'localhost')
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(opened(server))
        assert requests.get(f'{url}/small', verify=str(certificate.certificate), timeout=LONG_S).text == 'small'


def test_a_certificate_that_cannot_be_used_is_named(tmp_path, application):
    missing = Tls(tmp_path / 'no.crt')
    with pytest.raises(errors.ConfigurationError, match=r'cert_file.*no\.crt'):
        HttpServer(application, '127.0.0.1', 0, threads=1, serving=Serving(tls=missing))


def test_the_server_ends_at_once_whoever_has_a_connection_open(serve):
    server = serve()
    with opened(server), opened(server, 'GET / HT'), opened(server, SMALL) as used:
        assert used.recv(1000)
        assert server.stop(LONG_S)
        assert everything(used) == b''


def test_a_request_in_hand_is_answered_before_the_end(serve, application):
    server = serve()
    with opened(server, 'GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n') as connection:
        assert application.hanging.acquire(timeout=LONG_S)
        assert not server.stop(0.2)
        application.release.set()
        assert everything(connection).endswith(b'small')
        assert server.stop(LONG_S)


def test_an_api_that_may_open_no_more_files_says_once_what_to_do(caplog):
    refusals = _Refusals()
    for _ in range(3):
        refusals.log(OSError(errno.EMFILE, 'Too many open files'), 500)
    (record,) = caplog.records
    for word in ('Too many open files', 'LimitNOFILE=', 'max_connections (500)'):
        assert word in record.getMessage()
