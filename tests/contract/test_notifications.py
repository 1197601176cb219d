"""What is told outside: with the event or not at all, at least once, in order, and to nobody who holds others up."""

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from sqlalchemy import event as listening
from sqlalchemy import func, select, update

from convergence import errors
from convergence.concurrency import start_thread
from convergence.db.connections.counting import count
from convergence.db.records import RelayTask, TraversalProgress
from convergence.db.repositories.outbox import Outbox
from convergence.db.repositories.progress import UntoldProgress
from convergence.db.repositories.webhooks import WebhookRows
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import DELIVERY, OUTBOX, TRAVERSAL, WEBHOOK
from convergence.db.statements.applying.outbox import Audience
from convergence.engine.notifications import sending
from convergence.engine.notifications.addresses import AddressRefused, checked, destination, networks
from convergence.engine.notifications.names import NameResolution
from convergence.engine.notifications.progress import ProgressReports
from convergence.engine.notifications.relay import SELDOM, SESSION_S, Relay, RelayOptions, RelayPorts
from convergence.engine.notifications.sending import HttpSender, NotDelivered
from convergence.engine.notifications.stall_reports import StallReports
from convergence.engine.notifications.webhooks import WebhookLimits, Webhooks
from convergence.engine.reads.formats import moment
from convergence.notices import pause_s
from convergence.resources.contract import FinalFailure
from tests.contract.rows import at_once
from tests.engine.test_scaling import created, group, policy, signal
from tests.harness import Crash, Harness, things
from tests.observing import Observing
from tests.reality import fails
from tests.receiver import receiving

PUBLIC = '93.184.215.14'
DESCRIPTION = 'No description'
URL = 'https://receiver.example/told'


class Receiver:
    """Stands for whoever is told; fails as long as it is asked to."""

    allowed = ()

    def __init__(self):
        self.told, self.events, self.failing = [], [], False

    @staticmethod
    def resolve(host, port):
        return [PUBLIC]

    def send(self, url, key, event):
        if self.failing:
            raise NotDelivered('it is away')
        self.told.append((url, event['id'], event['type']))
        self.events.append(event)
        return 204


class Bus:
    """A message bus that can be away."""

    def __init__(self):
        self.told, self.away = [], False

    def tell(self, notice):
        if self.away:
            raise errors.MessagingUnavailable('away')
        self.told.append((notice.event_type, notice.payload()['state'], notice.payload()['description']))


class Telling:
    """A harness whose events are told."""

    def __init__(self, engine, audience=Audience.WEBHOOKS):
        self.harness = Harness(engine)
        self.store = self.harness.store
        self.store._audience = audience
        self.rows, self.receiver, self.bus = WebhookRows(self.store), Receiver(), Bus()
        limits = WebhookLimits(most=3)
        parts = (self.receiver, limits, self.harness.new_id, lambda count: b'k' * count)
        self.webhooks = Webhooks(self.rows, self.harness.stacks, *parts)

    def until(self, holds):
        """Wait for what another thread is about to do."""
        for _ in range(6000):
            if holds():
                return
            time.sleep(0.01)
        raise AssertionError('it does not come')

    def relay(
        self, engine_id='e1', bus=None, interval_s=None, *, begin=lambda name, tell: tell(), options=None, **more
    ):
        progress = ProgressReports(
            UntoldProgress(self.store), self.store, self.harness.reader, self.harness.new_id, interval_s
        )
        ports = RelayPorts(
            self.harness.sweeps, Outbox(self.store), self.rows, progress, self.receiver, bus, self.harness.pending
        )
        return Relay(ports, engine_id, options or RelayOptions(), begin=begin, **more)

    def add(self, url=URL, **more):
        return self.webhooks.create_webhook(self.harness.context, url, **more)

    def show(self, webhook):
        return self.webhooks.show_webhook(self.harness.context, webhook['id'])

    def count(self, table):
        with self.store.reading() as connection:
            return connection.execute(select(func.count()).select_from(table)).scalar_one()

    def let_pauses_pass(self):
        with self.store.writing() as connection:
            connection.execute(update(WEBHOOK).values(next_attempt_at=0.0))
            connection.commit()


@pytest.fixture
def telling(engine):
    return Telling(engine)


def types(told):
    return [type_ for _, _, type_ in told]


