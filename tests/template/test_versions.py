"""The functions, sections and keys of each version of the language."""

import json
import re

import pytest

from convergence.errors import InvalidTemplateSection, InvalidTemplateVersion, StackValidationFailed
from convergence.template import compile
from convergence.template.versions import DIALECTS, VERSIONS
from tests.template.build import IDENTITY, NEWEST, encoded_property

CLOUD_IN_HOT = {
    'Ref',
    'Fn::GetAZs',
    'Fn::Join',
    'Fn::Split',
    'Fn::Replace',
    'Fn::Base64',
    'Fn::MemberListToMap',
    'Fn::ResourceFacade',
}
# Everything that was ever added, with the first version that has it. What was removed is above.
SINCE = {
    '2013-05-23': 'get_resource get_param get_attr get_file str_replace list_join resource_facade',
    '2015-04-30': 'repeat digest',
    '2015-10-15': 'str_split',
    '2016-04-08': 'map_merge',
    '2016-10-14': 'yaql map_replace if',
    '2017-02-24': 'filter str_replace_strict',
    '2017-09-01': 'make_url list_concat list_concat_unique contains str_replace_vstrict',
}
CONDITIONS_SINCE = {
    '2016-10-14': 'get_param equals not and or',
    '2017-09-01': 'yaql contains',
}
DATES = [version.date for version in VERSIONS.values() if version.date]


def since(table, date):
    return {name for added, names in table.items() if added <= date for name in names.split()}


@pytest.mark.parametrize('date', sorted(set(DATES)))
def test_a_version_has_exactly_its_functions(date):
    expected = since(SINCE, date)
    if date == '2013-05-23':
        expected |= CLOUD_IN_HOT
    if date < '2015-10-15':
        expected |= {'Fn::Select'}
    assert set(VERSIONS[date].functions) == expected
    assert set(VERSIONS[date].conditions) == since(CONDITIONS_SINCE, date)


def test_the_dialects_of_cloudformation_have_exactly_their_functions():
    both = CLOUD_IN_HOT | {'Fn::GetAtt', 'Fn::FindInMap', 'Fn::Select'}
    amazon = DIALECTS['AWSTemplateFormatVersion']['2010-09-09']
    assert set(amazon.functions) == both | {'Fn::If'}
    assert set(amazon.conditions) == {'Ref', 'Fn::FindInMap', 'Fn::Equals', 'Fn::Not', 'Fn::And', 'Fn::Or', 'Condition'}
    heat = DIALECTS['HeatTemplateFormatVersion']['2012-12-12']
    assert (set(heat.functions), set(heat.conditions)) == (both, set())


ALIASES = {
    'newton': '2016-10-14',
    'ocata': '2017-02-24',
    'pike': '2017-09-01',
    'queens': '2018-03-02',
    'rocky': '2018-08-31',
    'wallaby': '2021-04-16',
}


def test_the_releases_from_newton_on_are_names_of_versions():
    assert {name: version.date for name, version in VERSIONS.items() if name != version.date} == ALIASES


@pytest.mark.parametrize('written', ['2016-10-14', '"2016-10-14"', 'newton'])
def test_a_version_is_known_however_it_is_written(written):
    text = f'heat_template_version: {written}\nconditions: {{a: true}}\n'
    assert compile(text, identity=IDENTITY).version == '2016-10-14'


@pytest.mark.parametrize(
    'text', ['heat_template_version: 2013-05-24', 'heat_template_version: [x]', 'heat_template_version: wallabies']
)
def test_an_unknown_version_is_refused_with_all_that_are_known(text):
    with pytest.raises(InvalidTemplateVersion) as caught:
        compile(text, identity=IDENTITY)
    assert all(name in str(caught.value) for name in VERSIONS)


def test_two_versions_in_one_document_are_ambiguous():
    text = 'heat_template_version: 2013-05-23\nAWSTemplateFormatVersion: 2010-09-09\n'
    with pytest.raises(InvalidTemplateVersion, match='Ambiguous versions') as caught:
        compile(text, identity=IDENTITY)
    assert caught.value.problems[0].place.line == 2


