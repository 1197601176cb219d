"""Parameters: types, constraints, where values come from, what is hidden; and environments."""

import pytest

from convergence.errors import (
    InvalidTemplateSection,
    RequestLimitExceeded,
    StackValidationFailed,
    UnknownUserParameter,
    UserParameterMissing,
)
from convergence.template import UNKNOWN, Require, StackIdentity, UnresolvedReference, preview, resolve
from tests.template.build import compiled, problems


def value(type_, given):
    """The value of a parameter of a type when this was given."""
    template = {'heat_template_version': 'newton', 'parameters': {'p': {'type': type_}}}
    return compiled(template, parameters={'p': given}).parameters['p'].value


@pytest.mark.parametrize(
    ('type_', 'given', 'expected'),
    [
        ('string', 'x', 'x'),
        ('string', 80, '80'),
        ('string', '', ''),
        ('number', 3, 3),
        ('number', '3', 3),
        ('number', '-3.5', -3.5),
        ('number', '1e3', 1000.0),
        ('number', 1.5, 1.5),
        *(('boolean', text, True) for text in (True, 't', 'true', 'On', 'Y', 'yes', '1', 1)),
        *(('boolean', text, False) for text in (False, 'f', 'false', 'OFF', 'n', 'no', '0', 0)),
        ('comma_delimited_list', 'x, y', ['x', ' y']),
        ('comma_delimited_list', ['x', 'y'], ['x', 'y']),
        ('comma_delimited_list', [80, 'x', 1.5], ['80', 'x', '1.5']),
        ('comma_delimited_list', '', []),
        ('json', '', ''),
        ('json', {'a': [1]}, {'a': [1]}),
        ('json', [1], [1]),
        ('json', '{"a": [1, null]}', {'a': [1, None]}),
    ],
)
def test_values_are_typed(type_, given, expected):
    found = value(type_, given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ('type_', 'given', 'message'),
    [
        ('string', {'a': 1}, 'must be a string'),
        ('number', 'x', 'not a number'),
        ('number', True, 'not a number'),
        ('number', '1' * 5000, 'max_number_length'),
        ('number', 'nan', 'not a number'),
        ('number', '1e999', 'not a number'),
        ('boolean', 'maybe', 'not a boolean'),
        ('boolean', 2, 'not a boolean'),
        ('comma_delimited_list', {'a': 1}, 'not a map'),
        ('json', '{"a": ', 'not JSON'),
        ('json', 'NaN', 'not JSON'),
        ('json', '{"a": 1, "a": 2}', 'duplicate keys'),
        ('json', '[' * 100_000, 'not JSON'),
    ],
)
def test_values_of_another_type_are_refused(type_, given, message):
    with pytest.raises(StackValidationFailed, match=f"Parameter 'p' is invalid: .*{message}"):
        value(type_, given)


def test_json_text_that_is_too_deep_is_refused():
    with pytest.raises(RequestLimitExceeded, match='max_depth'):
        value('json', '[' * 100 + ']' * 100)


def declared(type_, constraint, version='2021-04-16', description=None):
    constraint = {**constraint, 'description': description} if description else constraint
    return {
        'heat_template_version': version,
        'parameters': {'p': {'type': type_, 'constraints': [constraint]}},
    }


@pytest.mark.parametrize(
    ('type_', 'constraint', 'good', 'bad'),
    [
        ('string', {'length': {'min': 2, 'max': 3}}, ['ab', 'abc'], ['a', 'abcd']),
        ('comma_delimited_list', {'length': {'max': 1}}, ['a', ''], ['a,b']),
        ('json', {'length': {'min': 1}}, [{'a': 1}], [{}]),
        ('number', {'range': {'min': 1, 'max': 2.5}}, [1, 2.5, '2'], [0, 3]),
        ('number', {'range': {'max': '5'}}, [-7, 5], [6]),
        ('number', {'modulo': {'step': 5, 'offset': 1}}, [1, 6, -4], [5, 2]),
        ('number', {'modulo': {'step': 0.1, 'offset': 0}}, [0.3, 7], [0.25]),
        ('string', {'allowed_values': ['a', 1]}, ['a', '1', 1], ['b', 'A']),
        ('number', {'allowed_values': [1, '2.5']}, [1, 2.5], [2]),
        ('boolean', {'allowed_values': [True]}, ['yes'], ['no']),
        ('comma_delimited_list', {'allowed_values': ['a', 'b']}, ['a', 'b,a', ''], ['a,c']),
        ('string', {'allowed_pattern': '[a-z]+[0-9]'}, ['ab1'], ['ab12', '1', 'xab1 ']),
    ],
)
def test_constraints(type_, constraint, good, bad):
    template = declared(type_, constraint)
    for given in good:
        compiled(template, parameters={'p': given})
    for given in bad:
        with pytest.raises(StackValidationFailed, match="Parameter 'p' is invalid"):
            compiled(template, parameters={'p': given})


