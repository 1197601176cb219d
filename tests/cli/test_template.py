"""``convergence template``: what a user sees of a wrong template, and what a program reads."""

import functools
import json
import os
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from convergence.cli.completion import completion
from convergence.cli.template.commands import template
from convergence.cli.template.files import load
from convergence.template.limits import Limits

EXAMPLES = sorted((Path(__file__).parents[2] / 'examples').rglob('*.yaml'))
VERSION = 'heat_template_version: 2018-08-31\n'
BROKEN = (
    VERSION
    + """\
parameters:
  size: {type: nubmer}
resources:
  text:
    type: OS::Heat::RandomString
    properties:
      lenght: {get_param: sise}
  thing: {type: Foreign::Thing}
outputs:
  o: {value: {get_attr: [text, valu]}}
"""
)


def run(*arguments, stdin=None):
    return CliRunner().invoke(template, list(map(str, arguments)), input=stdin)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files into a new working directory, by name."""
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace('__', '/').replace('_', '.')
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return write


def errors_of(*arguments):
    done = run('validate', '--format', 'json', *arguments)
    assert done.exit_code in (0, 1), done.output
    document = json.loads(done.stdout)
    assert document['valid'] == (done.exit_code == 0) == (not document['errors'])
    return document


def test_every_problem_has_its_place_a_caret_and_a_hint(write):
    write(web_yaml=BROKEN)
    done = run('validate', 'web.yaml')
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        (
            'web.yaml:3:16: error: The type of the parameter size must be one of string, number, comma_delimited_list, '
            'json, boolean. Did you mean "number"?'
        ),
        '    3 |   size: {type: nubmer}',
        '      |                ^',
        '    in parameters.size.type',
        'web.yaml:8:7: error: resources.text (OS::Heat::RandomString): Unknown Property lenght. Did you mean length?',
        '    8 |       lenght: {get_param: sise}',
        '      |       ^',
        '    in resources.text.properties.lenght',
        'web.yaml:8:27: error: The Parameter (sise) was not provided. Did you mean "size"?',
        '    8 |       lenght: {get_param: sise}',
        '      |                           ^',
        '    in resources.text.properties.lenght.get_param',
        'web.yaml:9:17: error: The Resource Type (Foreign::Thing) could not be found.',
        '    9 |   thing: {type: Foreign::Thing}',
        '      |                 ^',
        '    in resources.thing.type',
        (
            'web.yaml:11:7: error: The Referenced Attribute (text valu) does not exist: OS::Heat::RandomString has no '
            'attribute valu. Did you mean value?'
        ),
        '    11 |   o: {value: {get_attr: [text, valu]}}',
        '       |       ^',
        '    in outputs.o.value',
        'web.yaml: 5 errors',
    ]


def test_the_same_is_data_for_programs(write):
    write(web_yaml=BROKEN)
    document = errors_of('web.yaml')
    assert document['files'] == ['web.yaml']
    assert [error['line'] for error in document['errors']] == [3, 8, 8, 9, 11]
    assert document['errors'][2] == {
        'message': 'The Parameter (sise) was not provided.',
        'file': 'web.yaml',
        'line': 8,
        'column': 27,
        'path': ['resources', 'text', 'properties', 'lenght', 'get_param'],
        'hint': 'Did you mean "size"?',
        'kind': 'UserParameterMissing',
        'excerpt': '8 |       lenght: {get_param: sise}\n  |                           ^',
    }


def test_a_valid_template_is_summed_up_in_one_line(write):
    write(web_yaml=VERSION + 'resources: {a: {type: OS::Heat::None}}\n')
    done = run('validate', 'web.yaml')
    assert (done.exit_code, done.stdout) == (
        0,
        'web.yaml: valid (version 2018-08-31; 1 resource, 0 parameters, 0 outputs)\n',
    )


def test_unknown_types_can_be_warnings_and_the_rest_is_still_checked(write):
    write(web_yaml=BROKEN, foreign_yaml=VERSION + 'resources: {a: {type: Foreign::Thing}}\n')
    assert errors_of('foreign.yaml')['errors'][0]['kind'] == 'UnknownResourceType'
    document = errors_of('--ignore-unknown-types', 'foreign.yaml', 'web.yaml')
    assert [(each['kind'], each['file']) for each in document['warnings']] == [
        ('UnknownResourceType', 'foreign.yaml'),
    ]
    assert [error['line'] for error in document['errors']] == [3, 8, 8, 11]
    done = run('validate', '--ignore-unknown-types', 'foreign.yaml')
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].endswith('0 outputs), 1 warning')


@pytest.mark.usefixtures('no_plugins')
def test_constraints_of_services_that_are_not_there_go_with_the_types(write):
    text = """\
