"""What callers are told about the language."""

import pytest

from convergence.engine.reads.installation import InstallationReads
from convergence.errors import EntityNotFound


@pytest.fixture
def reads():
    return InstallationReads(compiler=None, registry=None, roster=None, version='1')


def test_the_versions_are_listed_with_the_names_of_their_releases(reads):
    versions = reads.list_template_versions(None)
    assert versions[0] == {'version': 'heat_template_version.2013-05-23', 'type': 'hot', 'aliases': []}
    rocky = next(version for version in versions if version['aliases'] == ['heat_template_version.rocky'])
    assert rocky['version'] == 'heat_template_version.2018-08-31'
    assert versions[-2:] == [
        {'version': 'AWSTemplateFormatVersion.2010-09-09', 'type': 'cfn', 'aliases': []},
        {'version': 'HeatTemplateFormatVersion.2012-12-12', 'type': 'cfn', 'aliases': []},
    ]
    assert len(versions) == 13


@pytest.mark.parametrize('name', ['heat_template_version.2016-10-14', 'heat_template_version.newton'])
def test_the_functions_of_a_version_are_listed_those_of_conditions_on_demand(reads, name):
    functions = reads.list_template_functions(None, name)
    names = [function['functions'] for function in functions]
    assert names == sorted(names)
    assert 'if' in names
    assert 'equals' not in names
    assert all(function['description'].endswith('.') for function in functions)
    more = {function['functions'] for function in reads.list_template_functions(None, name, with_condition=True)}
    assert more - set(names) == {'equals', 'not', 'and', 'or'}


def test_a_version_that_does_not_exist_is_not_found(reads):
    with pytest.raises(EntityNotFound, match=r'heat_template_version.2099-01-01'):
        reads.list_template_functions(None, 'heat_template_version.2099-01-01')
