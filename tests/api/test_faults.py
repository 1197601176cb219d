"""What a client is told when something is wrong."""

from __future__ import annotations

import inspect
import json

import pytest

from convergence import documents, errors
from convergence.api import faults
from convergence.rpc.context import CallerContext
from tests.api.installation import TEMPLATE, application, client

STATUSES = {
    'Invalid': 400,
    'EntityNotFound': 404,
    'ResourceNotFound': 404,
    'ResourceNotAvailable': 404,
    'StackExists': 409,
    'ActionInProgress': 409,
    'NotSupported': 400,
    'NotOffered': 501,
    'Forbidden': 403,
    'RequestLimitExceeded': 400,
    'StackValidationFailed': 400,
    'InvalidTemplateVersion': 400,
    'InvalidTemplateSection': 400,
    'InvalidTemplateReference': 400,
    'CircularDependencyException': 400,
    'UnknownUserParameter': 400,
    'UserParameterMissing': 400,
    'PreconditionFailed': 412,
    'RequestKeyReused': 422,
    'MessagingUnavailable': 503,
    'NoAnswer': 503,
    'DatabaseUnavailable': 503,
    'Conflict': 503,
    'ConfigurationError': 500,
    'ConvergenceError': 500,
}
"""What clients of the field expect, by the name of the error; the last ones are ours."""


@pytest.mark.parametrize(('name', 'status'), sorted(STATUSES.items()))
def test_the_status_follows_the_class_of_the_error(name, status):
    error = getattr(errors, name)('text')
    assert faults.status_of(error) == status
    body = faults.body_of(error)
    assert (body['code'], body['error']['type'], body['error']['traceback']) == (status, name, None)
    assert body['explanation']


def test_no_error_of_a_user_is_our_fault():
    """Every error class has a status, and errors of the caller are never 5xx."""
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.UserError):
            assert 400 <= faults.status_of(kind('text')) < 500 or issubclass(kind, errors.NotOffered), kind


def test_a_stack_that_is_not_there(api):
    missing = api.ask('GET', 'stacks/nothing')
    assert missing.status_code == 404
    assert missing.json == {
        'code': 404,
        'title': 'Not Found',
        'explanation': 'The resource could not be found.',
        'error': {'type': 'EntityNotFound', 'message': 'The Stack (nothing) could not be found.', 'traceback': None},
    }


@pytest.mark.parametrize('kind', ['application/json', 'text/plain', ''])
def test_a_body_is_json_by_these_names(api, kind):
    refused = api.ask('POST', 'stacks', body='{"stack_name": "x"', headers={'Content-Type': kind})
    assert refused.status_code == 400
    assert "Expecting ',' delimiter" in refused.json['error']['message']


def test_a_body_of_bytes_is_no_body(api):
    headers = {'Content-Type': 'application/octet-stream'}
    refused = api.ask('POST', 'stacks', body='{}', headers=headers)
    assert refused.status_code == 400
    assert refused.json['explanation'].endswith('either malformed or otherwise incorrect.')