def test_a_webhook_is_told_in_order_what_happens_to_the_stacks_of_its_project(telling):
    webhook = telling.add()
    stack_id = telling.harness.create(things(['a', 'b']))
    telling.harness.run()
    assert telling.count(OUTBOX) == 2  # whatever happens to resources
    telling.relay().turn()
    assert types(telling.receiver.told) == ['orchestration.stack.create.start', 'orchestration.stack.create.end']
    assert (telling.count(OUTBOX), telling.count(DELIVERY)) == (0, 0)
    shown = telling.show(webhook)
    assert (shown['failed_attempts'], shown['waiting'], shown['error']) == (0, 0, '')
    assert shown['last_delivery_time']
    assert 'key' not in shown
    telling.harness.stacks.delete_stack(telling.harness.context, {'stack_id': stack_id})
    telling.harness.run()
    telling.relay().turn()
    assert types(telling.receiver.told)[2:] == ['orchestration.stack.delete.start', 'orchestration.stack.delete.end']


def test_a_webhook_of_one_stack_is_not_told_of_others(telling):
    one = telling.harness.create(things(['a']), name='one')
    telling.add(stack_identity={'stack_id': one})
    telling.harness.create(things(['a']), name='two')
    telling.harness.run()
    telling.relay().turn()
    assert types(telling.receiver.told) == ['orchestration.stack.create.end']


def test_what_nobody_wants_is_not_written_and_where_nobody_can_want_it_is_not_asked(telling):
    def statements(audience):
        telling.store._audience = audience
        seen = []
        listening.listen(telling.harness.engine, 'before_cursor_execute', lambda *given: seen.append(given[2]))
        telling.harness.create(things(['a', 'b']), name=f's-{audience}')
        telling.harness.run()
        return [each for each in seen if 'AS user_id' in each or 'outbox' in each]

    assert statements(Audience.NONE) == []
    asked = statements(Audience.WEBHOOKS)
    assert len(asked) == 1  # for the beginning; the end is known to be told to nobody, however many resources there are
    assert not any('INSERT INTO outbox' in each for each in asked)
    assert telling.count(OUTBOX) == 0


def test_an_event_and_its_place_in_the_outbox_commit_together_or_not_at_all(telling):
    telling.add()
    stored = telling.store.commit

    def die(*given):
        raise Crash

    telling.store.commit = die
    with pytest.raises(Crash):
        telling.harness.create(things(['a']))
    telling.store.commit = stored
    assert (telling.count(OUTBOX), telling.harness.reader.stack_named('p', 's')) == (0, None)
    stack_id = telling.harness.create(things(['a']))
    assert (telling.count(OUTBOX), telling.harness.events(stack_id)) == (1, ['CREATE_IN_PROGRESS'])


def test_what_an_engine_has_sent_and_not_forgotten_when_it_died_is_sent_again_with_the_same_id(telling):
    telling.add()
    telling.harness.create(things(['a']))

    def die(*given):
        raise Crash

    kept, telling.rows.delivered = telling.rows.delivered, die
    with pytest.raises(Crash):
        telling.relay().turn()
    telling.rows.delivered = kept
    telling.relay('e1').turn()
    assert len(telling.receiver.told) == 1  # the lease of the dead one still holds
    telling.let_pauses_pass()
    telling.relay('e1').turn()
    (first, second) = telling.receiver.told
    assert first == second


def test_a_receiver_that_fails_is_left_alone_for_longer_each_time_and_told_when_it_is_back(telling):
    webhook = telling.add()
    telling.receiver.failing = True
    telling.harness.create(things(['a']))
    relay = telling.relay()
    for attempt in (1, 2, 3):
        relay.turn()
        relay.turn()  # too early: nothing is tried
        assert telling.show(webhook)['failed_attempts'] == attempt
        with telling.store.reading() as connection:
            pause = connection.execute(select(WEBHOOK.c.next_attempt_at - database_now())).scalar_one()
        assert pause_s(attempt) - 5 < pause <= pause_s(attempt)
        telling.let_pauses_pass()
    assert telling.show(webhook)['error'] == 'it is away'
    telling.receiver.failing = False
    telling.harness.run()
    relay.turn()
    assert types(telling.receiver.told) == ['orchestration.stack.create.start', 'orchestration.stack.create.end']
    assert (telling.show(webhook)['failed_attempts'], telling.show(webhook)['error']) == (0, '')
    assert [pause_s(number) for number in (1, 2, 3, 40)] == [5.0, 10.0, 20.0, 3600.0]