def test_the_description_of_a_constraint_is_its_error_text():
    template = declared('string', {'length': {'min': 2}}, description='name of two letters')
    (problem,) = problems(template, parameters={'p': 'a'})
    assert problem.message == "Parameter 'p' is invalid: name of two letters"


@pytest.mark.parametrize(
    ('type_', 'constraint', 'message'),
    [
        ('string', {'custom_constraint': ['x']}, 'must be the name of a constraint'),
        ('string', {'lenght': {'min': 1}}, 'Did you mean "length"?'),
        ('string', {'length': {'min': 1}, 'range': {'min': 1}}, 'exactly one'),
        ('string', {}, 'exactly one'),
        ('string', {'length': 5}, 'must be a map with the keys min and max'),
        ('string', {'length': {}}, 'needs min or max'),
        ('string', {'length': {'min': 3, 'max': 2}}, 'greater than max'),
        ('string', {'length': {'min': -1}}, 'whole numbers'),
        ('string', {'length': {'min': 'x'}}, 'not a number'),
        ('string', {'range': {'min': 1}}, 'range cannot be used for the type string'),
        ('number', {'allowed_pattern': 'x'}, 'cannot be used for the type number'),
        ('number', {'modulo': {'step': 0, 'offset': 0}}, 'cannot be 0'),
        ('number', {'modulo': {'step': 2, 'offset': 3}}, 'smaller than its step'),
        ('number', {'modulo': {'step': 2}}, 'needs both'),
        ('string', {'allowed_values': 'x'}, 'must be a list'),
        ('string', {'allowed_pattern': '('}, 'cannot be used'),
        ('string', {'allowed_pattern': r'(a)\1'}, 'a reference back'),
    ],
)
def test_wrong_constraints_are_refused(type_, constraint, message):
    with pytest.raises(StackValidationFailed) as caught:
        compiled(declared(type_, constraint), parameters={'p': '1'})
    assert message in str(caught.value)


def test_modulo_and_tags_came_later():
    modulo = declared('number', {'modulo': {'step': 2, 'offset': 0}}, version='2016-10-14')
    assert '2017-02-24' in str(problems(modulo, parameters={'p': 2})[0])
    tags = 'heat_template_version: {}\nparameters: {{p: {{type: string, default: x, tags: [a, b]}}}}\n'
    assert '2018-03-02' in str(problems(tags.format('pike'), InvalidTemplateSection)[0])
    assert compiled(tags.format('queens')).parameters['p'].tags == ('a', 'b')


def test_a_default_must_satisfy_the_constraints_even_if_another_value_is_given():
    text = 'parameters:\n  p:\n    type: string\n    default: toolong\n    constraints: [{length: {max: 3}}]\n'
    (problem,) = problems(text, parameters={'p': 'ok'})
    assert problem.message.startswith("The default of the parameter 'p' is invalid: length (7) is out of range")
    assert problem.place.path == ('parameters', 'p', 'default')
    assert problem.place.line == 5


TEMPLATE = """
parameters:
  p: {type: string, default: template}
resources:
  web: {type: T, properties: {x: {get_param: p}}}
"""


@pytest.mark.parametrize(
    ('sections', 'request_', 'expected'),
    [
        ({}, {}, 'template'),
        ({'parameter_defaults': {'p': 'defaults', 'undeclared': 1}}, {}, 'defaults'),
        ({'parameter_defaults': {'p': 'defaults'}, 'parameters': {'p': 'environment'}}, {}, 'environment'),
        ({'parameter_defaults': {'p': 'defaults'}, 'parameters': {'p': 'environment'}}, {'p': 'request'}, 'request'),
        ({'parameters': {'p': None}}, {'p': None}, 'template'),
    ],
)
def test_precedence(sections, request_, expected):
    result = compiled(TEMPLATE, environment=sections, parameters=request_)
    assert result.goal.definitions['web'].properties == {'x': expected}
    assert expected in result.parameters['p'].source.value.replace('parameter_', '')