parameters:
  flavor: {type: string, default: m1.small, constraints: [{custom_constraint: nova.flavor}]}
resources:
  server: {type: OS::Nova::Server, properties: {flavor: {get_param: flavor}}}
"""
    write(web_yaml=VERSION + text)
    assert 'needs the compute service Nova' in errors_of('web.yaml')['errors'][0]['message']
    document = errors_of('--ignore-unknown-types', '-P', 'flavor=m2', 'web.yaml')
    assert [(each['line'], each['kind']) for each in document['warnings']] == [
        (3, 'Warning'),
        (5, 'ResourceTypeUnavailable'),
    ]
    assert "values of the parameter 'flavor' are not checked: nova.flavor" in document['warnings'][0]['message']


def test_files_are_found_beside_what_names_them(write):
    write(
        t__web_yaml=VERSION
        + 'resources:\n'
        + '  a: {type: OS::Heat::Value, properties: {value: {get_file: data/x.txt}}}\n'
        + '  b: {type: OS::Heat::Value, properties: {value: {get_file: data/y.txt}}}\n'
        + '  c: {type: OS::Heat::Value, properties: {value: {get_file: "http://server.example/z"}}}\n',
        t__data__x_txt='content',
    )
    document = errors_of('t/web.yaml')
    assert [(error['line'], error['column'], error['kind']) for error in document['errors']] == [
        (4, 61, 'UnreadableFile'),
        (5, 61, 'UnreadableFile'),
    ]
    assert document['errors'][0]['hint'] == 'Did you mean "x.txt"?'
    assert 'Download it' in document['errors'][1]['message']


def test_a_file_that_is_no_text_is_a_problem_of_the_place_that_names_it(write):
    write(web_yaml=VERSION + 'outputs: {o: {value: {get_file: x.bin}}}\n', x_bin=b'\xff\x00\xff')
    found = errors_of('web.yaml')
    (error,) = found['errors']
    assert (error['line'], error['message']) == (2, 'The file is not UTF-8 text.')
    assert found['warnings'] == [], 'a consequence was told as well'


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('/dev/zero', 'not a regular file'),
        ('pipe', 'not a regular file'),
        ('.', 'not a regular file'),
        ('x' * 300, 'cannot be read: File name too long.'),
        ('a\0b', 'invalid characters'),
    ],
)
def test_what_has_no_end_is_not_read_because_a_template_names_it(write, tmp_path, name, message):
    write(web_json=json.dumps({'heat_template_version': 'rocky', 'outputs': {'o': {'value': {'get_file': name}}}}))
    os.mkfifo(tmp_path / 'pipe')
    (error,) = errors_of('web.json')['errors']
    assert message in error['message']


def test_parameters_come_from_options_and_environments(write):
    write(
        web_yaml=VERSION + 'parameters:\n  n: {type: number, constraints: [{range: {max: 5}}]}\n',
        few_yaml='parameters: {n: 3}\n',
        many_yaml='parameters:\n  n: 7\n',
        other_yaml='parameter_defaults: {n: 1}\n',
    )
    assert errors_of('web.yaml')['valid']
    assert [error['kind'] for error in errors_of('--require-parameters', 'web.yaml')['errors']] == [
        'UserParameterMissing'
    ]
    assert errors_of('--require-parameters', '-e', 'few.yaml', 'web.yaml')['valid']
    (error,) = errors_of('-e', 'many.yaml', 'web.yaml')['errors']
    assert (error['file'], error['line'], error['path']) == ('many.yaml', 2, ['parameters', 'n'])
    assert error['excerpt'].splitlines()[0] == '2 |   n: …'
    (error,) = errors_of('-e', 'few.yaml', '-e', 'many.yaml', '-e', 'other.yaml', 'web.yaml')['errors']
    assert (error['file'], error['line']) == ('many.yaml', 2)
    assert errors_of('-e', 'many.yaml', '-e', 'few.yaml', 'web.yaml')['valid']
    assert errors_of('-e', 'many.yaml', '-P', 'n=2', 'web.yaml')['valid']
    (error,) = errors_of('-P', 'm=2', 'web.yaml')['errors']
    assert error['kind'] == 'UnknownUserParameter'


def test_a_wrong_environment_is_named(write):
    write(web_yaml=VERSION, e_yaml='paramters: {}\n', bad_yaml='parameters: [\n')
    (error,) = errors_of('-e', 'e.yaml', 'web.yaml')['errors']
    assert (error['file'], error['line'], error['hint']) == ('e.yaml', 1, 'Did you mean "parameters"?')
    (error,) = errors_of('-e', 'bad.yaml', 'web.yaml')['errors']
    assert error['file'] == 'bad.yaml'
    (error,) = errors_of('-e', 'e.yaml', '-e', 'e.yaml', 'web.yaml')['errors']
    assert error['file'] == 'e.yaml'


def test_what_is_no_template_is_a_problem_with_a_place(write):
    write(web_yaml=b'a: b\n\tc: d\n', latin_yaml=b'heat_template_version: 2018-08-31\ndescription: Gr\xfc\xdfe\n')
    (error,) = errors_of('web.yaml')['errors']
    assert (error['file'], error['line']) == ('web.yaml', 2)
    (error,) = errors_of('latin.yaml')['errors']
    assert (error['file'], error['line'], error['column']) == ('latin.yaml', 2, 16)


def test_a_template_that_is_too_deep_is_a_problem(write):
    write(web_yaml=VERSION + 'outputs: ' + '[' * 30_000 + '\n')
    (error,) = errors_of('web.yaml')['errors']
    assert error['kind'] == 'RequestLimitExceeded'
    assert 'max_depth' in error['message']


def test_a_template_may_come_through_a_pipe(write):
    done = run('validate', '-', stdin=VERSION + 'outputs: {o: {valeu: 1}}\n')
    assert done.exit_code == 1
    assert done.stdout.startswith('-:2:15: error: ')


@pytest.mark.parametrize(
    'arguments',
    [['validate'], ['validate', 'missing.yaml'], ['validate', '-P', 'x', 'web.yaml'], ['functions', '1999-01-01']],
)
def test_a_wrong_command_line_ends_with_two(write, arguments):
    write(web_yaml=VERSION)
    assert run(*arguments).exit_code == 2


def test_characters_of_a_template_do_nothing_to_the_terminal(write):
    write(web_yaml=VERSION + 'outputs: {o: {value: {get_param: "\\e[2Jx"}}}\n')
    assert '\x1b' not in run('validate', 'web.yaml').stdout


@functools.cache
@functools.cache
def schema():
    return json.loads(run('schema').stdout)


def test_the_schema_is_one_and_accepts_every_example():
    found = schema()
    jsonschema.Draft202012Validator.check_schema(found)
    assert 'OS::Heat::RandomString' in found['$defs']['types']


@pytest.mark.parametrize(
    ('text', 'is_right'),
    [
        ('{}', True),
        ('{resources: {a: {type: OS::Heat::RandomString, properties: {length: 5}}}}', True),
        ('{resources: {a: {type: OS::Heat::RandomString, properties: {length: "5"}}}}', True),
        ('{resources: {a: {type: OS::Heat::RandomString, properties: {length: {get_param: x}}}}}', True),
        ('{resources: {a: {type: OS::Heat::RandomString, properties: {if: [a, {length: 5}, {}]}}}}', True),
        ('{resources: {a: {type: Foreign::Thing, properties: {any: thing}}}}', True),
        ('{resources: {a: {type: OS::Heat::None, properties: {any: thing}}}}', True),
        ('{resources: {a: {type: OS::Heat::RandomString, properties: {lenght: 5}}}}', False),
        ('{resources: {a: {type: OS::Heat::RandomString, properties: {length: 0}}}}', False),
        ('{resources: {a: {type: OS::Heat::Value, properties: {}}}}', False),
        ('{resources: {a: {typ: OS::Heat::Value}}}', False),
        ('{resources: {a: {type: OS::Heat::None, deletion_policy: Keep}}}', False),
        ('{resuorces: {}}', False),
        ('{outputs: {o: {}}}', False),
        ('{parameters: {p: {type: strnig}}}', False),
        ('{conditions: {a: {equals: [1, 2]}, b: {nothing: []}}}', False),
    ],
)
def test_the_schema_marks_what_is_certainly_wrong(text, is_right):
    document = {'heat_template_version': '2018-08-31', **parsed(text)}
    assert jsonschema.Draft202012Validator(schema()).is_valid(document) == is_right


def parsed(text):
    from convergence.template.limits import Limits
    from convergence.template.problems import Problems
    from convergence.template.sources import read

    return read(text, 'template', Limits(), Problems()).root


def test_the_schema_can_be_written_to_a_file(tmp_path):
    assert run('schema', '-o', tmp_path / 's.json').exit_code == 0
    assert json.loads((tmp_path / 's.json').read_text()) == schema()
    assert run('schema', '-o', tmp_path / 'missing' / 's.json').exit_code == 2


def test_versions_and_functions_are_listed():
    listed = json.loads(run('versions', '--format', 'json').stdout)
    assert listed[0]['version'] == '2013-05-23'
    assert {each['key'] for each in listed} == {
        'heat_template_version',
        'AWSTemplateFormatVersion',
        'HeatTemplateFormatVersion',
    }
    old = {each['function'] for each in json.loads(run('functions', '2015-04-30', '--format', 'json').stdout)}
    assert 'repeat' in old
    assert 'map_merge' not in old
    assert run('functions', 'pike').stdout == run('functions', '2017-09-01').stdout
    assert all(each['description'] for each in json.loads(run('functions', '--format', 'json').stdout))


@pytest.mark.parametrize('shell', ['bash', 'zsh', 'fish'])
def test_a_script_for_the_shell_is_printed(shell):
    done = CliRunner().invoke(completion, [shell], prog_name='convergence')
    assert done.exit_code == 0
    assert '_CONVERGENCE_COMPLETE' in done.stdout


def test_what_is_wrong_two_levels_down_is_told_as_creation_would(write):
    """With the resources that lead there, the file and the line."""
    write(
        leaf_yaml=VERSION + 'resources:\n  fixed: {type: OS::Heat::RandomStrong}\n',
        middle_yaml=VERSION + 'resources:\n  server: {type: leaf.yaml}\n',
        web_yaml=VERSION + 'resources:\n  web: {type: middle.yaml}\n',
    )
    told = 'The Resource Type (OS::Heat::RandomStrong) could not be found'
    (found,) = errors_of('web.yaml')['errors']
    assert found['message'].startswith(f'resources.web.resources.server: {told}')
    assert (found['file'], found['line']) == ('leaf.yaml', 3)
    write(
        leaf_yaml=VERSION + 'resources:\n  fixed: {type: OS::Heat::RandomString}\n',
    )
    assert errors_of('web.yaml')['errors'] == []


@pytest.mark.parametrize(
    'properties',
    [
        'type: OS::Heat::ResourceGroup, properties: {resource_def: {type: leaf.yaml}}',
        'type: OS::Heat::AutoScalingGroup, properties: {min_size: 1, max_size: 2, resource: {type: leaf.yaml}}',
        'type: OS::Heat::ResourceChain, properties: {resources: [leaf.yaml]}',
    ],
    ids=['group', 'scaled', 'chain'],
)
def test_the_template_of_which_members_are_is_read_from_where_it_lies(write, properties):
    """It was not sent, where nothing else named it, and so the group was refused."""
    leaf = VERSION + 'resources:\n  fixed: {type: OS::Heat::RandomString}\n'
    write(leaf_yaml=leaf, group_yaml=f'{VERSION}resources:\n  group: {{{properties}}}\n')
    assert errors_of('group.yaml')['errors'] == []
    assert load('group.yaml', (), Limits()).files == {'leaf.yaml': leaf}
