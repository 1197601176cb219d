"""A short run of each target, the same in every run; and what the long runs have found, by name."""

from __future__ import annotations

import json
from argparse import Namespace

import pytest

from convergence import documents
from convergence.errors import ConvergenceError, StackValidationFailed
from convergence.template import compile
from tests.fuzz import requests
from tests.fuzz.__main__ import bound, language
from tests.fuzz.corpus import TEMPLATE
from tests.fuzz.findings import Figures, Target
from tests.fuzz.language import IDENTITY, TARGETS, clear
from tests.fuzz.mutation import DEEP, Mutator, encoded

SECRET = {'secret': 'canary-5512'}


def few(figures, count):
    return bound(figures, Namespace(count=count, time=0.0))


@pytest.mark.parametrize('name', TARGETS)
def test_no_text_does_anything_but_be_read_or_refused(name):
    figures = Figures(name)
    language(name, Mutator(7), figures, few(figures, 400))
    assert figures.found == {}
    assert min(figures.outcomes['taken'], figures.outcomes['refused']) > 20


@pytest.mark.parametrize('name', requests.STEPS)
def test_no_request_of_a_member_makes_anything_fail(name):
    figures = Figures(name)
    requests.run(name, 'member', Mutator(7), figures, few(figures, 60))
    assert figures.found == {}
    assert figures.outcomes['2xx'] > 0
    assert figures.outcomes['4xx'] > 0


@pytest.mark.parametrize('role', ['none', 'stranger'])
def test_nobody_without_a_role_is_let_in(role):
    figures = Figures(role)
    requests.run('patch', role, Mutator(7), figures, few(figures, 10))
    assert figures.found == {}
    assert figures.outcomes == {'4xx': 10}


@pytest.mark.parametrize('name', TARGETS)
def test_guided_by_what_inputs_reach(name):
    pytest.importorskip('atheris', reason='the extra fuzz is not installed: no input is chosen by what it reaches')
    from tests.fuzz import guided

    figures = guided.in_another_process(name, 3, seed=7)
    assert figures.found == {}
    assert figures.executions > 50


# --- the instrument itself --------------------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_inputs():
    first, second, third = (Mutator(seed) for seed in (5, 5, 6))
    texts = [[mutator.text(TARGETS['reader'].seeds) for _ in range(50)] for mutator in (first, second, third)]
    assert texts[0] == texts[1] != texts[2]