def test_a_missing_value_is_refused_unless_only_the_template_is_looked_at():
    text = 'parameters:\n  p: {type: string}\nresources:\n  web: {type: T, properties: {x: {get_param: p}}}\n'
    (problem,) = problems(text, UserParameterMissing)
    assert problem.message == 'The Parameter (p) was not provided.'
    assert (problem.place.line, problem.place.column) == (3, 3)
    result = compiled(text, require_parameters=Require.NONE)
    assert not result.parameters['p'].has_value
    properties = result.goal.definitions['web'].properties
    assert preview(properties, {}) == {'x': UNKNOWN}
    with pytest.raises(Exception, match=r'The Parameter \(p\) was not provided.') as caught:
        resolve(properties, {})
    assert not isinstance(caught.value, UnresolvedReference)


def test_a_value_nobody_declared_is_refused():
    (problem,) = problems(TEMPLATE, UnknownUserParameter, parameters={'q': 1})
    assert problem.message.startswith('The Parameter (q) was not defined in template.')
    (problem,) = problems(TEMPLATE, UnknownUserParameter, environment='parameters:\n  pp: 1\n')
    assert problem.place.source == 'environment'
    assert problem.place.line == 2
    assert 'The Parameter (OS::stack_id) was not defined in template.' in str(
        problems(TEMPLATE, UnknownUserParameter, parameters={'OS::stack_id': 'forged'})[0]
    )


def test_pseudo_parameters_are_visible_and_their_names_reserved():
    parameters = compiled(TEMPLATE).parameters
    pseudo = {name: parameter.value for name, parameter in parameters.items() if parameter.pseudo}
    assert pseudo == {'OS::stack_id': 'id-1', 'OS::stack_name': 'shop', 'OS::project_id': 'project-1'}
    assert 'reserved' in problems('parameters: {"OS::stack_id": {type: string, default: x}}')[0].message


@pytest.mark.parametrize(
    ('value', 'is_personal'),
    [
        ('x', False),
        ({'get_param': 'OS::project_id'}, False),
        ({'get_param': 'OS::stack_name'}, True),
        ({'digest': ['md5', {'get_param': 'OS::stack_id'}]}, True),
    ],
)
def test_a_template_is_the_same_for_another_stack_unless_it_asks_which_one_it_is_for(value, is_personal):
    result = compiled(
        {'heat_template_version': 'newton', 'resources': {'a': {'type': 'T', 'properties': {'x': value}}}}
    )
    assert result.is_personal is is_personal
    other = result.of(StackIdentity('id-2', 'other', 'project-1'))
    assert (other.parameters['OS::stack_id'].value, other.parameters['OS::stack_name'].value) == ('id-2', 'other')
    assert other.goal == result.goal


@pytest.mark.parametrize(
    ('reference', 'is_personal'),
    [({'Ref': 'AWS::Region'}, False), ({'Fn::Join': ['', ['a', {'Ref': 'AWS::StackName'}]]}, True)],
)
def test_so_it_is_in_templates_of_the_cloud(reference, is_personal):
    resources = {'a': {'Type': 'T', 'Properties': {'x': reference}}}
    result = compiled({'HeatTemplateFormatVersion': '2012-12-12', 'Resources': resources})
    assert result.is_personal is is_personal
    assert result.of(StackIdentity('id-2', 'other', 'p')).parameters['AWS::StackName'].value == 'other'


SECRET = 'canary-7f3a'


def test_a_hidden_value_is_masked_and_in_no_representation():
    text = f'parameters: {{p: {{type: string, hidden: true, default: {SECRET}}}}}\n'
    result = compiled(text, parameters={'p': f'{SECRET}-2'})
    parameter = result.parameters['p']
    assert parameter.masked() == '******'
    assert SECRET not in repr(result)
    assert SECRET not in repr(parameter)