# A call of each function as it has to look. Whether it succeeds is not asked.
CALLS = {
    'get_param': 'p',
    'get_resource': 'a',
    'get_attr': ['a', 'x'],
    'get_file': 'f',
    'str_replace': {'template': 't', 'params': {}},
    'str_replace_strict': {'template': 't', 'params': {}},
    'str_replace_vstrict': {'template': 't', 'params': {}},
    'list_join': ['', ['a']],
    'resource_facade': 'metadata',
    'repeat': {'template': 't', 'for_each': {}},
    'digest': ['md5', 't'],
    'str_split': [',', 't'],
    'map_merge': [{'a': 1}],
    'yaql': {'expression': '1', 'data': {}},
    'map_replace': [{}, {}],
    'if': [True, 1, 2],
    'filter': [[1], [1]],
    'make_url': {'host': 'h'},
    'list_concat': [[1], [2]],
    'list_concat_unique': [[1], [2]],
    'contains': [1, [1]],
    'Ref': 'a',
    'Fn::GetAZs': '',
    'Fn::Join': ['', ['a']],
    'Fn::Select': [0, ['a']],
    'Fn::Split': [',', 't'],
    'Fn::Replace': [{}, 't'],
    'Fn::Base64': 't',
    'Fn::MemberListToMap': ['Name', 'Value', []],
    'Fn::ResourceFacade': 'Metadata',
    'Fn::GetAtt': ['a', 'x'],
    'Fn::FindInMap': ['a', 'b', 'c'],
    'Fn::If': [True, 1, 2],
}
FORMATS = [
    (key, version) for key, versions in DIALECTS.items() for version in {v.date: v for v in versions.values()}.values()
]


def of_version(key, version, value):
    words = ('Resources', 'Type', 'Properties') if version.is_cloud else ('resources', 'type', 'properties')
    resources, type_, properties = words
    return {key: version.date, resources: {'a': {type_: 'T'}, 'b': {type_: 'T', properties: {'x': [value]}}}}


def test_every_function_is_known_here():
    assert set(CALLS) == {name for _, version in FORMATS for name in version.functions}


@pytest.mark.parametrize('name', sorted(CALLS))
def test_a_function_of_another_version_is_refused_and_never_becomes_data(name):
    missing = [(key, version) for key, version in FORMATS if name not in version.functions]
    assert missing
    for key, version in missing:
        with pytest.raises(StackValidationFailed) as caught:
            compile(of_version(key, version, {name: CALLS[name]}), identity=IDENTITY)
        (problem,) = caught.value.problems
        assert f'The function {name} ' in problem.message
        assert problem.place.path[-3:] == ('x', 0, name)
        assert version.date in problem.message or version.key in problem.message or 'HOT' in problem.message


@pytest.mark.parametrize(
    ('value', 'version', 'told'),
    [
        (
            {'Fn::Join': ['', ['a']]},
            '2014-10-16',
            'is not supported in this version of HOT; 2014-10-16 does not have it. Write list_join.',
        ),
        ({'map_merge': {'get_param': 'OS::stack_name'}}, '2015-10-15', 'came with version 2016-04-08'),
        (
            {'Fn::GetAtt': ['a', 'x']},
            '2018-08-31',
            'one of CloudFormation; this template has heat_template_version. Write get_attr.',
        ),
    ],
)
def test_it_is_told_what_to_do_instead(value, version, told):
    with pytest.raises(StackValidationFailed, match=re.escape(told)):
        encoded_property(value, version=version)


@pytest.mark.parametrize('name', ['filter', 'digest', 'contains', 'if', 'repeat'])
def test_a_word_that_later_versions_call_a_function_is_data_where_it_does_not_look_like_one(name):
    assert encoded_property({name: 'text'}, version='2014-10-16') == {name: 'text'}


