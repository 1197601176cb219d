"""Which version of the language has which functions, sections and keys."""

import json

import pytest

from convergence.errors import InvalidTemplateSection, InvalidTemplateVersion, StackValidationFailed
from convergence.template import compile
from convergence.template.versions import DIALECTS, VERSIONS
from tests.template.build import IDENTITY

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


# What a call must look like to be a good one, or at least to fail for a reason of its own: so it shows whether the
# version takes it for a function at all. As data it would stay what it is.
@pytest.mark.parametrize('version', sorted(set(DATES)))
@pytest.mark.parametrize('name', sorted({*since(SINCE, '9'), *CLOUD_IN_HOT, 'Fn::Select', 'equals', 'Fn::GetAtt'}))
def test_a_name_is_data_in_versions_that_do_not_have_the_function(name, version):
    template = {
        'heat_template_version': version,
        'resources': {'a': {'type': 'T', 'properties': {'x': {name: 17.5}}}},
    }
    if name not in VERSIONS[version].functions:
        definition = compile(template, identity=IDENTITY).goal.definitions['a']
        assert definition.properties == {'x': {name: 17.5}}
        return
    if name == 'Fn::GetAZs':
        template['resources']['a']['properties']['x'] = {name: 'region'}
        assert compile(template, identity=IDENTITY).goal.definitions['a'].properties == {'x': ['nova']}
        return
    with pytest.raises(StackValidationFailed) as caught:
        compile(template, identity=IDENTITY)
    assert len(caught.value.problems) == 1


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
