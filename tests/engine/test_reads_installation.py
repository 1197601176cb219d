"""What callers are told about templates, resource types and processes."""

import json

import pytest

from convergence import errors
from convergence.engine.reads.answers import InstallationReads
from convergence.template.limits import STANDARD
from tests.harness import hot

TEMPLATE = """
heat_template_version: 2018-08-31
description: What it is for
parameter_groups:
- {label: All, parameters: [size]}
parameters:
  size:
    type: number
    label: Size
    description: How large
    default: 3
    immutable: true
    constraints:
    - range: {min: 1, max: 9}
      description: From 1 to 9
    - modulo: {step: 2, offset: 1}
  name:
    type: string
    constraints:
    - length: {min: 2}
    - allowed_pattern: '[a-z]+'
  colour: {type: string, constraints: [{allowed_values: [red, blue]}]}
  secret: {type: string, hidden: true, default: hush}
  options: {type: json, tags: [x]}
  some: {type: comma_delimited_list, default: 'a,b'}
  on: {type: boolean, default: 'yes'}
resources:
  a: {type: Test::Thing, properties: {value: {get_param: name}}}
"""


@pytest.fixture
def reads(harness):
    return InstallationReads(harness.compiler, harness.registry, harness.roster, '1.2.3')


def test_a_template_is_described_without_values_for_its_parameters(harness, reads):
    described = reads.validate_template(harness.context, TEMPLATE)
    assert described['Description'] == 'What it is for'
    assert described['ParameterGroups'] == [{'label': 'All', 'parameters': ['size']}]
    parameters = described['Parameters']
    assert parameters['size'] == {
        'Type': 'Number',
        'Description': 'How large',
        'NoEcho': 'false',
        'Label': 'Size',
        'Default': 3,
        'Immutable': True,
        'MinValue': 1,
        'MaxValue': 9,
        'Step': 2,
        'Offset': 1,
        'ConstraintDescription': 'From 1 to 9',
    }
    assert parameters['name'] == {
        'Type': 'String',
        'Description': '',
        'NoEcho': 'false',
        'Label': 'name',
        'MinLength': 2,
        'AllowedPattern': '[a-z]+',
    }
    assert parameters['colour']['AllowedValues'] == ['red', 'blue']
    assert {name: shape['Type'] for name, shape in parameters.items()} == {
        'size': 'Number',
        'name': 'String',
        'colour': 'String',
        'secret': 'String',
        'options': 'Json',
        'some': 'CommaDelimitedList',
        'on': 'Boolean',
    }
    assert parameters['options']['Tags'] == ['x']
    written = parameters['some']['Default'], parameters['on']['Default']
    assert written == ('a,b', 'yes')
    json.dumps(described)


def test_values_are_shown_but_no_secret(harness, reads):
    environment = {'parameters': {'name': 'abc', 'secret': 'silence'}, 'parameter_defaults': {'size': 5}}
    described = reads.validate_template(harness.context, TEMPLATE, environment)
    assert described['Parameters']['name']['Value'] == 'abc'
    assert described['Parameters']['size']['Value'] == 5
    secret = described['Parameters']['secret']
    assert (secret['NoEcho'], secret['Default'], secret['Value']) == ('true', 'hush', '******')
    assert described['Environment']['parameters'] == {'name': 'abc', 'secret': '******'}
    mapped = {'resource_registry': {'A': 'B'}}
    registry = reads.validate_template(harness.context, TEMPLATE, mapped)['Environment']['resource_registry']
    assert registry == {'A': 'B', 'resources': {}}
    listed = {'parameters': {'name': 'abc', 'colour': 'red'}, 'encrypted_param_names': ['name', 'other']}
    shown = reads.validate_template(harness.context, TEMPLATE, listed)['Environment']
    assert shown['parameters'] == {'name': '******', 'colour': 'red'}
    assert 'encrypted_param_names' not in shown
    assert 'silence' not in json.dumps(described)


def test_everything_that_is_wrong_is_told_at_once_with_its_line(harness, reads):
    source = hot({'a': {'valeu': 'x'}, 'b': {'type': 'Test::Thin'}})
    with pytest.raises(errors.StackValidationFailed) as caught:
        reads.validate_template(harness.context, source)
    assert [problem.place.path[1] for problem in caught.value.problems] == ['a', 'b']
    assert 'Did you mean value' in str(caught.value) and 'Did you mean Test::Thing' in str(caught.value)


REFUSED = {
    'too large': hot({'a': {'value': {'get_file': 'f'}}}),
    'unknown property': hot({'a': {'valeu': 'x'}}),
    'no snapshots': 'heat_template_version: newton\nresources: {a: {type: Test::Thing, deletion_policy: Snapshot}}',
    'function of another version': 'heat_template_version: newton\noutputs: {o: {value: {Ref: a}}}',
    'key of a resource': """
AWSTemplateFormatVersion: 2010-09-09
Mappings: {m: {k: {v: 1}}}
Resources: {a: {Type: Test::Thing}, b: {Type: Test::Thing, Metadata: {x: {'Fn::FindInMap': [m, {Ref: a}, v]}}}}
""",
}