def test_what_could_not_be_told_for_too_long_is_given_up_and_the_webhook_says_so(telling):
    webhook = telling.add()
    telling.receiver.failing = True
    telling.harness.create(things(['a']))
    telling.relay().turn()
    with telling.store.writing() as connection:
        connection.execute(update(DELIVERY).values(created_at=0.0))
        connection.commit()
    telling.let_pauses_pass()
    telling.relay().turn()
    shown = telling.show(webhook)
    assert (shown['given_up'], shown['waiting']) == (1, 0)


def test_one_engine_at_a_time_empties_the_outbox_and_one_tells_a_webhook(telling):
    webhook = telling.add()
    telling.harness.create(things(['a']))
    assert telling.harness.sweeps.take_duty('notifications', 'e1', 60.0)
    telling.relay('e2').turn()
    assert telling.count(OUTBOX) == 1
    assert [telling.rows.take(webhook['id'], 60.0) for _ in range(2)] == [True, False]
    telling.relay('e1').turn()
    assert (telling.count(OUTBOX), telling.receiver.told) == (0, [])
    telling.rows.release(webhook['id'])
    telling.relay('e2').turn()
    assert len(telling.receiver.told) == 1


def test_while_another_engine_asks_with_every_turn_this_one_does_with_every_fifth_if_it_found_nothing(telling):
    asked, another_asks = [], True
    relay = telling.relay('e2', another_asks=lambda: another_asks)
    pending = SimpleNamespace(of_relay=lambda progress_s: asked.append(progress_s) or telling.harness.pending_of_relay)
    telling.harness.pending_of_relay = frozenset()
    relay._pending = pending

    def turns(number):
        before = len(asked)
        for _ in range(number):
            relay.turn()
        return len(asked) - before

    assert [turns(1), turns(4), turns(1), turns(10)] == [1, 0, 1, 2]
    another_asks = False
    assert turns(3) == 3
    another_asks = True
    # Where it has found something it asks again: one engine may not be enough.
    telling.harness.pending_of_relay = frozenset({RelayTask.TELL_WEBHOOKS})
    assert (turns(4), turns(1), turns(3)) == (0, 1, 3)


def test_the_engine_that_alone_may_carry_asks_with_every_turn(telling, monkeypatch):
    """However many others do: what they find they may not carry."""
    now = time.monotonic()
    monkeypatch.setattr('convergence.engine.notifications.relay.time', SimpleNamespace(monotonic=lambda: now))
    relay = telling.relay('e2', another_asks=lambda: True)
    telling.add()
    telling.harness.create(things(['a']))
    relay.turn()
    assert telling.count(OUTBOX) == 0
    for name in 'bcd':
        relay.turn()
        telling.harness.create(things([name]), name=name)
        assert telling.count(OUTBOX) > 0
        relay.turn()
        assert telling.count(OUTBOX) == 0
    relay.turn()
    now += SESSION_S + 0.1
    telling.harness.create(things(['e']), name='e')
    relay.turn()
    assert telling.count(OUTBOX) > 0
    for _ in range(SELDOM):
        relay.turn()
    assert telling.count(OUTBOX) == 0


def test_what_there_is_to_do_is_told_before_it_is_done_and_one_statement_tells_that_there_is_nothing(engine):
    telling = Telling(engine, Audience.ALL)
    relay, pending, sent = telling.relay(bus=telling.bus), telling.harness.pending, Counter()
    stop = count(engine, lambda kind: sent.update([kind]))
    relay.turn()
    sent.clear()
    relay.turn()
    assert sent['statements'] == 1
    stop()
    webhook = telling.add()
    telling.harness.create(things(['a']))
    assert pending.of_relay(None) == {RelayTask.FAN_OUT}
    assert pending.of_relay(-1.0) == {RelayTask.FAN_OUT, RelayTask.REPORT_PROGRESS}
    telling.bus.away = telling.receiver.failing = True
    relay.turn()
    assert pending.of_relay(None) == {RelayTask.TELL_BUS}
    assert telling.show(webhook)['failed_attempts'] == 1
    telling.let_pauses_pass()
    assert pending.of_relay(None) == {RelayTask.TELL_BUS, RelayTask.TELL_WEBHOOKS}
    telling.bus.away = telling.receiver.failing = False
    telling.relay(bus=telling.bus).turn()
    assert pending.of_relay(None) == frozenset()