@pytest.mark.parametrize(
    ('body', 'said'),
    [
        ('[]', 'The body must be a map, not array.'),
        ('{}', 'No stack name specified'),
        ('{"stack_name": "x"}', 'No template specified'),
        ('{"stack_name": 5, "template": {}}', 'stack_name must be a text, not integer.'),
        ('{"stack_name": "x", "template": [1]}', 'template must be a map or a text or null, not array.'),
        ('{"stack_name": "x", "template": {"a": NaN}}', 'NaN is not JSON'),
        ('{"stack_name": "x", "template": {"a": "\\u0000"}}', 'NUL'),
        ('{"stack_name": "x", "template": {"a": "\\ud800"}}', 'surrogate'),
        ('{"stack_name": "x", "template": {"a": 1}, "files": {"f": 1}}', 'files.f must be a text, not integer.'),
        ('{"stack_name": "x", "template": {"a": 1}, "timeout_mins": "soon"}', 'Only integer is allowed'),
        ('{"stack_name": "x", "template": {"a": 1}, "timeout_mins": 4294967296}', 'timeout_mins must be at most'),
        ('{"stack_name": "x", "template": {"a": 1}, "disable_rollback": "maybe"}', 'Unrecognized value "maybe"'),
        ('{"stack_name": "9x", "template": {"a": 1}}', "Invalid stack name '9x'"),
        ('[' * 100000, 'nested too deeply'),
        ('{"stack_name": ' + '[' * 250 + ']' * 250 + '}', 'nested too deeply'),
        ('', 'The body of the request is missing'),
        ('null', 'The body of the request is missing'),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(api, body, said):
    refused = api.ask('POST', 'stacks', body=body)
    assert refused.status_code == 400
    assert said in refused.json['error']['message']


def test_a_backslash_before_u0000_is_no_nul(api):
    source = TEMPLATE + '  other: {value: "C:\\\\\\\\u0000"}\n'
    assert api.ask('POST', 'validate', json={'template': source}).status_code == 200


def test_other_content_types_are_not_guessed(api):
    refused = api.ask('POST', 'stacks', body='stack_name=x', headers={'Content-Type': 'application/xml'})
    assert (refused.status_code, refused.json['error']['type']) == (415, 'HTTPUnsupportedMediaType')


def test_a_body_may_be_so_large_and_no_larger(api):
    small = client(application(api.embedded.client, max_body_bytes=2000))
    refused = small.simulate_post('/v1/p/stacks', json={'stack_name': 'x', 'template': 'x' * 2000})
    assert refused.status_code == 413
    assert '[api] max_body_bytes' in refused.json['error']['message']


def test_what_cannot_be_done_yet_says_so(api):
    refused = api.ask('POST', 'stacks', json={'stack_name': 'x', 'template_url': 'http://x/t.yaml'})
    assert (refused.status_code, refused.json['error']['type']) == (501, 'NotOffered')
    assert 'Send the template itself' in refused.json['error']['message']


def test_methods_and_paths_that_are_not_there(api):
    wrong = api.ask('PUT', 'stacks', json={})
    assert (wrong.status_code, wrong.json['error']['type']) == (405, 'HTTPMethodNotAllowed')
    assert wrong.headers['allow'] == 'GET, HEAD, OPTIONS, POST'
    nowhere = api.ask('GET', 'nowhere')
    assert (nowhere.status_code, nowhere.json['error']['type']) == (404, 'HTTPNotFound')
    assert nowhere.json['error']['message'] == 'There is nothing at /v1/p/nowhere.'
    options = api.ask('OPTIONS', 'stacks')
    assert (options.status_code, options.headers['allow'], options.text) == (204, 'GET,HEAD,POST', '')
    for answer in (wrong, nowhere, options):
        assert answer.headers['x-openstack-request-id'].startswith('req-')


@pytest.mark.parametrize('path', ['/', '/versions', '/v1', '/v1/', '/v2/p/stacks', '/v3'])
def test_the_versions_are_told_to_anybody(api, path):
    answer = api.ask('GET', path)
    link = {'rel': 'self', 'href': 'http://localhost:8004/v1/'}
    assert answer.status_code == 300
    assert answer.json == {'versions': [{'id': 'v1.0', 'status': 'CURRENT', 'links': [link]}]}


def test_probes(api):
    assert (api.ask('GET', '/healthcheck').status_code, api.ask('GET', '/healthcheck').text) == (200, '')
    assert api.ask('GET', '/health/live').json == {'status': 'live'}
    assert api.ask('GET', '/health/ready').json['status'] == 'ready'
    progress = api.ask('GET', '/health/progress')
    assert (progress.status_code, progress.json['status'], progress.json['workers']) == (200, 'ok', 2)


class Broken:
    """An engine that cannot be asked."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def call(self, context, name, /, **arguments):
        """Fail."""
        raise self.error


@pytest.mark.parametrize(
    ('error', 'part'),
    [
        (errors.MessagingUnavailable, 'No engine can be reached.'),
        (errors.NoAnswer, 'No engine has answered in time.'),
        (errors.DatabaseUnavailable, 'The database is out of reach of the engine.'),
        (errors.OperatorError, 'The engine could not tell.'),
    ],
)
def test_probes_tell_anybody_which_part_is_not_ready_and_the_log_what_is_wrong(error, part, caplog):
    inside = 'The message broker at rabbit://10.0.0.7:5672/ does not answer. Start it, or correct [transport] url.'
    asked = client(application(Broken(error(inside))))
    assert asked.simulate_get('/health/live').status_code == 200
    for path in ('/health/ready', '/health/progress'):
        caplog.clear()
        answer = asked.simulate_get(path)
        assert (answer.status_code, answer.json['reason']) == (503, part)
        assert inside in caplog.text
        for secret in ('10.0.0.7', '5672', 'transport', 'rabbit'):
            assert secret not in answer.text
    assert asked.simulate_get('/v1/p/services').status_code == (500 if error is errors.OperatorError else 503)


def test_a_fault_of_ours_is_logged_and_tells_the_client_nothing(caplog):
    asked = client(application(Broken(KeyError('canary-4410'))))
    answer = asked.simulate_get('/v1/p/stacks')
    assert answer.status_code == 500
    assert answer.json['error'] == {'type': 'InternalError', 'traceback': None}
    assert 'canary-4410' in caplog.text


def test_a_nul_in_the_url_finds_nothing(api):
    assert api.ask('GET', 'stacks/a%00b').status_code == 404
    assert api.ask('GET', 'stacks', query_string='name=a%00b').status_code == 400


@pytest.mark.parametrize('name', ['Conflict', 'DatabaseUnavailable', 'MessagingUnavailable'])
def test_who_cannot_be_served_for_the_moment_is_told_when_to_ask_again(name: str) -> None:
    """A stack whose rows kept changing is no failure of the server."""
    assert int(faults.headers_of(getattr(errors, name)('text'))['Retry-After']) > 0
    assert faults.headers_of(errors.Invalid('text')) == {}


INSIDE = 'rabbit://10.1.2.3:5672/ does not answer. Start it, or correct [transport] url.'


@pytest.mark.parametrize(
    ('error', 'method', 'told'),
    [
        (errors.MessagingUnavailable(INSIDE), 'POST', faults.UNTOUCHED),
        (errors.NoAnswer(INSIDE), 'POST', faults.PERHAPS_DONE),
        (errors.DatabaseUnavailable(INSIDE), 'POST', faults.PERHAPS_DONE),
        (errors.Conflict(INSIDE), 'POST', faults.CHANGING),
        (errors.MessagingUnavailable(INSIDE), 'GET', faults.UNREAD),
        (errors.NoAnswer(INSIDE), 'GET', faults.UNREAD),
        (errors.DatabaseUnavailable(INSIDE), 'GET', faults.UNREAD),
    ],
)
def test_a_client_is_told_what_it_can_do_and_nothing_of_the_inside(caplog, error, method, told):
    """The operator reads in the log what is wrong."""
    asked = client(application(Broken(error)))
    body = {'stack_name': 's', 'template': TEMPLATE} if method == 'POST' else None
    answer = asked.simulate_request(method, '/v1/p/stacks', json=body)
    assert answer.status_code == 503
    assert answer.json['error']['message'] == told
    for word in ('10.1.2.3', 'rabbit', '[transport]'):
        assert word not in answer.text
    assert INSIDE in caplog.text


def test_what_may_have_been_carried_out_says_how_to_find_out():
    assert 'may have been carried out' in faults.PERHAPS_DONE
    assert 'Idempotency-Key' in faults.PERHAPS_DONE
    assert 'stack show' in faults.PERHAPS_DONE


# --- numbers that are too large -----------------------------------------------------------------------------------

DIGITS = '9' * 6000
PLACES = [
    ('POST', 'stacks', '{"stack_name": "large", "template": {}, "parameters": {"x": NUMBER}}'),
    ('POST', 'stacks', '{"stack_name": "large", "template": {}, "timeout_mins": NUMBER}'),
    ('POST', 'validate', '{"template": {"heat_template_version": "2018-08-31", "outputs": {"x": {"value": NUMBER}}}}'),
    ('POST', 'software_configs', '{"name": "n", "config": "c", "options": {"x": NUMBER}}'),
    ('POST', 'stacks', '{"stack_name": "large", "adopt_stack_data": {"template": {"x": NUMBER}}}'),
    ('POST', 'stacks', '{"stack_name": "large", "adopt_stack_data": "{\\"template\\": {\\"x\\": NUMBER}}"}'),
    ('POST', 'stacks', '{"stack_name": "large", "template": "{\\"heat_template_version\\": NUMBER}"}'),
    ('POST', 'stacks', '{"stack_name": "large", "template": "heat_template_version: NUMBER"}'),
    ('PUT', '/v1/p/signals/x', '{"data": NUMBER}'),
]


@pytest.mark.parametrize('number', ['1e999', '-1e999', '[0, {"a": 1E+4000}]', DIGITS, f'-{DIGITS}'])
@pytest.mark.parametrize(('method', 'path', 'body'), PLACES)
def test_a_number_that_is_too_large_is_a_mistake_of_the_client(api, method, path, body, number):
    if '\\"' in body:
        number = number.replace('"', '\\"')
    answer = api.ask(method, path, body=body.replace('NUMBER', number), headers={'Content-Type': 'application/json'})
    assert answer.status_code == 400, answer.text
    for inside in ('set_int_max_str_digits', 'Out of range', 'broker'):
        assert inside not in answer.text


@pytest.mark.parametrize('number', ['1e308', '-1.5e-400', '9' * 300])
def test_a_number_that_can_be_kept_is_taken(number):
    assert documents.parse(f'[{number}]') == [json.loads(number)]


def test_what_cannot_be_sent_is_not_blamed_on_the_broker(api):
    with pytest.raises(errors.ConvergenceError) as caught:
        api.embedded.client.call(CallerContext(project_id='p'), 'show_software_config', config_id=float('inf'))
    assert not isinstance(caught.value, errors.MessagingUnavailable)
    assert 'broker' not in str(caught.value)


# --- HEAD ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'path', ['/', '/v1', '/healthcheck', '/health/live', '/health/ready', '/openapi.json', 'stacks', 'stacks/nothing']
)
def test_head_is_answered_as_get_is_without_a_body(api, path):
    get, head = api.ask('GET', path), api.ask('HEAD', path)
    assert (head.status_code, head.text) == (get.status_code, '')


def test_head_is_for_what_can_be_looked_at_only(api):
    assert api.ask('HEAD', 'validate').status_code == 405
    assert 'HEAD' in api.ask('OPTIONS', 'stacks').headers['allow'].split(',')


def test_who_comes_with_a_signal_address_is_told_what_is_of_use_there():
    for error in (errors.NoAnswer('x'), errors.DatabaseUnavailable('x'), errors.MessagingUnavailable('x')):
        said = faults.body_of(error, 'PUT', guest=True)['error']['message']
        assert 'Send it again' in said
        assert 'Idempotency-Key' not in said
        assert 'convergence' not in said


def test_a_signal_that_no_engine_takes_is_answered_for_guests():
    class Away:
        def call(self, context, name, /, **arguments):
            raise errors.NoAnswer('x')

    answer = client(application(Away())).simulate_put('/v1/p/signals/x', query_string='Signature=y', body='{}')
    assert (answer.status_code, answer.json['error']['message']) == (503, faults.GUEST)
