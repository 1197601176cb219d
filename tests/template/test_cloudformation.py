"""Templates as CloudFormation writes them: they end in the same definitions, and errors show where they stand."""

import json

import pytest

from convergence.core.model import DeletionPolicy, Output
from convergence.errors import InvalidTemplateSection, StackValidationFailed
from convergence.template import Require, compile, references, resolve
from convergence.template.parameters import MASK
from tests.template.build import IDENTITY

WHOLE = """AWSTemplateFormatVersion: 2010-09-09
Description: a whole one
Metadata: {anything: goes}
Parameters:
  Size:
    Type: String
    Default: small
    AllowedValues: [small, large]
    ConstraintDescription: small or large
  Count: {Type: Number, Default: '3', MinValue: '1', MaxValue: 5, NoEcho: 'true'}
  Names: {Type: CommaDelimitedList, Default: 'a,b'}
  Password: {Type: String, MinLength: 3, MaxLength: '5', AllowedPattern: '[a-z]*', Default: abc}
Mappings:
  Sizes:
    small: {memory: 1, disks: [x, y]}
    large: {memory: 8}
Conditions:
  Large: {'Fn::Equals': [{Ref: Size}, large]}
  NotLarge: {'Fn::Not': [{Condition: Large}]}
  Both: {'Fn::And': [{Condition: Large}, NotLarge]}
  Either: {'Fn::Or': [Large, {'Fn::Equals': [{'Fn::FindInMap': [Sizes, {Ref: Size}, memory]}, 1]}]}
Resources:
  Server:
    Type: OS::Test
    DependsOn: Volume
    DeletionPolicy: Retain
    UpdatePolicy: {AutoScalingRollingUpdate: {MinInstancesInService: 1}}
    Metadata: {key: {Ref: AWS::StackName}}
    Properties:
      Memory: {'Fn::FindInMap': [Sizes, {Ref: Size}, memory]}
      Disk: {'Fn::GetAtt': [Volume, path]}
      Other: {'Fn::GetAtt': Volume.path}
      Volume: {Ref: Volume}
      Chosen: {'Fn::If': [NotLarge, yes, {'Fn::GetAtt': [Nothing, x]}]}
  Volume:
    Type: OS::Test
  Absent:
    Type: OS::Test
    Condition: Both
  Present:
    Type: OS::Test
    Condition: Either
Outputs:
  Disk: {Description: where it is, Value: {'Fn::Join': ['/', ['', {'Fn::GetAtt': [Volume, path]}]]}}
  Gone: {Value: {Ref: Absent}}
  Never: {Value: 1, Condition: Large}
"""


def amazon(value, kind='AWSTemplateFormatVersion', **sections):
    """A property of a resource, resolved."""
    dates = {'AWSTemplateFormatVersion': '2010-09-09', 'HeatTemplateFormatVersion': '2012-12-12'}
    template = {
        kind: dates[kind],
        'Parameters': {
            'Word': {'Type': 'String', 'Default': 'text'},
            'List': {'Type': 'CommaDelimitedList', 'Default': 'a,b'},
        },
        'Resources': {'r': {'Type': 'T', 'Properties': {'x': value}}, 'db': {'Type': 'T'}},
        **sections,
    }
    definition = compile(json.dumps(template), identity=IDENTITY).goal.definitions['r']
    output = Output('1', 'db-7', attributes={'names': ['a', 'b'], 'text': 'a,b', 'json': '{"k": [7]}', 'map': {'k': 1}})
    return resolve(definition.properties, {'db': output})['x']


def test_a_whole_template():
    template = compile(WHOLE, identity=IDENTITY)
    assert (template.version, template.description) == ('2010-09-09', 'a whole one')
    assert list(template.goal.definitions) == ['Server', 'Volume', 'Present']
    server = template.goal.definitions['Server']
    assert server.requires == ('Volume',)
    assert server.uses == {'Volume': ('path',)}
    assert server.deletion_policy is DeletionPolicy.RETAIN
    assert server.update_policy == {'AutoScalingRollingUpdate': {'MinInstancesInService': 1}}
    assert server.metadata == {'key': 'shop'}
    assert resolve(server.properties, {'Volume': Output('1', 'vol-1', attributes={'path': '/dev/x'})}) == {
        'Memory': 1,
        'Disk': '/dev/x',
        'Other': '/dev/x',
        'Volume': 'vol-1',
        'Chosen': True,
    }
    assert template.goal.asked == {'Volume': ('path',)}
    assert references(template.outputs['Disk'].value) == (set(), {'Volume': {'path'}})
    assert template.outputs['Disk'].description == 'where it is'
    assert (template.outputs['Gone'].value, template.outputs['Never'].value) == (None, None)


