"""The in-memory driver: as strict as a broker. What it shares with brokers is in tests/contract/test_transport.py."""

from __future__ import annotations

import queue
import threading

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_messaging.transport import RPCTransport

from convergence.rpc.memory import Broker, MemoryDriver, MessageTooLarge

LONG_S = 60.0


@pytest.fixture
def driver(exchange):
    return open_driver(exchange)


@pytest.fixture
def transport(driver):
    return RPCTransport(driver)


@pytest.fixture
def serve(transport):
    started = []

    def start(endpoint, **target):
        server = oslo_messaging.get_rpc_server(transport, oslo_messaging.Target(topic='topic', **target), [endpoint])
        server.start(override_pool_size=2)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def open_driver(name):
    return MemoryDriver(cfg.CONF, oslo_messaging.TransportURL.parse(cfg.CONF, f'memory:///{name}'), 'exchange')


def client(transport, **options):
    return oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(topic='topic'), **options)


class Endpoint:
    def __init__(self) -> None:
        self.arrived: queue.Queue = queue.Queue()
        self.hold = threading.Event()

    def note(self, context, value):
        self.arrived.put(value)

    def echo(self, context, value):
        return value

    def change(self, context, value):
        value['changed'] = True
        return value

    def odd(self, context):
        return {'when': object()}

    def fail(self, context):
        raise KeyError('missing')

    def wait(self, context):
        assert self.hold.wait(LONG_S)


def test_values_are_copied_and_become_json(transport, serve):
    serve(Endpoint(), server='one')
    mine = {'list': (1, 2), 5: None}
    assert client(transport).call({}, 'change', value=mine) == {'list': [1, 2], '5': None, 'changed': True}
    assert mine == {'list': (1, 2), 5: None}


def test_what_is_no_json_is_refused_on_both_sides(transport, serve):
    serve(Endpoint(), server='one')
    with pytest.raises(TypeError, match='not JSON serializable'):
        client(transport).cast({}, 'note', value={1, 2})
    with pytest.raises(ValueError, match='not JSON compliant'):
        client(transport).cast({}, 'note', value=float('nan'))
    with pytest.raises(TypeError, match='not JSON serializable'):
        client(transport).call({}, 'odd')


def test_a_cast_has_a_size_limit(transport, serve):
    endpoint = Endpoint()
    serve(endpoint, server='one')
    with pytest.raises(oslo_messaging.ClientSendError, match='the limit is 69632'):
        client(transport).cast({}, 'note', value='x' * 70_000)
    assert client(transport).call({}, 'echo', value='x' * 70_000) == 'x' * 70_000
    assert issubclass(MessageTooLarge, oslo_messaging.MessagingException)


def test_errors_from_foreign_modules_lose_their_class(transport, serve):
    serve(Endpoint(), server='one')
    with pytest.raises(KeyError):
        client(transport).call({}, 'fail')
    with pytest.raises(oslo_messaging.RemoteError, match='NoSuchMethod'):
        client(transport).call({}, 'nothing')


def test_a_message_can_be_sent_to_one_server(transport, serve):
    one, two = Endpoint(), Endpoint()
    serve(one, server='one')
    serve(two, server='two')
    for number in range(3):
        client(transport).prepare(server='two').cast({}, 'note', value=number)
    assert [two.arrived.get(timeout=LONG_S) for _ in range(3)] == [0, 1, 2]
    assert one.arrived.empty()


def test_servers_take_turns(transport, serve):
    endpoints = [Endpoint(), Endpoint(), Endpoint()]
    for number, endpoint in enumerate(endpoints):
        serve(endpoint, server=f'server-{number}')
    for number in range(9):
        client(transport).cast({}, 'note', value=number)
    for number, endpoint in enumerate(endpoints):
        got = {endpoint.arrived.get(timeout=LONG_S) for _ in range(3)}
        assert got == {number, number + 3, number + 6}


