"""What an installation of several processes does, whatever database it is on. The modules beside run it on each."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from tests.functional.cloud import template
from tests.functional.cluster import DEFAULTS, eventually

THREADS = int(DEFAULTS['threads'])
HEARTBEAT_S = float(DEFAULTS['heartbeat_interval_s'])


class Operations:
    """What users ask for."""

    def test_the_work_on_a_stack_is_spread_over_the_workers(self, cluster, name):
        resources = {f'r{number}': {'value': str(number)} for number in range(24)}
        stack = cluster.create(name, template(**resources))
        assert stack.ended() == 'CREATE_COMPLETE'
        assert cluster.cloud.values(name) == {f'r{number}': str(number) for number in range(24)}
        assert len(cluster.creators(name)) == len(cluster.workers)
        stack.delete()
        assert stack.ended() == 'DELETE_COMPLETE'
        assert cluster.cloud.by_name(name) == {}

    @pytest.mark.long
    def test_an_update_changes_replaces_adds_and_removes_just_what_it_must(self, cluster, name):
        follows = {'value': {'get_attr': ['changed', 'value']}, 'after': ['changed', 'replaced']}
        first = {'kept': {'value': 'k'}, 'changed': {'value': 'one'}, 'replaced': {'place': 'here'}, 'follows': follows}
        stack = cluster.create(name, template(**first, removed={}))
        assert stack.ended() == 'CREATE_COMPLETE'
        before = cluster.cloud.by_name(name)

        stack.update(template(**first | {'changed': {'value': 'two'}, 'replaced': {'place': 'there'}}, added={}))
        assert stack.ended() == 'UPDATE_COMPLETE'
        after = cluster.cloud.by_name(name)
        assert after.keys() == {'kept', 'changed', 'replaced', 'follows', 'added'}
        same = {each for each in before.keys() & after.keys() if before[each].id == after[each].id}
        assert same == {'kept', 'changed', 'follows'}
        values = {'kept': 'k', 'changed': 'two', 'follows': 'two', 'replaced': '', 'added': ''}
        assert cluster.cloud.values(name) == values
        assert (before['replaced'].place, after['replaced'].place) == ('here', 'there')
        assert cluster.cloud.journal(name, 'kept', 'update') == []
        assert {key: row['physical_resource_id'] for key, row in stack.resources().items()} == {
            key: each.id for key, each in after.items()
        }

    def test_an_update_takes_over_from_an_update_in_progress(self, cluster, name):
        stack = cluster.create(name, template(a={'value': 'one'}, b={'value': 'one', 'after': ['a']}))
        assert stack.ended() == 'CREATE_COMPLETE'
        before = cluster.cloud.by_name(name)
        stack.update(template(a={'value': 'two', 'until': name}, b={'value': 'two', 'after': ['a']}))
        cluster.called(name, 'a', 'update')
        stack.update(template(a={'value': 'three'}, b={'value': 'three', 'after': ['a']}))
        assert stack.state() == 'UPDATE_IN_PROGRESS'
        cluster.cloud.open(name)
        assert stack.ended() == 'UPDATE_COMPLETE'
        assert cluster.cloud.values(name) == {'a': 'three', 'b': 'three'}
        assert {each.id for each in cluster.cloud.by_name(name).values()} == {each.id for each in before.values()}

    @pytest.mark.long
    def test_of_updates_at_the_same_time_the_last_accepted_is_what_becomes_real(self, cluster, name):
        def goal(value: str) -> str:
            chain = {f'r{number}': {'value': value, 'after': [f'r{number - 1}']} for number in range(1, 4)}
            return template(r0={'value': value}, **chain, **{f'only-{value}': {'value': value}})

        stack = cluster.create(name, goal('zero'))
        assert stack.ended() == 'CREATE_COMPLETE'
        start, refused = threading.Barrier(6), []

        def update(number: int) -> None:
            start.wait()
            try:
                stack.update(goal(f'v{number}'))
            except Exception as error:  # noqa: BLE001 - shown by the assertion below
                refused.append(error)

        threads = [threading.Thread(target=update, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused == []
        assert stack.ended() == 'UPDATE_COMPLETE'
        wanted = {key: resource['properties']['value'] for key, resource in stack.template()['resources'].items()}
        assert wanted['r0'] != 'zero'
        assert cluster.cloud.values(name) == wanted

    @pytest.mark.long
    def test_a_failed_create_keeps_what_was_made_and_can_be_mended(self, cluster, name):
        stack = cluster.create(name, template(good={}, bad={'fail': True}, later={'after': ['bad']}))
        assert stack.ended() == 'CREATE_FAILED'
        assert 'bad was told to fail' in stack.show()['stack_status_reason']
        assert 'later' not in cluster.cloud.by_name(name)
        stack.update(template(good={}, bad={'value': 'mended'}, later={'after': ['bad']}))
        assert stack.ended() == 'UPDATE_COMPLETE'
        assert cluster.cloud.values(name) == {'good': '', 'bad': 'mended', 'later': ''}

    @pytest.mark.long
    def test_a_failed_update_is_rolled_back_where_that_is_wanted(self, cluster, name):
        stack = cluster.create(name, template(a={'value': 'one'}, b={'value': 'one', 'after': ['a']}))
        assert stack.ended() == 'CREATE_COMPLETE'
        before = cluster.cloud.by_name(name)
        goal = template(a={'value': 'two'}, b={'value': 'two', 'fail': True, 'after': ['a']}, new={})
        stack.update(goal, disable_rollback=False)
        assert stack.ended() == 'ROLLBACK_COMPLETE'
        assert cluster.cloud.values(name) == {'a': 'one', 'b': 'one'}
        assert cluster.cloud.by_name(name)['a'].id == before['a'].id

    @pytest.mark.long
    def test_a_failed_create_that_is_rolled_back_leaves_nothing(self, cluster, name):
        goal = template(a={}, b={'fail': True, 'after': ['a']})
        stack = cluster.create(name, goal, disable_rollback=False)
        assert stack.ended() == 'ROLLBACK_COMPLETE'
        assert cluster.cloud.by_name(name) == {}

    @pytest.mark.long
    def test_a_delete_in_the_middle_of_a_create_stops_and_removes_it(self, cluster, name):
        stack = cluster.create(name, template(slow={'until': name}, next={'after': ['slow']}, other={}))
        cluster.called(name, 'slow', 'made')
        stack.delete()
        assert stack.ended() == 'DELETE_COMPLETE'
        assert cluster.cloud.by_name(name) == {}
        assert cluster.cloud.journal(name, 'next', 'create') == []

    def test_a_cancelled_update_goes_back_where_that_is_wanted(self, cluster, name):
        stack = cluster.create(name, template(a={'value': 'one'}, b={'value': 'one', 'after': ['a']}))
        assert stack.ended() == 'CREATE_COMPLETE'
        stack.update(template(a={'value': 'two', 'until': name}, b={'value': 'two', 'after': ['a']}))
        cluster.called(name, 'a', 'update')
        stack.cancel(rollback=True)
        assert stack.ended() == 'ROLLBACK_COMPLETE'
        assert cluster.cloud.values(name) == {'a': 'one', 'b': 'one'}

    @pytest.mark.long
    def test_a_cancelled_update_can_stay_where_it_is_and_be_taken_up_again(self, cluster, name):
        stack = cluster.create(name, template(a={'value': 'one'}, b={'value': 'one', 'after': ['a']}))
        assert stack.ended() == 'CREATE_COMPLETE'
        goal = template(a={'value': 'two', 'until': name}, b={'value': 'two', 'after': ['a']})
        stack.update(goal)
        cluster.called(name, 'a', 'update')
        stack.cancel(rollback=False)
        assert stack.ended() == 'UPDATE_FAILED'
        assert cluster.cloud.values(name)['b'] == 'one'
        cluster.cloud.open(name)
        stack.update(goal)
        assert stack.ended() == 'UPDATE_COMPLETE'
        assert cluster.cloud.values(name) == {'a': 'two', 'b': 'two'}


class Deaths:
    """What becomes of work when processes end."""

    def test_a_worker_that_is_told_to_stop_hands_its_work_on(self, cluster, name):
        goal = template(
            held={'value': 'h', 'hold': name}, polled={'value': 'p', 'until': name}, last={'after': ['held', 'polled']}
        )
        stack = cluster.create(name, goal)
        holder = cluster.worker(cluster.called(name, 'held', 'made').pid)
        cluster.called(name, 'polled', 'made')
        assert holder.end(signal.SIGTERM) == 0, holder.text()
        assert stack.state() == 'CREATE_IN_PROGRESS'
        cluster.cloud.open(name)
        assert stack.ended() == 'CREATE_COMPLETE'
        assert cluster.cloud.values(name) == {'held': 'h', 'polled': 'p', 'last': ''}
        assert len(cluster.cloud.journal(name, 'held', 'create')) == 1

    @pytest.mark.long
    def test_a_worker_that_is_told_to_stop_begins_nothing_more(self, cluster, name):
        """It has a backlog, its calls take their time, and no message comes for so long that it would look for work."""
        count = 10 * (len(cluster.workers) + 1)
        goal = {f'r{number}': {'hold': name, 'deaf': True} for number in range(count)}
        stack = cluster.create(name, template(**goal))
        leaving = cluster.workers[0]

        def begun() -> int:
            return sum(call.pid == leaving.pid for call in cluster.cloud.journal(name, what='create'))

        eventually(lambda: begun() == THREADS, 'all threads of a worker are busy')
        leaving.send(signal.SIGTERM)
        eventually(lambda: 'ending, SIGTERM' in leaving.text(), 'the worker notices')
        time.sleep(8 * HEARTBEAT_S)
        cluster.cloud.open(name)
        assert leaving.wait() == 0, leaving.text()
        assert begun() == THREADS, leaving.text()
        assert stack.ended() == 'CREATE_COMPLETE'
        assert len(cluster.cloud.by_name(name)) == count

    def test_the_work_of_a_killed_worker_is_taken_over(self, cluster, name):
        """Killed in the middle of the call: the object exists, and nobody has stored that yet."""
        stack = cluster.create(name, template(held={'value': 'h', 'hold': name}, last={'after': ['held']}))
        holder = cluster.worker(cluster.called(name, 'held', 'made').pid)
        holder.end(signal.SIGKILL)
        cluster.cloud.open(name)
        assert stack.ended() == 'CREATE_COMPLETE'
        assert cluster.cloud.values(name) == {'held': 'h', 'last': ''}
        assert len(cluster.cloud.journal(name, 'held', 'create')) == 1

    def test_a_stack_survives_the_death_of_every_engine(self, cluster, name):
        chain = {f'r{number}': {'value': 'two', 'after': [f'r{number - 1}']} for number in range(1, 5)}
        stack = cluster.create(name, template(r0={'value': 'two', 'until': name}, **chain))
        cluster.called(name, 'r0', 'made')
        for engine in cluster.engines:
            engine.end(signal.SIGKILL)
        cluster.cloud.open(name)
        cluster.fill()
        assert stack.ended() == 'CREATE_COMPLETE'
        assert set(cluster.cloud.values(name)) == {'r0', *chain}

    def test_an_engine_is_restarted_while_requests_arrive(self, cluster, name):
        """Callers do not notice: what the one has in hand it answers, the rest goes to the other."""
        engine = cluster.engines[0]
        creating = cluster.create(f'{name}-0', template(a={}))
        engine.send(signal.SIGTERM)
        states = [
            cluster.create(f'{name}-{number}', template(a={'value': str(number)})).ended() for number in range(1, 6)
        ]
        assert engine.wait() == 0, engine.text()
        assert states == ['CREATE_COMPLETE'] * 5
        assert creating.ended() == 'CREATE_COMPLETE'