def test_parameters_have_their_types_and_constraints():
    template = compile(WHOLE, identity=IDENTITY, parameters={'Count': '4'})
    assert {name: parameter.masked() for name, parameter in template.parameters.items()} == {
        'Size': 'small',
        'Count': MASK,
        'Names': ['a', 'b'],
        'Password': 'abc',
        'AWS::StackId': 'arn:openstack:heat::project-1:stacks/shop/id-1',
        'AWS::StackName': 'shop',
        'AWS::Region': 'ap-southeast-1',
    }
    assert template.parameters['Count'].value == 4


@pytest.mark.parametrize(
    ('given', 'text'),
    [
        ({'Size': 'middle'}, 'small or large'),
        ({'Count': 6}, 'Count'),
        ({'Password': 'ab'}, 'Password'),
        ({'Password': 'abcdef'}, 'Password'),
        ({'Password': 'ABC'}, 'Password'),
        ({'Nothing': 1}, 'The Parameter (Nothing) was not defined in template.'),
    ],
)
def test_a_value_that_a_parameter_does_not_allow_is_refused(given, text):
    with pytest.raises(StackValidationFailed) as caught:
        compile(WHOLE, identity=IDENTITY, parameters=given)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        ({'Ref': 'Word'}, 'text'),
        ({'Ref': 'AWS::Region'}, 'ap-southeast-1'),
        ({'Ref': 'db'}, 'db-7'),
        ({'Fn::GetAtt': ['db', 'names']}, ['a', 'b']),
        ({'Fn::GetAtt': 'db.text'}, 'a,b'),
        ({'Fn::Join': ['-', ['a', None, 'b']]}, 'a--b'),
        ({'Fn::Join': ['-', {'Ref': 'List'}]}, 'a-b'),
        ({'Fn::Join': ['-', {'Fn::GetAtt': ['db', 'names']}]}, 'a-b'),
        ({'Fn::Select': [1, ['a', 'b']]}, 'b'),
        ({'Fn::Select': ['1', {'Fn::GetAtt': ['db', 'names']}]}, 'b'),
        ({'Fn::Select': [9, ['a']]}, ''),
        ({'Fn::Select': ['k', {'k': 1, 'l': 2}]}, 1),
        ({'Fn::Select': ['m', {'k': 1, 'l': 2}]}, ''),
        ({'Fn::Select': [0, None]}, ''),
        ({'Fn::Select': ['k', {'Fn::GetAtt': ['db', 'json']}]}, [7]),
        ({'Fn::Split': [',', {'Fn::GetAtt': ['db', 'text']}]}, ['a', 'b']),
        ({'Fn::Replace': [{'x': 1, 'y': None}, 'x y xy']}, '1  1'),
        ({'Fn::Base64': 'plain'}, 'plain'),
        ({'Fn::Base64': {'Fn::Join': ['', ['a', {'Ref': 'db'}]]}}, 'adb-7'),
        ({'Fn::GetAZs': ''}, ['nova']),
        (
            {'Fn::MemberListToMap': ['Name', 'Value', ['.member.0.Name=k', '.member.0.Value=v=1', '.member.1.Name=l']]},
            {'k': 'v=1'},
        ),
        ({'Fn::Join': ['', ['a']], 'more': 1}, {'Fn::Join': ['', ['a']], 'more': 1}),
    ],
)
@pytest.mark.parametrize('kind', ['AWSTemplateFormatVersion', 'HeatTemplateFormatVersion'])
def test_functions(value, expected, kind):
    assert amazon(value, kind) == expected


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        ({'Ref': 'Wrod'}, 'The specified reference "Wrod" (in r) is incorrect.'),
        ({'Ref': ['db']}, 'Ref needs the name'),
        ({'Fn::GetAtt': ['db']}, 'Fn::GetAtt needs a list'),
        ({'Fn::GetAtt': 'db'}, 'the name of an attribute, which cannot be empty'),
        ({'Fn::FindInMap': ['A', 'b']}, 'Fn::FindInMap needs a list'),
        ({'Fn::FindInMap': ['A', 'b', 'c']}, 'the section Mappings has no "A" there'),
        ({'Fn::FindInMap': ['A', {'Ref': 'db'}, 'c']}, 'known in advance'),
        ({'Fn::Join': ['-', ['a'], ['b']]}, 'Fn::Join needs a list: a delimiter, and a list of strings.'),
        ({'Fn::Select': [0]}, 'Fn::Select needs a list'),
        ({'Fn::Select': [[], ['a']]}, 'the index must be a number or a string'),
        ({'Fn::Select': ['x', ['a']]}, 'the index into a list must be a whole number'),
        ({'Fn::Select': ['x', 7]}, 'must be a list or a map, not a number'),
        ({'Fn::Select': ['x', 'text']}, 'the text to select from is not JSON'),
        ({'Fn::Replace': ['x', 'y']}, 'params must be a map'),
        ({'Fn::Base64': ['x']}, 'Fn::Base64 needs a string'),
        ({'Fn::GetAZs': ['x']}, 'Fn::GetAZs needs the name of a region'),
        ({'Fn::MemberListToMap': ['a', 'b', ['x']]}, 'a member must look like'),
        ({'Fn::MemberListToMap': ['a', 'b']}, 'Fn::MemberListToMap needs a list'),
        ({'Fn::ResourceFacade': 'Metadata'}, 'a template that is not nested'),
        ({'Fn::If': [True, 1]}, 'Fn::If needs a list: a condition, the value'),
        ({'Fn::If': ['Nothing', 1, 2]}, 'Invalid condition "Nothing" (in r).'),
    ],
)
def test_a_wrong_call_is_refused_once(value, text):
    with pytest.raises(StackValidationFailed) as caught:
        amazon(value)
    (problem,) = caught.value.problems
    assert text in problem.message
    assert problem.place.path[:4] == ('Resources', 'r', 'Properties', 'x')


