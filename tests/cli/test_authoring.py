"""``convergence template format``, ``lint`` and ``graph``: what they find, and how they end."""

import json
import os
import stat

import pytest

from convergence.cmd import convergence as command

CAREFUL = """heat_template_version: 2018-08-31
parameters:
  length: {type: number, default: 8, immutable: true}
  db_password: {type: string, hidden: true}
conditions:
  long: {not: {equals: [{get_param: length}, 3]}}
  longer: {and: [long, {equals: [{get_param: length}, 8]}]}
resources:
  key:
    type: OS::Heat::RandomString
    properties: {length: {get_param: length}}
  shown:
    type: OS::Heat::Value
    condition: longer
    properties: {value: {str_replace: {template: "%k", params: {"%k": {get_attr: [key, value]}}}}}
outputs:
  both: {value: [{get_param: db_password}, {get_attr: [shown, value]}]}
"""
RISKY = """heat_template_version: 2018-08-31
parameters:
  length: {type: number, default: 8}
  spare: {type: string, default: x}
  db_password: {type: string, default: canary-1}
  pin: {type: string, hidden: true, default: canary-2}
conditions:
  never: {equals: [1, 2]}
resources:
  key:
    type: OS::Heat::RandomString
    properties:
      length: {get_param: length}
      salt: {get_attr: [other, value]}
  kept:
    type: OS::Heat::RandomString
    deletion_policy: Retain
    properties: {length: {get_param: length}}
  other: {type: OS::Heat::Value, properties: {value: [{get_param: db_password}, {get_param: pin}]}}
  odd:
    type: My::Type
    properties:
      admin_password: canary-3
"""
CLOUD = """AWSTemplateFormatVersion: '2010-09-09'
Parameters:
  Used: {Type: String, Default: a}
  Spare: {Type: String, Default: a}
Mappings:
  Looked: {a: {b: c}}
  Ignored: {a: {b: c}}
Conditions:
  Named: {'Fn::Equals': [{Ref: Used}, a]}
  Chained: {'Fn::And': [{Condition: Named}, {'Fn::Equals': [1, 1]}]}
Resources:
  One:
    Type: OS::Heat::Value
    Condition: Chained
    Properties: {value: {'Fn::FindInMap': [Looked, {Ref: Used}, b]}}
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run a command in a directory of its own: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    for name, text in (('careful.yaml', CAREFUL), ('risky.yaml', RISKY), ('cloud.yaml', CLOUD)):
        (tmp_path / name).write_text(text)

    def template(*arguments):
        code = command.main(['template', *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return template


def rules(out):
    return [(each['rule'], '.'.join(each['path'])) for each in json.loads(out)]


def test_nothing_is_found_in_a_careful_template(run):
    assert run('lint', 'careful.yaml') == (0, '', '')


def test_what_is_unused_risky_or_not_secret_is_found(run):
    code, out, _ = run('lint', 'risky.yaml', '--ignore-unknown-types', '--format', 'json')
    assert code == 1
    assert rules(out)[1:] == [
        ('unused-parameter', 'parameters.spare'),
        ('shown-secret', 'parameters.db_password'),
        ('plain-secret', 'parameters.pin'),
        ('unused-condition', 'conditions.never'),
        ('replacing-parameter', 'resources.key.properties.length'),
        ('replacing-attribute', 'resources.key.properties.salt'),
        ('plain-secret', 'resources.odd.properties.admin_password'),
    ]
    assert 'canary-2' not in out and 'canary-3' not in out
    found = run('lint', 'risky.yaml', '--ignore-unknown-types', '--ignore', 'plain-secret', '--format', 'json')[1]
    assert 'plain-secret' not in found
    assert run('lint', 'risky.yaml', '--ignore', 'nothing')[0] == 2


def test_templates_of_cloudformation_are_linted_too(run):
    assert rules(run('lint', 'cloud.yaml', '--format', 'json')[1]) == [
        ('unused-parameter', 'Parameters.Spare'),
        ('unused-mapping', 'Mappings.Ignored'),
    ]


def test_what_a_function_may_read_is_not_called_unused(run, tmp_path):
    (tmp_path / 'computed.yaml').write_text(CAREFUL.replace('{get_param: db_password}', '{get_param: [db_password]}'))
    assert run('lint', 'computed.yaml')[0] == 0


def test_a_template_that_is_wrong_is_told_so(run, tmp_path):
    (tmp_path / 'wrong.yaml').write_text(RISKY.replace('get_param: length', 'get_param: lenght'))
    code, out, _ = run('lint', 'wrong.yaml', '--ignore-unknown-types')
    assert code == 1 and 'wrong.yaml:13:' in out and 'error [UserParameterMissing]' in out
    assert run('lint', 'nowhere.yaml')[0] == 2


def test_findings_are_given_in_the_format_of_code_hosts(run):
    code, out, _ = run('lint', 'risky.yaml', '--ignore-unknown-types', '--format', 'sarif')
    document = json.loads(out)
    assert (code, document['version']) == (1, '2.1.0')
    (run_,) = document['runs']
    known = {rule['id'] for rule in run_['tool']['driver']['rules']}
    assert {each['ruleId'] for each in run_['results']} <= known
    spare = next(each for each in run_['results'] if each['ruleId'] == 'unused-parameter')
    location = spare['locations'][0]['physicalLocation']
    assert location == {'artifactLocation': {'uri': 'risky.yaml'}, 'region': {'startLine': 4, 'startColumn': 3}}
    assert json.loads(run('lint', 'careful.yaml', '--format', 'sarif')[1])['runs'][0]['results'] == []


def test_files_are_formatted_where_they_are(run, tmp_path):
    path = tmp_path / 'untidy.yaml'
    path.write_text('a:\n    b:   [1,2] # why\n')
    path.chmod(0o640)
    assert run('format', '--check', 'untidy.yaml', 'careful.yaml') == (1, '', 'untidy.yaml is not formatted.\n')
    code, out, _ = run('format', '--diff', 'untidy.yaml')
    assert code == 1 and '+  b: [1, 2]  # why' in out
    assert run('format', 'untidy.yaml', 'careful.yaml') == (0, '', 'untidy.yaml is formatted.\n')
    assert path.read_text() == 'a:\n  b: [1, 2]  # why\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert run('format', 'untidy.yaml') == (0, '', '')
    assert sorted(os.listdir(tmp_path)) == ['careful.yaml', 'cloud.yaml', 'risky.yaml', 'untidy.yaml']


def test_what_cannot_be_formatted_stays_and_the_others_are_done(run, tmp_path):
    (tmp_path / 'wrong.yaml').write_text('a: [\n')
    (tmp_path / 'untidy.yaml').write_text('a:   1\n')
    code, _, err = run('format', 'wrong.yaml', 'untidy.yaml')
    assert code == 1 and 'wrong.yaml:' in err
    assert (tmp_path / 'wrong.yaml').read_text() == 'a: [\n'
    assert (tmp_path / 'untidy.yaml').read_text() == 'a: 1\n'


def test_a_template_is_drawn_without_a_server(run):
    assert run('graph', 'careful.yaml') == (0, 'shown  OS::Heat::Value\n└─ key  OS::Heat::RandomString\n', '')
    assert 'n1 --> n0' in run('graph', 'careful.yaml', '-f', 'mermaid')[1]
    drawn = json.loads(run('graph', 'risky.yaml', '-f', 'json')[1])
    assert drawn['edges'] == [{'from': 'key', 'to': 'other'}]
    for form in ('dot', 'svg'):
        assert run('graph', 'careful.yaml', '-f', form)[0] == 0
    assert 'shown' not in run('graph', 'careful.yaml', '-P', 'length=3')[1]