@pytest.mark.parametrize(
    ('type_', 'constraint'),
    [
        ('string', {'length': {'max': 3}}),
        ('string', {'allowed_pattern': 'x'}),
        ('string', {'allowed_values': ['x']}),
        ('comma_delimited_list', {'allowed_values': ['x']}),
        ('number', {'range': {'max': 3}}),
        ('json', {'length': {'max': 3}}),
        ('boolean', {'allowed_values': [True]}),
    ],
)
@pytest.mark.parametrize('way', ['request', 'environment', 'default'])
def test_an_error_does_not_repeat_a_hidden_value(type_, constraint, way):
    declaration = {'type': type_, 'hidden': True, 'constraints': [constraint]}
    arguments = {}
    if way == 'request':
        arguments['parameters'] = {'p': SECRET}
    elif way == 'environment':
        arguments['environment'] = {'parameters': {'p': SECRET}}
    else:
        declaration['default'] = SECRET
    with pytest.raises(StackValidationFailed) as caught:
        compiled({'heat_template_version': 'queens', 'parameters': {'p': declaration}}, **arguments)
    assert "'p'" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ('declaration', 'message', 'kind'),
    [
        ('{}', 'has no type', StackValidationFailed),
        ('{type: strnig}', 'Did you mean "string"?', StackValidationFailed),
        ('{type: [string]}', 'must be one of string, number', StackValidationFailed),
        ('text', 'must be a map', StackValidationFailed),
        ('{type: string, defautl: x, default: x}', 'Did you mean "default"?', InvalidTemplateSection),
        ('{type: number, default: x}', 'default of the parameter', StackValidationFailed),
        ('{type: string, default: x, hidden: maybe}', 'hidden of the parameter p', StackValidationFailed),
        ('{type: string, default: x, constraints: {}}', 'must be a list', StackValidationFailed),
        ('{type: string, default: x, description: []}', 'must be a string', StackValidationFailed),
    ],
)
def test_wrong_declarations(declaration, message, kind):
    found = problems(f'parameters:\n  p: {declaration}\n', kind, require_parameters=Require.NONE)
    assert message in str(found[0])
    assert found[0].place.line == 3


def test_groups_name_declared_parameters_once():
    text = """
parameters: {a: {type: string, default: x}, bcd: {type: string, default: x}}
parameter_groups:
- {label: one, description: d, parameters: [a]}
- parameters: [a, bcx]
- {parameters: a}
- {parameters: [], labl: x}
"""
    messages = [str(problem) for problem in problems(text)]
    assert len(messages) == 4
    assert 'a is in more than one parameter group' in messages[0]
    assert 'Did you mean "bcd"?' in messages[1]
    assert 'needs a list of names' in messages[2]
    assert 'Did you mean "label"?' in messages[3]


@pytest.mark.parametrize(
    ('environment', 'message', 'kind'),
    [
        ('parametres: {}', 'environment has wrong section "parametres"', InvalidTemplateSection),
        ({'x': 1}, 'environment has wrong section "x"', InvalidTemplateSection),
        ('parameters:', 'environment has wrong section "parameters"', InvalidTemplateSection),
        ('resource_registry:', 'environment has wrong section "resource_registry"', InvalidTemplateSection),
        ('resource_registry: []', 'must be a map', StackValidationFailed),
        ('encrypted_param_names: [[a]]', 'must be a list of names', StackValidationFailed),
        ('encrypted_param_names: a', 'must be a list', StackValidationFailed),
        ('event_sinks: [{type: zaqar-queue}]', '"zaqar-queue" are not offered', StackValidationFailed),
        ('event_sinks: [x]', 'must be a map with at least the key type', StackValidationFailed),
        (
            'parameter_merge_strategies: {p: mrege}',
            'must be one of overwrite, merge, deep_merge',
            StackValidationFailed,
        ),
        ('parameters: []', 'must be a map', StackValidationFailed),
        ('[]', 'must be a map of sections', StackValidationFailed),
        ('parameters: {p: 1, p: 2}', 'given twice', StackValidationFailed),
        ('a: [', 'the environment is not valid YAML', StackValidationFailed),
    ],
)
def test_wrong_environments(environment, message, kind):
    found = problems(TEMPLATE, kind, environment=environment)
    assert message in found[0].message
    assert isinstance(environment, dict) or found[0].place.source == 'environment'


def test_empty_environments():
    for environment in (None, '', {}, '# nothing', 'resource_registry: {}\nevent_sinks: []\n'):
        assert compiled(TEMPLATE, environment=environment).parameters['p'].value == 'template'
