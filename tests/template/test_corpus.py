"""Templates in the styles in which people have written them for years load, and mean what their authors meant."""

from pathlib import Path

import pytest

from convergence.expressions import evaluator
from convergence.resources.registry import Registry
from convergence.resources.validation import UNAVAILABLE_TYPE, UNKNOWN_TYPE, validate
from convergence.template import Installation, StackIdentity, analyse, preview
from convergence.template.versions import DIALECTS

DIRECTORY = Path(__file__).with_name('documents')
NAMES = sorted(path.name for path in DIRECTORY.iterdir())
REGISTRY = Registry.builtin()


def load(name):
    """The template, as an engine sees it."""
    text = (DIRECTORY / name).read_bytes().decode('utf-8-sig')
    identity = StackIdentity('stack-id', 'stack', 'project')
    return analyse(text, identity=identity, installation=Installation(yaql=evaluator()))


def value(name, resource, key='value'):
    return preview(load(name).goal.definitions[resource].properties, {})[key]


@pytest.mark.parametrize('name', NAMES)
def test_it_loads_and_at_most_types_are_unknown(name):
    warnings = validate(load(name), REGISTRY, ignore_unknown_types=True)
    assert {warning.kind for warning in warnings} <= {UNKNOWN_TYPE, UNAVAILABLE_TYPE}


def test_there_is_one_of_every_version():
    loaded = {load(name).version for name in NAMES}
    assert loaded == {version.date for versions in DIALECTS.values() for version in versions.values()}


def test_line_ends_and_marks_of_the_files_are_as_they_were_written():
    windows = (DIRECTORY / 'windows.yaml').read_bytes()
    assert windows.startswith(b'\xef\xbb\xbf')
    assert windows.count(b'\r\n') == windows.count(b'\n') > 5
    assert b'\n' not in (DIRECTORY / 'old-macintosh.yaml').read_bytes()


def test_unquoted_words_are_read_as_the_field_reads_them():
    assert value('scalars.yaml', 'scalars') == {
        'yes': True,
        'off': False,
        'n': 'n',
        'on_call': True,
        'nothing': None,
        'tilde': None,
        'empty': None,
        'octal': 493,
        'mode': '0755',
        'hex': 31,
        'float': 1.5,
        'exponent': '1e3',
        'big': 12345678901234567890,
        'version': '1.2.3',
        'time': '22:22',
        'mac': '00:16:3e:00:00:01',
        'port_map': '8080:80',
        'date': '2001-12-14',
        'moment': '2001-12-14t21:59:43.10-05:00',
        'address': 'fe80::1',
        'url': 'http://[::1]:5000/v3?a=b#fragment',
        'pattern': '^[a-z]+\\s$',
        'percent': '%index%',
        'at': '@home',
        'star': '*',
        'question': 'a?b',
        'equals': '=',
        'bang': '!important',
        'tagged': '12',
        'braces': '{{ jinja }}',
        'dash': '-',
        'minus': -1,
        '1': 'one',
        '2.5': 'two and a half',
        '2016-10-14': 'a date as a key',
    }


@pytest.mark.parametrize(
    ('resource', 'text'),
    [
        ('folded', 'one line of several\nand a paragraph'),
        ('literal', '  two more spaces stay\nend\n'),
        ('kept', 'the empty lines stay\n\n'),
        ('quoted', 'a line goes on, a tab \t, a letter é, a quote "'),
        ('single', "it's one text: over two lines # and no comment"),
    ],
)
def test_blocks_keep_the_lines_that_they_say(resource, text):
    assert value('block-scalars.yaml', resource) == text


def test_merge_keys_and_aliases_repeat_what_they_name():
    definitions = load('anchors-and-merge-keys.yaml').goal.definitions
    assert definitions['two'].properties == definitions['four'].properties == definitions['one'].properties
    assert definitions['three'].requires == ('one', 'two')
    assert definitions['three'].properties | {'value': 0} == {
        'value': 0,
        'wait_secs': 0,
        'action_wait_secs': {'create': 0},
        'fail': False,
    }
    assert value('anchors-and-merge-keys.yaml', 'three') == 'plain,plain'


@pytest.mark.parametrize(
    ('name', 'resource', 'expected'),
    [
        ('windows.yaml', 'a', 'one\ntwo\n'),
        ('windows.yaml', 'b', '9dd4e461268c8034f5c8564e155c67a6'),
        ('tabs-inside.yaml', 'a', 'a\ttab'),
        ('tabs-inside.yaml', 'b', 'all:\n\techo a tab\n\t\techo two\n'),
        ('not-only-ascii.yaml', 'имя_ресурса', 'Hallo 🚀 груша!'),  # noqa: RUF001 - Russian
        ('spaces-and-comments.yaml', 'a', [1, 2, 3]),
        ('spaces-and-comments.yaml', 'c', [['nested', ['deeper']], {'k': 'v'}]),
        ('as-json.yaml', 'a', [1, 2, 100.0]),
        ('functions-of-both-kinds.yaml', 'text', 'nova:b:plain:yy'),
        ('cloudformation.yaml', 'First', 'small-1'),
        ('cloudformation.yaml', 'Second', 'b'),
        ('cloudformation-of-heat.yaml', 'Text', 'hello world x'),
        ('two-argument-if.yaml', 'b', ['always', {}]),
        ('repeats.yaml', 'pairs', [{'1': 'x'}, {'2': 'y'}]),
        ('repeats.yaml', 'none', []),
        ('filters-and-merges.yaml', 'maps', {'a': '1', 'b': ['x'], 'key': 'value'}),
        ('filters-and-merges.yaml', 'lists', ['a', 'b', 'c', 'd']),
    ],
)
def test_functions_give_what_they_always_gave(name, resource, expected):
    assert value(name, resource) == expected


def test_what_a_condition_rules_out_is_not_there():
    compiled = load('date-as-date.yaml')
    assert list(compiled.goal.definitions) == ['a', 'b', 'c']
    assert value('date-as-date.yaml', 'a') == '2017-01-31'
    assert compiled.goal.definitions['b'].external_id == 'an-id'
