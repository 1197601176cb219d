"""Conditions: what holds, what exists then, and what a branch that is not taken leaves behind."""

import pytest

from convergence.core.model import Output
from convergence.errors import InvalidTemplateReference, InvalidTemplateSection, StackValidationFailed
from convergence.template import UNKNOWN, Require, preview, references, resolve
from tests.template.build import INPUTS, compiled, encoded_property, problems

PARAMETERS = """
parameters:
  env: {type: string, default: prod}
  flag: {type: boolean, default: true}
  number: {type: number, default: 1}
  zones: {type: comma_delimited_list, default: 'a,b'}
"""


def holds(condition, sections=''):
    """Return True if a resource with this condition exists."""
    template = compiled(f'{PARAMETERS}{sections}\nresources:\n  r: {{type: T, condition: {condition}}}\n')
    return 'r' in template.goal.definitions


@pytest.mark.parametrize(
    ('condition', 'expected'),
    [
        ('true', True),
        ('false', False),
        ('null', True),
        ('{equals: [{get_param: env}, prod]}', True),
        ('{equals: [{get_param: env}, test]}', False),
        ('{equals: [{get_param: number}, 1]}', True),
        ('{equals: [{get_param: number}, "1"]}', False),
        ('{equals: [{get_param: [zones, 1]}, b]}', True),
        ('{equals: [null, null]}', True),
        ('{equals: [[1, {a: b}], [1, {a: b}]]}', True),
        ('{get_param: flag}', True),
        ('{not: {get_param: flag}}', False),
        ('{not: {not: {get_param: flag}}}', True),
        ('{and: [true, {get_param: flag}]}', True),
        ('{and: [true, true, false]}', False),
        ('{or: [false, {get_param: flag}]}', True),
        ('{or: [false, false, false]}', False),
        ('{contains: [b, {get_param: zones}]}', True),
        ('{contains: [c, {get_param: zones}]}', False),
        ('{contains: [ro, {get_param: env}]}', True),
    ],
)
def test_a_condition_decides_whether_a_resource_exists(condition, expected):
    assert holds(condition) is expected


def test_conditions_refer_to_each_other_in_any_order():
    section = """
conditions:
  both: {and: [is_prod, {not: small}]}
  small: {or: [is_test, {equals: [{get_param: number}, 0]}]}
  is_test: {equals: [{get_param: env}, test]}
  is_prod: {equals: [{get_param: env}, prod]}
"""
    assert holds('both', section)
    assert not holds('{not: both}', section)


def test_a_chain_of_conditions_may_be_long():
    links = '\n'.join(f'  c{number}: {{not: c{number - 1}}}' for number in range(3_000, 0, -1))
    assert holds('c3000', f'conditions:\n{links}\n  c0: true\n')


@pytest.mark.parametrize(
    ('section', 'text', 'line'),
    [
        ('a: {not: b}\n  b: {not: a}', 'circle: a (line 3) -> b (line 4) -> a (line 3)', 3),
        ('a: {not: a}', 'circle: a (line 3) -> a (line 3)', 3),
        ('a: {not: nothing}', 'Invalid condition "nothing" (in conditions.a).', 3),
        ('a: other\n  other: true', 'The definition of condition "a" is invalid: other', 3),
        ('a: 1', 'The definition of condition "a" is invalid: 1', 3),
        ('a: {and: [true]}', 'and needs a list of two or more conditions', 3),
        ('a: {or: true}', 'or needs a list of two or more conditions', 3),
        ('a: {not: [true]}', 'not needs one condition', 3),
        ('a: {equals: [1]}', 'equals needs a list of two values', 3),
        ('a: {get_attr: [r, x]}', 'The function "get_attr" is invalid in this context', 3),
        ('a: {equals: [{get_resource: r}, 1]}', 'The function "get_resource" is invalid in this context', 3),
        ('a: {not: 7}', 'Invalid condition "7"', 3),
        ('a: {unknown: 7}', 'Invalid condition', 3),
        ('a: {contains: [1, 2]}', 'the second argument must be a list, not a number', 3),
    ],
)
def test_a_wrong_condition_is_refused_with_its_place_once(section, text, line):
    kind = InvalidTemplateReference if 'nothing' in text else StackValidationFailed
    template = f'conditions:\n  {section}\nresources:\n  r: {{type: T, condition: a}}\n'
    (problem,) = problems(template, kind)
    assert text in problem.message
    assert problem.place.line == line


def test_a_value_that_is_neither_true_nor_false_is_refused_without_being_shown():
    text = 'parameters: {p: {type: string, default: secret, hidden: true}}\nconditions: {a: {get_param: p}}\n'
    (problem,) = problems(text)
    assert 'it is a string, neither true nor false' in problem.message
    assert 'secret' not in str(problem)