def test_a_bus_that_is_away_is_told_later_and_holds_up_no_webhook(engine):
    telling = Telling(engine, Audience.ALL)
    telling.add()
    telling.bus.away = True
    telling.harness.create(things(['a']))
    telling.harness.run()
    telling.relay(bus=telling.bus).turn()
    assert (len(telling.receiver.told), telling.bus.told) == (2, [])
    telling.bus.away = False
    telling.relay(bus=telling.bus).turn()
    assert telling.bus.told == [
        ('orchestration.stack.create.start', 'CREATE_IN_PROGRESS', DESCRIPTION),
        ('orchestration.stack.create.end', 'CREATE_COMPLETE', DESCRIPTION),
    ]
    assert len(telling.receiver.told) == 2


def test_progress_is_told_at_growing_intervals_while_an_operation_lasts(telling):
    telling.add()
    stack_id = telling.harness.create(things(['a', 'b']))
    telling.harness.deliver()
    reports = ProgressReports(
        UntoldProgress(telling.store), telling.store, telling.harness.reader, telling.harness.new_id, 60.0
    )

    def at(age_s, told_s_ago):
        with telling.store.writing() as connection:
            now = database_now()
            told = None if told_s_ago is None else now - told_s_ago
            connection.execute(update(TRAVERSAL).values(started_at=now - age_s, progress_notified_at=told))
            connection.commit()
        return reports.report()

    assert at(30, None) == 0
    assert at(61, None) == 1
    assert reports.report() == 0
    said = [each.reason for each in telling.harness.reader.events(stack_id)][-1]
    assert said.startswith('Progress: 1 of 4 steps done, waiting for b')
    assert (at(7200, 100), at(7200, 700)) == (0, 1)
    telling.relay().turn()
    assert types(telling.receiver.told).count('orchestration.stack.create.progress') == 2
    (told, _) = (each for each in telling.receiver.events if each['type'].endswith('.progress'))
    progress = told['data']['progress']
    assert (progress['steps_done'], progress['steps_total'], progress['stalled_since']) == (1, 4, None)
    assert 'CREATE of stack s: 1 of 4 steps are done' in progress['summary']
    (waited,) = progress['waiting_for']
    assert (waited['resource_name'], waited['phase'], waited['error']) == ('b', 'UPDATE', '')
    assert waited['since'] <= told['time']
    telling.harness.run()
    assert at(7200, 700) == 0


def test_that_nothing_gets_on_is_told_with_what_is_waited_for(telling):
    telling.add()
    stack_id = telling.harness.create(things(['a']))
    reader = telling.harness.reader
    stack = reader.stack(stack_id)
    still = TraversalProgress(stack_id, stack.traversal_id, None, reader.now() - 90.0, None, None, reader.now())
    StallReports(telling.store, reader, telling.harness.new_id).report(still)
    telling.relay().turn()
    told = telling.receiver.events[-1]
    assert told['type'] == 'orchestration.stack.create.progress'
    progress = told['data']['progress']
    assert [each['resource_name'] for each in progress['waiting_for']] == ['a']
    assert progress['stalled_since'] == moment(still.progressed_at)
    assert progress['summary'].startswith('No progress since')