@pytest.mark.parametrize('template', REFUSED.values(), ids=list(REFUSED))
def test_what_creation_refuses_the_check_refuses_as_well(harness, reads, template):
    files = {'f': 'x' * (STANDARD.max_stored_bytes + 1)}
    told = []
    for ask in (
        lambda: reads.validate_template(harness.context, template, files=files),
        lambda: harness.stacks.create_stack(harness.context, 's', template, files=files),
    ):
        with pytest.raises(errors.StackValidationFailed) as caught:
            ask()
        told.append([(problem.message, problem.place) for problem in caught.value.problems])
    assert told[0] == told[1]


def test_what_is_hardly_meant_so_is_told_beside_the_rest(harness, reads):
    described = reads.validate_template(
        harness.context, 'heat_template_version: 2018-08-31\noutputs: {o: {value: {get_parm: x}}}\n'
    )
    assert [warning['hint'] for warning in described['Warnings']] == ['Did you mean "get_param"?']
    assert 'Warnings' not in reads.validate_template(harness.context, TEMPLATE)


def test_a_wrong_value_is_told(harness, reads):
    with pytest.raises(errors.StackValidationFailed, match='From 1 to 9'):
        reads.validate_template(harness.context, TEMPLATE, {'parameters': {'size': 11}})


def test_files_of_environments_are_merged_and_win(harness, reads):
    files = {'a.yaml': 'parameters: {name: abc, size: 3}', 'b.yaml': 'parameters: {size: 5}'}
    described = reads.validate_template(
        harness.context, TEMPLATE, {'parameters': {'name': 'xyz'}}, files, ['a.yaml', 'b.yaml']
    )
    assert (described['Parameters']['name']['Value'], described['Parameters']['size']['Value']) == ('abc', 5)
    assert described['Environment']['parameters'] == {'name': 'abc', 'size': 5}
    with pytest.raises(errors.InvalidTemplateReference, match=r'"c.yaml" is not among the files'):
        reads.validate_template(harness.context, TEMPLATE, {}, files, ['c.yaml'])


def test_types_that_are_not_there_can_be_ignored(harness, reads):
    source = hot({'a': {'type': 'OS::Nova::Server', 'name': 'x'}, 'b': {'value': 'x'}})
    assert reads.validate_template(harness.context, source, ignorable_errors=['99001'])
    said = 'HEAT-E99001 Service nova is not available for resource type OS::Nova::Server, reason: '
    with pytest.raises(errors.ResourceTypeUnavailable, match=said):
        reads.validate_template(harness.context, source)
    with pytest.raises(errors.ResourceTypeUnavailable, match=said):
        reads.resource_schema(harness.context, 'OS::Nova::Server')
    with pytest.raises(errors.StackValidationFailed, match='valeu'):
        reads.validate_template(harness.context, hot({'b': {'valeu': 'x'}}), ignorable_errors=['99001'])
    with pytest.raises(errors.Invalid, match='Invalid codes in ignore_errors'):
        reads.validate_template(harness.context, source, ignorable_errors=['99001', '7'])


def test_a_template_may_stand_for_a_type(harness, reads):
    """Its parameters are checked like properties, its outputs like attributes."""
    inner = 'heat_template_version: newton\nparameters: {size: {type: number}}\noutputs: {o: {value: 1}}\n'
    source = """
heat_template_version: newton
resources:
  a: {type: My::Type, properties: {size: SIZE}}
outputs:
  o: {value: {get_attr: [a, NAME]}}
"""
    given = {'resource_registry': {'My::Type': 'inner.yaml'}}
    good = source.replace('SIZE', '5').replace('NAME', 'o')
    assert reads.validate_template(harness.context, good, given, {'inner.yaml': inner})
    inside = good.replace('[a, o]', '[a, resource.x.value]')
    assert reads.validate_template(harness.context, inside, given, {'inner.yaml': inner})
    with pytest.raises(errors.StackValidationFailed) as caught:
        wrong = source.replace('SIZE', 'large').replace('NAME', 'p')
        reads.validate_template(harness.context, wrong, given, {'inner.yaml': inner})
    text = str(caught.value)
    assert (
        'Property size: the value must be a number' in text and 'The Referenced Attribute (a p) does not exist' in text
    )
    with pytest.raises(errors.StackValidationFailed, match=r'"inner.yaml" of the resource a is not among the files'):
        reads.validate_template(harness.context, good, given)
    with pytest.raises(errors.StackValidationFailed, match=r'The template "inner.yaml" cannot be read'):
        reads.validate_template(harness.context, good, given, {'inner.yaml': 'resources: {}'})