def test_what_nobody_listens_to_is_dropped_and_counted(driver, transport):
    client(transport).cast({}, 'note', value=1)
    client(transport).prepare(server='gone').cast({}, 'note', value=1)
    client(transport).prepare(fanout=True).cast({}, 'note', value=1)
    assert driver.broker.counts.dropped == 2
    assert driver.broker.counts.delivered == 0


def test_a_call_whose_caller_gave_up_is_not_carried_out_later(driver, transport, serve):
    serve(Endpoint(), server='one').stop()
    with pytest.raises(oslo_messaging.MessagingTimeout, match=r'no answer from topic within 0.01 s'):
        client(transport, timeout=0.01).call({}, 'note', value='too late')
    endpoint = Endpoint()
    serve(endpoint, server='two')
    client(transport).cast({}, 'note', value='in time')
    assert endpoint.arrived.get(timeout=LONG_S) == 'in time'
    assert driver.broker.counts.expired == 1


def test_an_answer_that_comes_too_late_disturbs_nobody(transport, serve):
    endpoint = Endpoint()
    serve(endpoint, server='one')
    with pytest.raises(oslo_messaging.MessagingTimeout):
        client(transport, timeout=0.01).call({}, 'wait')
    endpoint.hold.set()
    assert client(transport).call({}, 'echo', value=3) == 3


def test_messages_before_start_wait_and_go_on_to_others_when_it_never_comes(driver):
    target = oslo_messaging.Target(topic='topic', server='one')
    early, received = driver.listen(target, 1, None), []
    for number in range(3):
        driver.send(oslo_messaging.Target(topic='topic'), {}, {'number': number})
    early.stop()
    later = driver.listen(target(server='two'), 1, None)
    later.start(lambda messages: received.extend(message.message['number'] for message in messages))
    assert received == [0, 1, 2]
    later.stop()


def test_a_message_can_be_given_back(driver):
    listener, seen = driver.listen(oslo_messaging.Target(topic='topic', server='one'), 1, None), []

    def receive(messages):
        seen.append(messages[0].message['number'])
        if len(seen) < 3:
            messages[0].requeue()

    listener.start(receive)
    driver.send(oslo_messaging.Target(topic='topic'), {}, {'number': 7})
    listener.stop()
    assert seen == [7, 7, 7]


def test_brokers_of_different_names_know_nothing_of_each_other(exchange):
    assert open_driver(exchange).broker is open_driver(exchange).broker is Broker.named(exchange)
    assert open_driver(exchange).broker is not open_driver(exchange + 'x').broker


def test_notifications_go_to_those_who_listen(driver):
    received = []
    listener = driver.listen_for_notifications([(oslo_messaging.Target(topic='events'), 'info')], None, 1, None)
    listener.start(lambda messages: received.append(messages[0].message))
    driver.send_notification(oslo_messaging.Target(topic='events.info'), {}, {'event': 'end'}, 2.0)
    driver.send_notification(oslo_messaging.Target(topic='events.error'), {}, {'event': 'error'}, 2.0)
    listener.stop()
    assert received == [{'event': 'end'}]
    with pytest.raises(NotImplementedError, match='pools'):
        driver.listen_for_notifications([], 'pool', 1, None)


def test_many_senders_lose_nothing_while_servers_come_and_go(transport, serve):
    endpoint, senders = Endpoint(), 4
    first = serve(endpoint, server='first')

    def send(sender):
        for number in range(200):
            client(transport).cast({}, 'note', value=[sender, number])

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(senders)]
    for thread in threads:
        thread.start()
    serve(endpoint, server='second')
    first.stop()
    serve(endpoint, server='third')
    for thread in threads:
        thread.join(LONG_S)
    got = sorted(tuple(endpoint.arrived.get(timeout=LONG_S)) for _ in range(200 * senders))
    assert got == sorted((sender, number) for sender in range(senders) for number in range(200))
    assert endpoint.arrived.empty()


def test_the_driver_is_found_by_its_name():
    from importlib.metadata import entry_points

    found = [each for each in entry_points(group='oslo.messaging.drivers') if each.name == 'memory']
    if not found:
        pytest.skip('convergence is not installed, so its entry points are unknown')
    assert {each.load() for each in found} == {MemoryDriver}