def test_a_group_that_is_scaled_is_told_of_as_the_field_does(engine):
    """Start, end and error carry what the policy asks for; a signal that changes nothing says so."""
    telling = Telling(engine, Audience.ALL)
    harness = telling.harness
    webhook = telling.add()
    stack_id = created(harness, {'web': group(2, most=4), 'up': policy(1), 'down': policy(-1)})
    telling.webhooks.delete_webhook(harness.context, webhook['id'])
    telling.add(stack_identity={'stack_id': stack_id})
    signal(harness, stack_id)
    signal(harness, stack_id)
    harness.run()
    signal(harness, stack_id)
    group_stack = harness.row(stack_id, 'web').physical_id
    new = next(row.name for row in harness.rows(group_stack) if row.physical_id is None)
    harness.reality.always['create', new] = fails(FinalFailure('no room'))
    harness.run()
    telling.relay(bus=telling.bus).turn()
    told = [each for each in telling.receiver.events if '.autoscaling.' in each['type']]
    assert [(each['type'].rpartition('.')[2], each['data']['capacity']) for each in told] == [
        ('start', 2),
        ('suppressed', None),
        ('end', 3),
        ('start', 3),
        ('error', 3),
    ]
    assert {each['type'].rpartition('.')[0] for each in told} == {'orchestration.autoscaling'}
    about = {
        name: told[0]['data'][name] for name in ('adjustment', 'adjustment_type', 'stack_name', 'tenant_id', 'state')
    }
    assert about == {
        'adjustment': 1,
        'adjustment_type': 'change_in_capacity',
        'stack_name': 's',
        'tenant_id': 'p',
        'state': 'CREATE_COMPLETE',
    }
    assert {each['data']['groupname'] for each in told} == {harness.row(stack_id, 'web').physical_id}
    assert told[0]['data']['message'] == 'group web is scaled from 2 to 3 (change_in_capacity : 1)'
    assert [each['data']['stack_identity'] for each in told] == [stack_id] * 5
    assert len({each['id'] for each in telling.receiver.events}) == len(telling.receiver.events)
    assert sorted(each[0] for each in telling.bus.told if '.autoscaling.' in each[0]) == sorted(e['type'] for e in told)


def test_what_changed_outside_of_a_stack_is_told_once_and_that_it_is_over(telling):
    harness = telling.harness
    stack_id = harness.create(things(['a']))
    harness.run()
    observing, row = Observing(harness), harness.row(stack_id, 'a')
    observing.look(stack_id)
    telling.add()
    for value in ('canary', 'canary', None):
        harness.reality.objects[row.physical_id]['value'] = row.properties.get('value') if value is None else value
        observing.look(stack_id)
    telling.relay().turn()
    found = [(each['type'], each['data']['drift_state']) for each in telling.receiver.events]
    assert found == [('orchestration.drift.start', 'DIFFERS'), ('orchestration.drift.end', 'HEALTHY')]
    data = telling.receiver.events[0]['data']
    told = {name: data[name] for name in ('resource_name', 'physical_resource_id', 'drift_properties', 'state')}
    assert told == {
        'resource_name': 'a',
        'physical_resource_id': row.physical_id,
        'drift_properties': ['value'],
        'state': 'CREATE_COMPLETE',
    }
    assert 'value of a' in data['message'] and 'canary' not in str(telling.receiver.events)


def test_a_project_has_no_more_webhooks_than_it_may_and_sees_none_of_others(telling):
    made = [telling.add() for _ in range(3)]
    with pytest.raises(errors.RequestLimitExceeded, match='max_webhooks_per_project'):
        telling.add()
    stranger = type('Stranger', (), {'project_id': 'q', 'request_id': 'r'})()
    assert telling.webhooks.list_webhooks(stranger) == []
    for ask in (telling.webhooks.show_webhook, telling.webhooks.delete_webhook, telling.webhooks.test_webhook):
        with pytest.raises(errors.EntityNotFound):
            ask(stranger, made[0]['id'])
    telling.webhooks.delete_webhook(telling.harness.context, made[0]['id'])
    assert [each['id'] for each in telling.webhooks.list_webhooks(telling.harness.context)] == [
        each['id'] for each in made[1:]
    ]


def test_of_two_who_take_the_last_place_of_a_project_at_the_same_moment_one_gets_it(telling):
    telling.add(), telling.add()
    for _ in range(4):
        made = at_once(*[telling.add] * 4)
        assert [type(each) for each in made if not isinstance(each, dict)] == [errors.RequestLimitExceeded] * 3
        assert telling.count(WEBHOOK) == 3
        (new,) = [each for each in made if isinstance(each, dict)]
        telling.webhooks.delete_webhook(telling.harness.context, new['id'])


def test_webhooks_of_deleted_stacks_do_not_take_up_the_places_of_a_project(telling):
    """They stayed until the stack was purged, which may be never, and nobody could have another one."""
    for number in range(5):
        stack_id = telling.harness.create(things(['a']), name=f's{number}')
        telling.harness.run()
        webhook = telling.add(stack_identity={'stack_id': stack_id})
        telling.harness.stacks.delete_stack(telling.harness.context, {'stack_id': stack_id})
        telling.harness.run()
        assert telling.show(webhook)['stack_id'] == stack_id
        telling.relay().turn()
    assert types(telling.receiver.told).count('orchestration.stack.delete.end') == 5
    assert telling.count(WEBHOOK) == 1


