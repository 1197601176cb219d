"""Whole templates: definitions, dependencies, outputs, places, and all problems at once."""

import pytest

from convergence.core.model import DeletionPolicy, Output
from convergence.errors import (
    CircularDependencyException,
    InvalidTemplateReference,
    InvalidTemplateSection,
    StackValidationFailed,
)
from convergence.template import Require, resolve
from tests.template.build import compiled, problems

SHOP = """heat_template_version: 2016-10-14
description: A shop
parameters:
  size: {type: number, default: 3}
resources:
  web:
    type: OS::Heat::TestResource
    depends_on: [zone, cache]
    deletion_policy: retain
    description: what customers see
    update_policy: {rolling_update: {max_batch_size: {get_param: size}}}
    metadata: {role: web, peer: {get_resource: db}}
    properties:
      value:
        list_join: ['/', [{get_attr: [db, url, 0]}, {get_attr: [cache, url]}, {get_attr: [db, name]}]]
      size: {get_param: size}
  db: {type: T}
  cache: {type: T, properties: }
  zone: {type: T, depends_on: db}
outputs:
  address: {description: where it is, value: {get_attr: [web, address]}}
  all: {value: {get_attr: [db]}}
  plain: {value: {get_param: size}}
"""


def test_definitions_carry_what_the_engine_needs():
    result = compiled(SHOP)
    assert (result.version, result.description) == ('2016-10-14', 'A shop')
    assert list(result.goal.definitions) == ['web', 'db', 'cache', 'zone']
    web = result.goal.definitions['web']
    assert (web.name, web.type) == ('web', 'OS::Heat::TestResource')
    assert web.requires == ('cache', 'db', 'zone')
    assert web.uses == {'cache': ('url',), 'db': ('name', 'url')}
    assert web.deletion_policy is DeletionPolicy.RETAIN
    assert result.goal.definitions['zone'].requires == ('db',)
    assert result.goal.definitions['cache'].properties == {}
    inputs = {
        'db': Output('r1', 'db-1', {'url': ['u', 'v'], 'name': 'n'}),
        'cache': Output('r2', 'c-1', {'url': 'c'}),
    }
    assert resolve(web.properties, inputs) == {'value': 'u/c/n', 'size': 3}
    assert resolve(web.metadata, inputs) == {'role': 'web', 'peer': 'db-1'}


def test_asked_attributes_are_those_of_resources_and_outputs():
    assert compiled(SHOP).goal.asked == {'web': ('address',), 'db': ('', 'name', 'url'), 'cache': ('url',)}


def test_outputs_keep_their_order_and_description():
    outputs = compiled(SHOP).outputs
    assert list(outputs) == ['address', 'all', 'plain']
    assert outputs['address'].description == 'where it is'
    assert outputs['all'].description == 'No description given'
    assert outputs['plain'].value == 3


@pytest.mark.parametrize('text', ['', 'resources:\nparameters:\noutputs:\nparameter_groups:\n'])
def test_sections_may_be_absent_or_null(text):
    assert compiled(text).goal.definitions == {}


@pytest.mark.parametrize(
    ('path', 'line', 'column'),
    [
        (('resources', 'web'), 6, 3),
        (('resources', 'web', 'type'), 7, 11),
        (('resources', 'web', 'depends_on', 1), 8, 24),
        (('resources', 'web', 'properties', 'size', 'get_param'), 16, 25),
        (('resources', 'web', 'properties', 'missing', 'below'), 13, 5),
        (('resources', 'cache', 'properties'), 18, 20),
        (('resources', 'gone'), 5, 1),
        (('gone',), 1, 1),
    ],
)
def test_places(path, line, column):
    place = compiled(SHOP).place(*path)
    assert (place.line, place.column, place.source, place.path) == (line, column, 'template', path)


def test_a_place_inside_of_an_alias_is_where_it_was_written():
    text = 'resources:\n  a: {type: T, properties: &p\n    {x: 1}}\n  b: {type: T, properties: *p}\n'
    result = compiled(text)
    assert result.place('resources', 'b', 'properties').line == 5
    assert result.place('resources', 'b', 'properties', 'x').line == 4


def test_all_problems_are_told_at_once_in_the_order_of_the_document():
    text = """
parameters:
  size: {type: nubmer}
resources:
  web:
    tpye: T
    depends_on: bd
    properties: {a: {get_param: siez}, b: {get_file: x}}
  db/1: {type: T, deletion_policy: Keep}
  cache: []
outputs:
  o: {valeu: 1}
reosurces: {}
"""
    found = problems(text, require_parameters=Require.NONE)
    expected = [
        (4, 'Did you mean "number"?'),
        (7, 'Did you mean "type"?'),
        (8, '"bd" (in web) is incorrect'),
        (9, 'Did you mean "size"?'),
        (9, 'get_file path: x'),
        (10, 'slash'),
        (10, 'deletion policy'),
        (11, 'must be a map'),
        (13, 'with the key value'),
        (14, 'The template section is invalid: reosurces'),
    ]
    assert len(found) == len(expected), found
    for problem, (line, what) in zip(found, expected, strict=True):
        assert (problem.place.source, problem.place.line) == ('template', line)
        assert what in str(problem).splitlines()[0]