def test_an_unknown_name_has_a_hint():
    text = 'conditions: {is_prod: true}\nresources: {r: {type: T, condition: is_prd}}\n'
    (problem,) = problems(text, InvalidTemplateReference)
    assert 'Invalid condition "is_prd" (in r).' in problem.message
    assert 'is_prod' in str(problem)
    (problem,) = problems(text.replace('is_prd', 'x'), InvalidTemplateReference)
    assert problem.message == 'Invalid condition "x" (in r). The conditions are: is_prod.'


# --- what does not exist ----------------------------------------------------------------------------------------

ABSENT = """
conditions: {off: false}
resources:
  gone: {type: T, condition: off, properties: {x: {get_param: not_looked_at}}}
  user: {type: T, depends_on: [gone], properties: {x: {if: [off, {get_attr: [gone, y]}, 2]}}}
outputs:
  reference: {value: {get_resource: gone}}
  attribute: {value: {list_join: ['-', [a, {get_attr: [gone, y, z]}]]}}
  itself: {value: {get_attr: [user, y]}, condition: off}
"""


def test_what_refers_to_a_resource_that_does_not_exist_gets_null_in_outputs():
    template = compiled(ABSENT)
    assert list(template.goal.definitions) == ['user']
    assert template.goal.definitions['user'].requires == ()
    assert template.goal.definitions['user'].properties == {'x': 2}
    assert {name: output.value for name, output in template.outputs.items()} == {
        'reference': None,
        'attribute': 'a-',
        'itself': None,
    }
    assert template.goal.asked == {}


@pytest.mark.parametrize('value', ['{get_resource: gone}', '{get_attr: [gone, y]}'])
def test_what_refers_to_it_elsewhere_is_refused(value):
    text = f'resources:\n  gone: {{type: T, condition: false}}\n  r: {{type: T, properties: {{x: {value}}}}}\n'
    (problem,) = problems(text, InvalidTemplateReference)
    assert 'The specified reference "gone" (in r) is incorrect' in problem.message
    assert problem.place.line == 4


def test_what_does_not_exist_must_still_be_well_formed():
    (problem,) = problems('resources: {r: {type: T, condition: false, propertys: {}}}\n', InvalidTemplateSection)
    assert '"propertys" is not a valid keyword' in problem.message


# --- if ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        ({'if': [True, 'a', 'b']}, 'a'),
        ({'if': [False, 'a', 'b']}, 'b'),
        ({'if': [{'equals': [1, 1]}, {'k': [1]}, None]}, {'k': [1]}),
        ({'if': [False, 'a', {'if': [True, 'c', 'd']}]}, 'c'),
        ({'if': [True, None, 1]}, None),
        ([1, {'if': [False, 2]}, 3], [1, 3]),
        ([1, {'if': [True, 2]}, 3], [1, 2, 3]),
        ({'a': 1, 'b': {'if': [False, 2]}}, {'a': 1}),
        ([{'if': [True, {'if': [False, 1]}]}], []),
        ([{'if': [False, 1]}, {'if': [False, 2]}], []),
        ({'list_join': [',', ['a', {'if': [False, 'b']}, 'c']]}, 'a,c'),
        ({'map_merge': [{'a': 1, 'x': {'if': [False, 2]}}, {'b': 2}]}, {'a': 1, 'b': 2}),
    ],
)
def test_if_chooses_and_may_leave_out(value, expected):
    assert encoded_property(value) == expected


def test_a_property_may_be_left_out():
    body = '{type: T, properties: {a: {if: [false, 1]}, b: 2}, metadata: {if: [false, {}]}}'
    template = compiled(f'resources: {{r: {body}}}\n')
    assert template.goal.definitions['r'].properties == {'b': 2}
    assert template.goal.definitions['r'].metadata == {}


def test_only_the_newest_version_leaves_out():
    with pytest.raises(StackValidationFailed, match='if needs a list: a condition, the value'):
        encoded_property([{'if': [False, 1]}], version='2018-08-31')


def test_the_branch_that_is_not_taken_is_not_even_looked_at():
    value = {'if': [True, {'get_resource': 'db'}, {'get_attr': ['no_such_resource', {'get_param': 'no_such'}]}]}
    encoded = encoded_property(value)
    assert references(encoded) == ({'db'}, {})
    assert resolve(encoded, {'db': INPUTS['db']}) == 'db-7'


def test_while_a_parameter_has_no_value_both_branches_count():
    text = """
parameters: {p: {type: boolean}}
conditions: {c: {get_param: p}, d: {not: c}}
resources:
  db: {type: T, condition: d}
  net: {type: T}
  r: {type: T, properties: {x: {if: [c, {get_resource: net}, {get_attr: [db, port]}]}, y: [{if: [c, 1]}]}}
"""
    template = compiled(text, require_parameters=Require.NONE)
    definition = template.goal.definitions['r']
    assert definition.requires == ('db', 'net')
    assert preview(definition.properties, {'db': Output('1'), 'net': Output('2')}) == {'x': UNKNOWN, 'y': [UNKNOWN]}
    for given in (True, False):
        definition = compiled(text, parameters={'p': given}).goal.definitions['r']
        assert definition.requires == (('net',) if given else ('db',))