def test_what_waited_for_a_message_bus_that_is_not_configured_any_more_goes_with_its_time(engine):
    """Nobody looked at it again."""
    telling = Telling(engine, Audience.ALL)
    telling.bus.away = True
    telling.harness.create(things(['a']))
    telling.relay(bus=telling.bus).turn()
    telling.relay().turn()
    assert telling.count(OUTBOX) == 1  # perhaps another engine has it still
    with telling.store.writing() as connection:
        connection.execute(update(OUTBOX).values(at=0.0))
        connection.commit()
    telling.relay().turn()
    assert telling.count(OUTBOX) == 0


def test_whoever_was_told_last_comes_after_those_that_still_wait(telling):
    """Those with the smallest ids had their turn again and again, and the others none."""
    first, second, third = (telling.add(url=f'https://{name}.example/') for name in 'abc')
    telling.harness.create(things(['a']))
    Outbox(telling.store).fan_out(10, to_bus=False)
    order = [each.id for each in telling.rows.due(3)]
    assert {*order} == {first['id'], second['id'], third['id']}
    assert telling.rows.take(order[0], 60.0)
    telling.rows.release(order[0])
    assert [each.id for each in telling.rows.due(3)] == [*order[1:], order[0]]


def test_a_receiver_that_does_not_answer_and_one_that_is_dead_hold_up_nobody_else(telling, server, silent):
    """Real sockets: the hanging request is still under way when all others have been told."""
    dead = HTTPServer(('127.0.0.1', 0), BaseHTTPRequestHandler)
    dead.server_close()
    telling.receiver = HttpSender(30.0, networks(['127.0.0.1']), lambda host, port: ['127.0.0.1'])
    telling.webhooks._sender = telling.receiver
    hooks = {
        name: telling.add(url=f'http://{name}.example:{where.server_port}/')
        for name, where in (('silent', silent), ('dead', dead), ('good', server))
    }
    telling.harness.create(things(['a']))
    telling.harness.run()
    relay = telling.relay(begin=start_thread, options=RelayOptions(threads=8))
    relay.turn()
    assert silent.asked.wait(60)
    server.expect(2)
    assert telling.show(hooks['silent'])['waiting'] == 2
    silent.answers.set()
    telling.until(lambda: telling.show(hooks['silent'])['waiting'] == 0)
    telling.until(lambda: telling.show(hooks['dead'])['failed_attempts'] == 1)
    assert 'cannot be reached' in telling.show(hooks['dead'])['error']


def test_one_project_does_not_get_all_threads(telling):
    """With receivers that answer just in time, those of one project could have kept everybody else from being told."""
    for name in 'abc':
        telling.add(url=f'https://{name}.example/')
    telling.harness.create(things(['a']))
    begun = []
    relay = telling.relay(begin=lambda name, tell: begun.append(tell), options=RelayOptions(threads=4))
    relay.turn()
    assert len(begun) == 2


# --- addresses and requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'address',
    [
        *('127.0.0.1', '10.1.2.3', '192.168.0.1', '172.16.0.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'),
        *('224.0.0.1', '255.255.255.255', '::1', '::', 'fe80::1', 'fd00::1', 'ff02::1', '::ffff:127.0.0.1'),
        *('64:ff9b::a9fe:a9fe', '2002:7f00:1::', 'fe80::1%eth0'),
    ],
)
def test_no_address_inside_may_be_reached(address):
    with pytest.raises(AddressRefused, match='allowed_networks'):
        checked(destination('http://name.example/'), (), lambda host, port: [PUBLIC, address])


def test_a_network_that_the_operator_allows_may_be_reached():
    allowed = networks(['10.0.0.0/8'])
    assert checked(destination('http://inside.example/'), allowed, lambda host, port: ['10.1.2.3']) == '10.1.2.3'
    assert checked(destination('http://outside.example/'), (), lambda host, port: [PUBLIC]) == PUBLIC
    with pytest.raises(errors.ConfigurationError, match='allowed_networks: x'):
        networks(['x'])