def test_problems_of_one_kind_are_raised_as_that_kind():
    text = 'resources:\n  web: {type: T, depends_on: bd, properties: {x: {get_resource: bd}}}\n'
    assert len(problems(text, InvalidTemplateReference)) == 2
    assert len(problems('foo: 1\nbar: 2\n', InvalidTemplateSection)) == 2


@pytest.mark.parametrize(
    ('body', 'message', 'kind'),
    [
        ('{type: T, foo: 1}', '"foo" is not a valid keyword inside a resource definition', InvalidTemplateSection),
        ('{type: T, condition: x}', 'Invalid condition "x" (in web)', InvalidTemplateReference),
        ('{type: T, external_id: [x]}', 'external_id must be the id of an object', StackValidationFailed),
        ('{type: 1}', 'not text', StackValidationFailed),
        ('{type: ""}', 'not text', StackValidationFailed),
        ('{type: T, properties: []}', 'The properties must be a map', StackValidationFailed),
        ('{type: T, metadata: x}', 'The metadata must be a map', StackValidationFailed),
        ('{type: T, update_policy: x}', 'The update_policy must be a map', StackValidationFailed),
        ('{type: T, depends_on: {a: b}}', 'must be the name of a resource', StackValidationFailed),
        ('{type: T, deletion_policy: [Delete]}', 'Delete, Retain, Snapshot', StackValidationFailed),
    ],
)
def test_wrong_resources(body, message, kind):
    (problem,) = problems(f'resources:\n  web: {body}\n', kind)
    assert message in problem.message
    assert problem.place.line == 3


def test_deletion_policies_in_lower_case_came_with_newton():
    for text in ('retain', 'Retain', '{get_param: p}'):
        body = 'parameters: {p: {type: string, default: retain}}\n'
        body += f'resources: {{a: {{type: T, deletion_policy: {text}}}}}\n'
        policy = compiled(f'heat_template_version: newton\n{body}').goal.definitions['a'].deletion_policy
        assert policy is DeletionPolicy.RETAIN
    old = 'heat_template_version: 2016-04-08\nresources: {a: {type: T, deletion_policy: retain}}'
    assert '2016-10-14' in problems(old)[0].message


def test_properties_may_be_a_parameter_or_an_attribute_as_a_whole():
    text = 'parameters: {p: {type: json, default: {$x: 1}}}\n'
    text += 'resources: {a: {type: T, properties: {get_param: p}}, b: {type: T}}\n'
    assert resolve(compiled(text).goal.definitions['a'].properties, {}) == {'$x': 1}
    late = text.replace('{get_param: p}', '{get_attr: [b, x]}')
    definition = compiled(late).goal.definitions['a']
    assert (definition.requires, definition.uses) == (('b',), {'b': ('x',)})
    assert resolve(definition.properties, {'b': Output('1', attributes={'x': {'y': 2}})}) == {'y': 2}


def test_circles_are_named_with_their_lines():
    text = """resources:
  a: {type: T, depends_on: b}
  b: {type: T, properties: {x: {get_resource: c}}}
  c: {type: T, metadata: {x: {get_attr: [a, y]}}}
  d: {type: T, properties: {x: {list_join: ['', [{get_resource: d}]]}}}
  e: {type: T, depends_on: [a, d]}
"""
    found = problems(text, CircularDependencyException)
    assert [problem.message for problem in found] == [
        'Circular Dependency Found: a (line 3) -> b (line 4) -> c (line 5) -> a (line 3)',
        'Circular Dependency Found: d (line 6) -> d (line 6)',
    ]


def test_a_circle_as_long_as_the_template_is_found():
    body = ''.join(f'  r{index}: {{type: T, depends_on: r{(index + 1) % 1000}}}\n' for index in range(1000))
    (problem,) = problems(f'resources:\n{body}', CircularDependencyException)
    assert problem.place.line == 3


def test_versions_without_conditions_know_no_such_section():
    old = 'heat_template_version: 2015-10-15\nconditions: {a: true}\n'
    assert 'The template section is invalid: conditions' in problems(old, InvalidTemplateSection)[0].message
    old = 'heat_template_version: 2015-10-15\noutputs: {o: {value: 1, condition: a}}\n'
    assert 'It came with version 2016-10-14.' in problems(old, InvalidTemplateSection)[0].message


def test_a_problem_never_repeats_a_whole_document():
    (problem,) = problems(f'resources: {{a: {{type: T, depends_on: {"x" * 100_000}}}}}\n', InvalidTemplateReference)
    assert len(str(problem)) < 2_000
    (problem,) = problems(f'outputs: {{? "{"x" * 100_000}" : {{}}}}\n')
    assert len(str(problem)) < 2_000