def test_a_template_that_stands_in_for_a_type_must_have_what_that_has(harness, reads):
    source = 'heat_template_version: newton\nresources: {a: {type: OS::Heat::RandomString, properties: {PROPERTIES}}}'
    given = {'resource_registry': {'OS::Heat::RandomString': 'mine.yaml'}}
    inner = """
heat_template_version: newton
parameters: {length: {type: string, default: x}, more: {type: string}}
"""
    with pytest.raises(errors.StackValidationFailed) as caught:
        reads.validate_template(harness.context, source.replace('PROPERTIES', 'more: x'), given, {'mine.yaml': inner})
    text = str(caught.value)
    assert 'Property length type mismatch between facade OS::Heat::RandomString (integer) and provider (string)' in text
    assert 'Provider requires property more unknown in facade OS::Heat::RandomString' in text
    assert 'Attribute value for facade OS::Heat::RandomString missing in provider' in text


def test_nothing_is_stored_by_looking_at_a_template(harness, reads):
    reads.validate_template(harness.context, TEMPLATE)
    assert harness.store.commits == 0


@pytest.mark.parametrize(
    ('expression', 'expected'),
    [
        ('Test::', ['Test::Enforced', 'Test::Holder', 'Test::Kept', 'Test::Plain', 'Test::Thing', 'Test::Token']),
        ('.*String', ['OS::Heat::RandomString']),
        ('OS::Heat::(None|Value)$', ['OS::Heat::None', 'OS::Heat::Value']),
        ('Thing', []),
    ],
)
def test_types_are_listed_by_the_beginning_of_their_names(harness, reads, expression, expected):
    assert reads.list_resource_types(harness.context, type_name=expression) == expected


def test_types_are_listed_with_descriptions_and_by_support(harness, reads):
    names = reads.list_resource_types(harness.context, support_status='SUPPORTED')
    hidden = {'OS::Heat::SoftwareDeployments', 'OS::Heat::StructuredDeployments'}
    assert names == [name for name in harness.registry.names() if name not in hidden]
    assert reads.list_resource_types(harness.context, support_status='DEPRECATED') == []
    (described,) = reads.list_resource_types(harness.context, type_name='Test::Th', with_description=True)
    assert described == {'resource_type': 'Test::Thing', 'description': 'Makes an entry in `Reality`.'}


@pytest.mark.parametrize('expression', ['(', 'a' * 5000])
def test_an_expression_that_cannot_be_used_is_refused(harness, reads, expression):
    with pytest.raises(errors.Invalid, match='type_name'):
        reads.list_resource_types(harness.context, type_name=expression)


def test_an_expression_made_to_take_for_ever_does_not(harness, reads):
    assert reads.list_resource_types(harness.context, type_name='((((.*)*)*)*)*!') == []


def test_a_schema_has_a_description_if_wanted(harness, reads):
    schema = reads.resource_schema(harness.context, 'Test::Thing')
    assert schema['properties']['value']['update_allowed'] and 'description' not in schema
    assert schema['attributes']['show']['type'] == 'map'
    assert reads.resource_schema(harness.context, 'Test::Thing', with_description=True)['description']
    with pytest.raises(errors.EntityNotFound, match='did you mean Test::Thing'):
        reads.resource_schema(harness.context, 'Test::Thin')


def test_processes_are_listed_with_whether_they_live(harness, reads):
    harness.roster.register('engine-1', 'engine', 'here', '9', 1e6)
    harness.roster.register('engine-2', 'engine', 'there', '9', -1.0)
    services = {service['engine_id']: service for service in reads.list_services(harness.context)}
    assert len(services) == 4
    assert services['engine-1']['status'] == 'up' and services['engine-2']['status'] == 'down'
    assert services['engine-1']['binary'] == 'convergence-engine' and services['engine-1']['topic'] == 'engine'
    assert services['engine-1']['host'] == services['engine-1']['hostname'] == 'here'
    assert services[harness.workers[0].id]['binary'] == 'convergence-worker'
    json.dumps(list(services.values()))


def test_the_revision_is_the_version(harness, reads):
    assert reads.get_revision(harness.context) == '1.2.3'


def test_types_are_listed_by_their_support(harness, reads):
    everything = reads.list_resource_types(harness.context)
    assert reads.list_resource_types(harness.context, support_status='supported') == everything
    assert reads.list_resource_types(harness.context, support_status='DEPRECATED') == []
    with pytest.raises(errors.Invalid, match='Invalid support status and should be one of UNKNOWN, SUPPORTED'):
        reads.list_resource_types(harness.context, support_status='GOOD')


def test_a_template_is_generated_for_a_type(harness, reads):
    hot_template = reads.generate_template(harness.context, 'OS::Heat::Value', 'hot')
    assert hot_template['resources']['Value']['properties']['value'] == {'get_param': 'value'}
    cfn_template = reads.generate_template(harness.context, 'OS::Heat::Value')
    assert cfn_template['Resources']['Value']['Type'] == 'OS::Heat::Value'
    with pytest.raises(errors.EntityNotFound, match='OS::Heat::Valeu'):
        reads.generate_template(harness.context, 'OS::Heat::Valeu', 'hot')
    with pytest.raises(errors.Invalid, match='template_type'):
        reads.generate_template(harness.context, 'OS::Heat::Value', 'yaml')