@pytest.mark.parametrize(
    ('value', 'meant'),
    [
        ({'get_parm': 'OS::stack_name'}, 'get_param'),
        ({'get-attr': ['db', 'x']}, 'get_attr'),
        ({'Get_Resource': 'db'}, 'get_resource'),
        ({'list_joins': [',', []]}, 'list_join'),
        ({'repeats': {'template': 't', 'for_each': {}}}, 'repeat'),
    ],
)
def test_what_is_nearly_the_name_of_a_function_is_data_with_a_warning(value, meant):
    template = of_version('heat_template_version', VERSIONS[NEWEST], value)
    found = compile(template, identity=IDENTITY)
    assert found.goal.definitions['b'].properties == {'x': [value]}
    (warning,) = found.warnings
    assert warning.hint == f'Did you mean "{meant}"?'
    assert warning.place.path == ('resources', 'b', 'properties', 'x', 0, *value)


@pytest.mark.parametrize(
    'value', [{'filters': [1, 2]}, {'get_parm': 5}, {'port': 80}, {'note': 'a'}, {'digests': ['a', 'b']}]
)
def test_ordinary_words_are_no_slips(value):
    assert compile(of_version('heat_template_version', VERSIONS[NEWEST], value), identity=IDENTITY).warnings == []


def test_a_function_of_conditions_that_stands_for_a_value_is_warned_of():
    template = of_version('heat_template_version', VERSIONS[NEWEST], {'equals': [1, 1]})
    assert 'function of conditions only' in compile(template, identity=IDENTITY).warnings[0].message


def test_slips_in_conditions_are_found_as_well():
    text = 'heat_template_version: newton\nconditions:\n  c: {equals: [{Ref: a}, {get_parm: b}]}\n'
    with pytest.raises(StackValidationFailed, match='The function Ref is not supported'):
        compile(text, identity=IDENTITY)
    (warning,) = compile(text.replace('Ref: a', 'a: 1'), identity=IDENTITY).warnings
    assert (warning.place.line, warning.place.column) == (3, 25)


@pytest.mark.parametrize('version', sorted(set(DATES)))
@pytest.mark.parametrize(
    ('change', 'first'),
    [
        ({'conditions': {'c': True}}, '2016-10-14'),
        ({'resources': {'a': {'type': 'T', 'condition': True}}}, '2016-10-14'),
        ({'resources': {'a': {'type': 'T', 'external_id': 'x'}}}, '2016-10-14'),
        ({'outputs': {'o': {'value': 1, 'condition': True}}}, '2016-10-14'),
        ({'parameters': {'p': {'type': 'string', 'default': '', 'tags': ['t']}}}, '2018-03-02'),
        ({'resources': {'a': {'type': 'T', 'deletion_policy': 'retain'}}}, '2016-10-14'),
        (
            {
                'parameters': {
                    'p': {'type': 'number', 'default': 2, 'constraints': [{'modulo': {'step': 2, 'offset': 0}}]}
                }
            },
            '2017-02-24',
        ),
    ],
    ids=['conditions', 'condition', 'external_id', 'output condition', 'tags', 'retain', 'modulo'],
)
def test_sections_and_keys_came_with_a_version(change, first, version):
    template = {'heat_template_version': version, **change}
    if version >= first:
        compile(template, identity=IDENTITY)
        return
    with pytest.raises(StackValidationFailed):
        compile(template, identity=IDENTITY)


@pytest.mark.parametrize('section', ['resources', 'parameters', 'outputs', 'conditions', 'description'])
def test_a_section_may_be_null(section):
    text = f'heat_template_version: wallaby\n{section}:\n'
    assert compile(text, identity=IDENTITY).goal.definitions == {}


def test_an_unknown_section_is_named():
    with pytest.raises(InvalidTemplateSection, match='The template section is invalid: resource') as caught:
        compile(json.dumps({'heat_template_version': '2018-08-31', 'resource': {}}), identity=IDENTITY)
    assert 'resources' in caught.value.problems[0].hint or 'resources' in str(caught.value)
