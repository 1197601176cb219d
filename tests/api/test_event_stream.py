"""Events as they happen."""

from __future__ import annotations

import threading
from http import HTTPStatus

import pytest

from convergence import errors
from convergence.api.event_stream import EventStream, Followers
from convergence.api.faults import HttpProblem
from tests.api.installation import application, client, lines, waiting


def test_a_stream_tells_everything_up_to_the_deletion(api):
    path = api.create('followed')
    before = [each['id'] for each in api.ask('GET', f'{path}/events').json['events']]
    api.ask('DELETE', path)
    told = api.ask('GET', f'{path}/events', query_string='follow')
    assert told.headers['content-type'] == 'text/event-stream'
    events = lines(told)
    assert [each['id'] for each in events][: len(before)] == before
    assert (events[-1]['resource_name'], events[-1]['resource_status']) == ('followed', 'DELETE_COMPLETE')


def test_a_stream_is_taken_up_where_it_was_left(api):
    path = api.create('resumed')
    events = api.ask('GET', f'{path}/events').json['events']
    api.ask('DELETE', path)
    api.settle(path)
    for how in ({'headers': {'Last-Event-ID': events[2]['id']}}, {'query_string': f'marker={events[2]["id"]}'}):
        query = how.pop('query_string', '')
        told = api.ask('GET', f'{path}/events', query_string=f'follow=true&{query}', **how)
        assert [each['id'] for each in lines(told)][:3] == [each['id'] for each in events[3:6]]


def test_a_stream_may_be_about_some_events_only(api):
    path = api.create('some')
    api.ask('DELETE', path)
    api.settle(path)
    told = api.ask('GET', f'{path}/events', query_string='follow&resource_name=some&resource_status=COMPLETE')
    assert [each['resource_status'] for each in lines(told)] == ['CREATE_COMPLETE', 'DELETE_COMPLETE']


def test_what_is_wrong_is_said_before_the_stream_begins(api):
    path = api.create('unknown-marker')
    assert api.ask('GET', f'{path}/events', query_string='follow&marker=nothing').status_code == 404
    assert api.ask('GET', f'stacks/x/{"0" * 36}/events', query_string='follow').status_code == 404
    assert api.ask('GET', f'{path}/events', query_string='follow=maybe').status_code == 400


def test_those_who_follow_do_not_keep_everybody_else_out(api):
    path = api.create('crowded', waiting(30), wait=False)
    asked = client(application(api.embedded.client, most=0))
    refused = asked.simulate_get(f'/v1/p/{path}/events', query_string='follow')
    assert (refused.status_code, refused.headers['retry-after']) == (503, '10')
    api.ask('DELETE', path)


def event(number: int) -> dict[str, str]:
    return {'id': f'e-{number}', 'resource_name': 'r', 'resource_status': 'CREATE_COMPLETE'}


def test_the_place_of_who_has_gone_is_free_again():
    followers = Followers(1, poll_s=0.001)
    stream = EventStream(followers, lambda marker: [], lambda each: False, None)
    with pytest.raises(HttpProblem):
        EventStream(followers, lambda marker: [], lambda each: False, None)
    stream.close()
    stream.close()
    EventStream(followers, lambda marker: [], lambda each: False, None).close()


def test_no_client_and_no_project_holds_all_places():
    followers = Followers(6, most_each=2)

    def follow(client, project):
        return EventStream(followers, lambda marker: [], lambda each: False, None, (client, project))

    held = [follow('client a', 'project p'), follow('client b', 'project p')]
    with pytest.raises(HttpProblem, match=r'2 streams of project p .* max_client_followers'):
        follow('client c', 'project p')
    held += [follow('client a', 'project q')]
    with pytest.raises(HttpProblem, match='2 streams of client a '):
        follow('client a', 'project r')
    held.pop(0).close()
    held += [follow('client a', 'project r'), follow('client d', 'project d'), follow('client e', 'project e')]
    held += [follow('client f', 'project f')]
    with pytest.raises(HttpProblem, match=r'6 clients .* max_followers'):
        follow('client g', 'project g')
    for each in held:
        each.close()
    assert not followers._of_each


def test_a_question_for_the_head_of_a_stream_takes_no_place(api):
    path = api.create('head-of-a-stream')
    asked = client(application(api.embedded.client, most=1))
    for _ in range(3):
        answer = asked.simulate_head(f'/v1/p/{path}/events', query_string='follow')
        assert (answer.status_code, answer.text) == (200, '')


def test_a_stream_names_the_client_and_the_project_that_it_belongs_to(api):
    path, told = api.create('whose-stream'), []

    class Full(Followers):
        def enter(self, whose=()):
            told.append(whose)
            raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, 'enough')

    asked = client(application(api.embedded.client, followers=Full()))
    assert (
        asked.simulate_get(
            f'/v1/p/{path}/events', query_string='follow', extras={'REMOTE_ADDR': '127.0.0.2'}
        ).status_code
        == 503
    )
    assert told == [('client 127.0.0.2', 'project p')]


def test_a_stream_that_cannot_begin_takes_no_place():
    followers = Followers(1)

    def fetch(marker):
        raise errors.EntityNotFound('Stack', 'x')

    for _ in range(2):
        with pytest.raises(errors.EntityNotFound):
            EventStream(followers, fetch, lambda each: False, None)


def test_a_stream_goes_on_while_the_engine_is_away():
    answers = [[event(1)], errors.MessagingUnavailable('away'), [event(2)]]
    markers = []

    def fetch(marker):
        markers.append(marker)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    stream = EventStream(Followers(1, poll_s=0.001), fetch, lambda each: each['id'] == 'e-2', None)
    told = b''.join(stream).decode()
    assert told.index('id: e-1\n') < told.index('id: e-2\n')
    assert markers == [None, 'e-1', 'e-1']


def test_silence_is_broken_so_that_a_client_that_has_gone_is_noticed():
    stream = EventStream(Followers(1, poll_s=5.0), lambda marker: [], lambda each: False, None)
    stream._followers.stopped.wait = lambda seconds: False
    assert next(stream).startswith(b'retry:')
    assert next(piece for piece in stream if piece) == b': still here\n\n'


def test_all_streams_end_when_the_process_does():
    followers = Followers(1, poll_s=60.0)
    stream = EventStream(followers, lambda marker: [], lambda each: False, None)
    ended = threading.Thread(target=lambda: list(stream))
    ended.start()
    followers.stop()
    ended.join(30)
    assert not ended.is_alive()