@pytest.mark.parametrize(
    'url',
    [
        *(
            'ftp://host/',
            'file:///etc/passwd',
            'http://',
            'http:///x',
            'http://a b/',
            'http://h/\r\nX: y',
            'http://h:0/',
        ),
        *(
            'http://user:password@host/',
            'http://host/#part',
            'http://h:99999/',
            'http://[::1',
            'https://h/' + 'x' * 2048,
        ),
    ],
)
def test_what_is_no_address_of_a_webhook_is_refused(url):
    with pytest.raises(errors.Invalid):
        destination(url)


@pytest.fixture
def server():
    """An HTTP server: what it was sent, and the status with which it answers."""
    with receiving() as made:
        yield made


@pytest.fixture
def silent():
    """One that takes a request and does not answer before it is told to."""
    with receiving() as made:
        made.answers.clear()
        yield made


def test_a_name_server_that_does_not_answer_is_not_waited_for_and_names_under_way_are_counted():
    """The resolver of the system has no time limit that it is told: a lookup held up a request, and its sender."""
    answers, asked = threading.Event(), []

    def look_up(host, port):
        asked.append(host)
        if host == 'slow.example':
            answers.wait(60)
        if host == 'none.example':
            raise socket.gaierror(-2, 'Name or service not known')
        return [PUBLIC]

    find = NameResolution(0.05, look_up, most=2)
    with pytest.raises(OSError, match=r'no name server has answered within 0\.05 s'):
        find('slow.example', 443)
    patient = NameResolution(60.0, look_up)
    assert patient('fast.example', 443) == [PUBLIC]
    with pytest.raises(AddressRefused, match=r'none\.example cannot be found: Name or service not known'):
        checked(destination('http://none.example/'), (), patient)
    with pytest.raises(OSError):
        find('slow.example', 443)
    with pytest.raises(AddressRefused, match='2 other names are being resolved already'):
        checked(destination('http://fast.example/'), (), find)
    assert asked.count('fast.example') == 1
    answers.set()


def test_looking_up_the_name_is_part_of_the_time_that_a_request_may_take(server, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(sending, 'time', SimpleNamespace(monotonic=lambda: now[0], time=time.time))

    def resolve(host, port):
        now[0] += 11.0
        return ['127.0.0.1']

    sender = HttpSender(10.0, networks(['127.0.0.0/8']), resolve)
    with pytest.raises(NotDelivered, match='has not answered within 10 s'):
        sender.send(f'http://receiver.example:{server.server_port}/', 'whsec_aGVsbG8=', {'id': '1'})
    assert server.got == []


def test_a_request_goes_to_the_address_that_was_checked_and_can_be_verified_by_its_receiver(server):
    asked = []

    def resolve(host, port):
        asked.append(host)
        return ['127.0.0.1'] if len(asked) == 1 else ['127.0.0.2']

    sender = HttpSender(30.0, networks(['127.0.0.1']), resolve)
    key = 'whsec_' + base64.b64encode(b'0123456789abcdef0123456789abcdef').decode()
    event = {'specversion': '1.0', 'id': 'E', 'data': {'state_reason': 'ü'}}
    assert sender.send(f'http://name.example:{server.server_port}/told?x=1', key, event) == 204
    assert asked == ['name.example']
    ((path, headers, body),) = server.got
    assert (path, headers['Host']) == ('/told?x=1', f'name.example:{server.server_port}')
    assert headers['Content-Type'].startswith('application/cloudevents+json')
    assert json.loads(body) == event
    text = f'{headers["webhook-id"]}.{headers["webhook-timestamp"]}.'.encode() + body
    proof = hmac.new(b'0123456789abcdef0123456789abcdef', text, hashlib.sha256).digest()
    assert headers['webhook-signature'] == f'v1,{base64.b64encode(proof).decode()}'


def test_redirects_are_not_followed_and_other_answers_count_as_failures(server):
    sender = HttpSender(30.0, networks(['127.0.0.1']), lambda host, port: ['127.0.0.1'])
    key, url = 'whsec_aGVsbG8=', f'http://name.example:{server.server_port}/'
    for status, said in ((302, 'redirects are not followed'), (500, 'the answer was 500')):
        server.status = status
        with pytest.raises(NotDelivered, match=said):
            sender.send(url, key, {'id': 'E'})
    assert len(server.got) == 2
