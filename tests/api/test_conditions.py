"""Not twice, and only if nothing has happened since."""

from __future__ import annotations

import threading

from tests.api.installation import TEMPLATE


def create(api, name, key, project='keys', **body):
    return api.ask(
        'POST',
        f'/v1/{project}/stacks',
        json={'stack_name': name, 'template': TEMPLATE, **body},
        headers={'Idempotency-Key': key},
    )


def test_a_request_that_is_repeated_makes_one_stack(api):
    first, again = create(api, 'once', 'k-1'), create(api, 'once', 'k-1')
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json == again.json
    assert first.headers['location'] == again.headers['location']


def test_the_same_key_for_something_else_is_refused(api):
    create(api, 'same-key', 'k-2')
    for body in ({'name': 'another'}, {'name': 'same-key', 'parameters': {'text': 'other'}}):
        name = body.pop('name')
        refused = create(api, name, 'k-2', **body)
        assert (refused.status_code, refused.json['error']['type']) == (422, 'RequestKeyReused')


def test_another_key_or_another_project_is_another_request(api):
    create(api, 'by-key', 'k-3')
    assert create(api, 'by-key', 'k-4').status_code == 409
    assert create(api, 'by-key', 'k-3', project='keys-2').status_code == 201


def test_many_at_once_make_one_stack(api):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(create(api, 'race', 'k-5', project='race'))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json['stack']['id'] for answer in answers}) == 1
    assert len(api.ask('GET', '/v1/race/stacks').json['stacks']) == 1


def test_a_key_must_be_one(api):
    assert create(api, 'no-key', ' ' * 300 + 'x' * 300).status_code == 400


def test_an_update_is_refused_when_somebody_else_was_first(api):
    path = api.create('contested')
    seen = api.ask('GET', path).headers['etag']
    body = {'parameters': {'text': 'one'}}
    assert api.ask('PATCH', path, json=body, headers={'If-Match': seen}).status_code == 202
    api.settle(path)
    late = api.ask('PATCH', path, json={'parameters': {'text': 'two'}}, headers={'If-Match': seen})
    assert (late.status_code, late.json['error']['type']) == (412, 'PreconditionFailed')
    assert api.ask('DELETE', path, headers={'If-Match': seen}).status_code == 412
    assert api.ask('GET', path).json['stack']['parameters']['text'] == 'one'
    now = api.ask('GET', path).headers['etag']
    assert now != seen
    assert api.ask('DELETE', path, headers={'If-Match': now}).status_code == 204


def test_a_condition_that_this_api_never_gave_is_refused(api):
    path = api.create('conditional')
    for condition in ('W/"x"', 'x', '"a", "b"'):
        assert api.ask('PATCH', path, json={}, headers={'If-Match': condition}).status_code == 400
    assert api.ask('PATCH', path, json={}, headers={'If-Match': '*'}).status_code == 202