def test_keys_that_mean_nothing_here_are_ignored_with_a_warning():
    text = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  a:
    Type: T
    UpdateReplacePolicy: Retain
    Propertys: {x: 1}
Outputs:
  o: {Value: 1, Val: 2}
"""
    found = compile(text, identity=IDENTITY)
    assert found.goal.definitions['a'].properties == {}
    told = [(warning.place.line, warning.message.split()[0], warning.hint) for warning in found.warnings]
    assert told == [
        (6, '"UpdateReplacePolicy"', 'Did you mean "UpdatePolicy"?'),
        (7, '"Propertys"', 'Did you mean "Properties"?'),
        (9, '"Val"', 'Did you mean "Value"?'),
    ]


def test_the_older_format_has_no_conditions():
    with pytest.raises(StackValidationFailed, match='Fn::If is not in HeatTemplateFormatVersion'):
        amazon({'Fn::If': [True, 1, 2]}, 'HeatTemplateFormatVersion')
    with pytest.raises(InvalidTemplateSection, match='The template section is invalid: Conditions'):
        amazon(1, 'HeatTemplateFormatVersion', Conditions={'a': True})
    with pytest.raises(InvalidTemplateSection, match='"Condition" is not a valid keyword'):
        amazon(1, 'HeatTemplateFormatVersion', Resources={'r': {'Type': 'T', 'Condition': True}})


@pytest.mark.parametrize(
    ('text', 'message', 'position', 'path'),
    [
        ('Resources:\n  a: {type: T}', 'The resource a has no type', (3, 3), 'Resources.a.Type'),
        ('resources:\n  a: {Type: T}', 'The template section is invalid: resources', (2, 1), 'resources'),
        ('Parameters:\n  p: {Type: Text}', 'must be one of String, Number', (3, 13), 'Parameters.p.Type'),
        ('Parameters:\n  p: {Type: String, Min: 1}', '"Min" is not a valid keyword', (3, 21), 'Parameters.p.Min'),
        ('Parameters:\n  p: {Type: String, MinLength: x}', 'not a number', (3, 32), 'Parameters.p'),
        ('Conditions:\n  c: {Condition: d}', 'Invalid condition "d"', (3, 18), 'Conditions.c.Condition'),
        ('Resources:\n  a: {Type: T, DependsOn: b}', '"b"', (3, 27), 'Resources.a.DependsOn'),
        ('Resources:\n  a: {Type: T, DeletionPolicy: retain}', 'Write Ret', (3, 32), 'Resources.a.DeletionPolicy'),
    ],
)
def test_a_problem_shows_the_place_as_the_author_wrote_it(text, message, position, path):
    with pytest.raises(StackValidationFailed) as caught:
        compile(f'AWSTemplateFormatVersion: "2010-09-09"\n{text}\n', identity=IDENTITY)
    (problem,) = [problem for problem in caught.value.problems if message in problem.message]
    assert (problem.place.line, problem.place.column) == position
    assert '.'.join(map(str, problem.place.path)) == path


def test_it_can_be_looked_at_without_values():
    text = WHOLE.replace('    Default: small\n', '').replace('Nothing', 'Volume')
    assert compile(text, identity=IDENTITY, require_parameters=Require.NONE).goal.definitions['Server']


@pytest.mark.parametrize('version', ['2010-09-10', '2012-12-12'])
def test_an_unknown_date_is_refused(version):
    with pytest.raises(StackValidationFailed, match='"AWSTemplateFormatVersion" should be one of: 2010-09-09'):
        compile(f'AWSTemplateFormatVersion: {version}\n', identity=IDENTITY)