def test_what_is_deep_is_written_without_going_down():
    mutator = Mutator(0)
    texts = [encoded(mutator.document(TEMPLATE)) for _ in range(600)]
    assert any('[{"a":' * (max(DEEP) // 2) in text for text in texts)


def test_a_reader_that_breaks_is_found():
    figures = Figures('broken')
    Target('broken', (), lambda text: bool(1 // len(text))).attempt('', figures)
    assert [kind.partition(' in ')[0] for kind in figures.found] == [
        'ZeroDivisionError: integer division or modulo by zero'
    ]
    with pytest.raises(AssertionError, match='shows the inside'):
        clear(ConvergenceError("'NoneType' object has no attribute 'x'"))


class Answer:
    def __init__(self, status_code, text):
        self.status_code, self.text = status_code, text


@pytest.mark.parametrize(
    ('role', 'status', 'text', 'found'),
    [
        ('member', 500, '{}', '500 PUT'),
        ('member', 503, '{}', '503 PUT'),
        ('member', 400, '', '400 without a text'),
        ('member', 400, 'not NoneType', '400 that shows the inside'),
        ('none', 200, '{}', 'none is let in'),
        ('stranger', 202, '{}', 'stranger is let in'),
        ('member', 202, '{}', ''),
        ('member', 400, 'say x', ''),
        ('reader', 403, 'Forbidden', ''),
    ],
)
def test_an_answer_that_nobody_may_get_is_found(role, status, text, found):
    figures = Figures('x')
    requests.judge(
        figures, role, 'PUT', '/v1/p/stacks/s/00000000-0000-0000-0000-000000000000', Answer(status, text), {}
    )
    assert ''.join(figures.found)[: len(found)] == found
    assert bool(figures.found) == bool(found)


# --- what was found ---------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def installation():
    """An installation in which stacks can be adopted, with one stack."""
    with requests.world() as made:
        made.living()
        yield made


def nested(levels):
    return '[' * levels + ']' * levels


@pytest.mark.parametrize('levels', [300, 900, 100_000])
def test_a_body_that_is_nested_too_deeply_is_refused_everywhere(installation, levels):
    """500: what looked at the shape of the body went down until Python stopped it."""
    bodies = {
        'stacks': f'{{"stack_name": "deep", "template": {{"a": {nested(levels)}}}}}',
        'validate': f'{{"template": {{"a": {nested(levels)}}}}}',
        installation.path('/actions'): f'{{"check": {nested(levels)}}}',
        installation.path('/resources/first/signal'): f'{{"a": {nested(levels)}}}',
        'software_configs': f'{{"options": {{"a": {nested(levels)}}}}}',
    }
    for path, body in bodies.items():
        answer = installation.ask('POST', path, body=body)
        assert answer.status_code == 400, f'{path}: {answer.text}'
        assert 'nested too deeply' in answer.json['error']['message']


def test_as_deep_as_is_allowed_is_no_problem_anywhere():
    value = documents.parse(nested(documents.DEEPEST))
    assert json.dumps(value) == nested(documents.DEEPEST)
    with pytest.raises(ValueError, match='is nested too deeply'):
        documents.parse(nested(documents.DEEPEST + 1))


def exported(installation):
    return installation.ask('GET', installation.path('/export')).json


def adopted(installation, data, name, **more):
    return installation.ask('POST', 'stacks', json={'stack_name': name, 'adopt_stack_data': data, **more})


@pytest.mark.parametrize('as_text', [True, False])
def test_a_stack_with_hidden_parameters_is_adopted_over_the_api(installation, as_text):
    """500: the API sends an environment in layers, and adoption took it for one map."""
    data = exported(installation)
    name = f'again-{as_text}'
    answer = adopted(installation, json.dumps(data) if as_text else data, name, parameters=SECRET)
    assert answer.status_code == 201, answer.text
    text = adopted(installation, data, f'{name}-environment', environment=json.dumps({'parameters': SECRET}))
    assert text.status_code == 201, text.text


@pytest.mark.parametrize(
    ('data', 'said'),
    [
        ('null', 'expected a map, not null'),
        ('[1]', 'expected a map, not a list'),
        ('{', 'is not JSON'),
        ('{"a": NaN}', 'NaN is not JSON'),
        (nested(300), 'nested too deeply'),
        (nested(100_000), 'nested too deeply'),
        ('{"template": {}, "name": "\\u0000"}', 'NUL'),
        ('{"template": {}, "name": "\\ud800"}', 'surrogate'),
    ],
)
def test_texts_of_adoption_are_read_as_strictly_as_bodies(installation, data, said):
    """500: deep texts; and what no database keeps came in as a text within the text."""
    answer = adopted(installation, data, 'junk')
    assert answer.status_code == 400, answer.text
    assert said in answer.json['error']['message']


@pytest.mark.parametrize(
    ('section', 'value', 'said'),
    [
        ('files', {'f': 5}, 'files: f must be a text, not a number'),
        ('files', [], 'files must be a map, not a list'),
        ('resources', {'first': 5}, 'first must be a map, not a number'),
        ('resources', {'first': {'resource_id': 5}}, 'the resource_id of first must be a text'),
        ('environment', 'x', 'environment must be a map, not a string'),
        ('template', None, 'it has no template'),
    ],
)
def test_data_of_adoption_with_other_kinds_of_values_are_refused(installation, section, value, said):
    answer = adopted(installation, {**exported(installation), section: value}, 'junk', parameters=SECRET)
    assert answer.status_code == 400, answer.text
    assert said in answer.json['error']['message']


@pytest.mark.parametrize('database_url', ['postgresql'], indirect=True)
def test_what_a_database_cannot_keep_is_refused_before_it_is_asked(database_url):
    """500, or a worker that could never store its result: SQLite keeps what PostgreSQL does not."""
    thing = 'heat_template_version: 2018-08-31\nresources:\n  a: {type: OS::Heat::TestResource, external_id: "a\\0b"}\n'
    value = 'heat_template_version: 2018-08-31\nresources:\n  a: {type: OS::Heat::Value, properties: {value: "\\0"}}\n'
    with requests.world(database=database_url) as made:
        made.living()
        config = made.ask('POST', 'software_configs', json={'config': 'x'}).json['software_config']['id']
        deployment = {'server_id': 's', 'config_id': config, 'stack_user_project_id': 'x' * 65}
        for path, body, said in (
            ('stacks', {'stack_name': 'one', 'template': thing}, 'NUL'),
            ('stacks', {'stack_name': 'two', 'template': value}, 'NUL'),
            ('stacks', {'stack_name': 'tri', 'template': TEMPLATE, 'environment': 'parameters: {text: "\\0"}'}, 'NUL'),
            (made.path('/snapshots'), {'name': 'é' * 256}, 'at most 255 characters'),
            ('software_deployments', deployment, 'stack_user_project_id must not be longer than 64'),
        ):
            answer = made.ask('POST', path, json=body)
            assert answer.status_code == 400, answer.text
            assert said in answer.json['error']['message']
        assert made.ask('POST', made.path('/snapshots'), json={'name': 'é' * 255}).status_code == 200
        made.settle()
        assert made.complaints.found == {}


@pytest.mark.parametrize('identity', ['"a\\e[31mb"', '{get_param: [tree, "x"]}', '"a\\u202eb"'])
def test_an_external_id_is_what_can_be_shown(identity):
    source = (
        'heat_template_version: 2018-08-31\n'
        'parameters: {tree: {type: json, default: {x: "a\\nb"}}}\n'
        f'resources:\n  a: {{type: OS::Heat::TestResource, external_id: {identity}}}\n'
    )
    with pytest.raises(StackValidationFailed, match='external_id must not contain characters that cannot be printed'):
        compile(source, identity=IDENTITY)


@pytest.mark.parametrize('default', [{'x': '\0'}, '{"x": "\\u0000"}'])
def test_no_form_of_a_document_brings_a_nul(default):
    document = {'heat_template_version': '2018-08-31', 'parameters': {'tree': {'type': 'json', 'default': default}}}
    for source in (document, json.dumps(document)):
        with pytest.raises(StackValidationFailed, match=r'NUL|cannot be stored'):
            compile(source, identity=IDENTITY)
