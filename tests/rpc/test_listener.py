"""Notifications of services: heard by one listener of each name, and by whoever else listens."""

import threading

import oslo_messaging
import pytest
from oslo_config import cfg
from oslo_messaging.transport import NotificationTransport

from convergence.errors import ConfigurationError
from convergence.rpc.listener import NotificationListener
from convergence.rpc.memory import MemoryDriver
from convergence.rpc.transport import connect
from tests.services import service, unique_name

LONG_S = 60.0


class Heard:
    """What listeners have heard."""

    def __init__(self):
        self.what, self.changed = [], threading.Condition()

    def listener(self, name):
        """What a listener of that name calls."""

        def hear(event_type, payload):
            with self.changed:
                self.what.append((name, event_type, payload))
                self.changed.notify_all()

        return hear

    def eventually(self, count):
        """Who has heard what, as soon as so much was heard."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.what) >= count, LONG_S), self.what
        return sorted((name, event_type) for name, event_type, _ in self.what)


def publish(transport, exchange, *event_types):
    """Send notifications, as a service does."""
    target = oslo_messaging.Target(topic='notifications', exchange=exchange)
    for event_type in event_types:
        message = {'publisher_id': 'compute.h', 'event_type': event_type, 'payload': {'instance_id': 'I'}}
        message |= {'message_id': unique_name(), 'priority': 'INFO', 'timestamp': '2026-01-01 00:00:00'}
        info = oslo_messaging.Target(topic=f'{target.topic}.info', exchange=exchange)
        transport._driver.send_notification(info, {}, message, version=2.0, retry=1)


def test_what_is_sent_in_one_process_is_heard_and_nothing_after_the_end():
    heard, url = Heard(), f'memory:///{unique_name()}'
    listener = NotificationListener(cfg.CONF, url, ['nova'], ['notifications'], 'observers', heard.listener('a'))
    listener.start()
    assert listener._started.wait(LONG_S)
    parsed = oslo_messaging.TransportURL.parse(cfg.CONF, url)
    transport = NotificationTransport(MemoryDriver(cfg.CONF, parsed, 'notifications', []))
    publish(transport, 'nova', 'compute.instance.update')
    assert heard.eventually(1) == [('a', 'compute.instance.update')]
    assert heard.what[0][2] == {'instance_id': 'I'}
    listener.stop()
    publish(transport, 'nova', 'compute.instance.update')
    assert len(heard.what) == 1


def test_on_a_broker_those_of_a_name_share_what_is_sent_and_take_it_from_nobody():
    heard, url, exchange = Heard(), service('rabbit').url, unique_name()
    connect(cfg.CONF, url, prefix=exchange).close()  # the options of the driver
    names = ('ours', 'ours', 'of others')
    listeners = [
        NotificationListener(
            cfg.CONF, url, [exchange, 'x'], ['notifications'], f'{exchange}-{name}', heard.listener(name)
        )
        for name in names
    ]
    try:
        for each in listeners:
            each.start()
            assert each._started.wait(LONG_S)
        transport = oslo_messaging.get_notification_transport(cfg.CONF, url)
        sent = [f'compute.instance.{number}' for number in range(4)]
        publish(transport, exchange, *sent)
        assert heard.eventually(8) == sorted((name, each) for name in ('of others', 'ours') for each in sent)
        transport.cleanup()
    finally:
        for each in listeners:
            each.stop()


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match='notification_url'):
        NotificationListener(cfg.CONF, 'pigeon://x', ['nova'], ['notifications'], 'observers', lambda *_: None)
