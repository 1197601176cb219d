"""Notifications on a message bus: the field's names and keys, and no silence about what could not be sent."""

import pytest
from oslo_config import cfg
from oslo_messaging.notify import _impl_test

from convergence.core.model import Action, Status
from convergence.errors import MessagingUnavailable
from convergence.notices import NoticeKind, StackNotice
from convergence.rpc.notifier import GROUP, NotificationBus, is_configured


@pytest.fixture
def conf():
    made = cfg.ConfigOpts()
    made([], default_config_files=[])
    assert not is_configured(made)  # registers the options
    return made


def notice(status=Status.COMPLETE, begins=False):
    kind = NoticeKind.of(status, begins=begins)
    return StackNotice(
        *('E', kind, 'S', 'S', 'p', 'shop', Action.CREATE, status, 'why', 0.0, 0.0, None, ['blue'], 'Sells', 'ann')
    )


def test_nothing_is_sent_where_no_driver_is_set(conf):
    assert NotificationBus.configured(conf, 'memory://', 'host') is None
    conf.set_override('driver', ['noop'], GROUP)
    assert not is_configured(conf)


def test_a_notification_has_the_names_and_keys_of_the_field(conf):
    conf.set_override('driver', ['test'], GROUP)
    bus = NotificationBus.configured(conf, 'memory://', 'node-1')
    _impl_test.reset()
    for each in (notice(Status.IN_PROGRESS, begins=True), notice(), notice(Status.FAILED)):
        bus.tell(each)
    sent = [(message['event_type'], level) for _, message, level, _ in _impl_test.NOTIFICATIONS]
    assert sent == [
        ('orchestration.stack.create.start', 'INFO'),
        ('orchestration.stack.create.end', 'INFO'),
        ('orchestration.stack.create.error', 'ERROR'),
    ]
    message = _impl_test.NOTIFICATIONS[1][1]
    assert message['publisher_id'] == 'orchestration.node-1'
    assert message['payload'] == {
        'tenant_id': 'p',
        'user_id': 'ann',
        'user_identity': 'ann',
        'stack_identity': 'S',
        'stack_name': 'shop',
        'state': 'CREATE_COMPLETE',
        'state_reason': 'why',
        'create_at': '1970-01-01T00:00:00Z',
        'updated_at': None,
        'tags': ['blue'],
        'description': 'Sells',
    }
    bus.close()


def test_what_the_broker_has_not_taken_is_not_lost_in_silence(conf):
    conf.set_override('driver', ['messagingv2'], GROUP)
    bus = NotificationBus.configured(conf, 'memory://', 'node-1')
    bus.tell(notice())

    def refuse(*given, **options):
        raise OSError('away')

    bus._transport._driver.send_notification = refuse
    with pytest.raises(MessagingUnavailable, match='OSError'):
        bus.tell(notice())
    bus.close()
