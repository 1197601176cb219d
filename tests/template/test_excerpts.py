"""An error shows the line with a caret, and never a secret."""

import pytest

from convergence.errors import InvalidTemplateSection, Place
from convergence.template.excerpts import WIDTH, Excerpts
from tests.template.build import problems

VERSION = 'heat_template_version: 2018-08-31\n'


def shown(text, line, column, *path):
    return Excerpts(text).at(Place(line, column, 'template', path)).splitlines()


@pytest.mark.parametrize('end', ['\n', '\r\n', '\r'])
def test_the_caret_stands_under_the_place(end):
    found = problems('resources:\n  web:\n    type: T\n    proprties: {}\n'.replace('\n', end), InvalidTemplateSection)
    assert found[0].excerpt.splitlines() == ['5 |     proprties: {}', '  |     ^']


def test_characters_that_take_two_columns_move_the_caret():
    assert shown(VERSION + '{名前: x}\n', 2, 6, 'outputs') == ['2 | {名前: x}', '  |        ^']


def test_characters_that_move_the_cursor_are_not_repeated():
    assert shown(VERSION + 'a:\t\x1b[2J\u200bx\n', 2, 9, 'outputs') == ['2 | a: �[2J�x', '  |         ^']


def test_of_a_long_line_the_surroundings_of_the_place_are_shown():
    line, caret = shown(VERSION + 'x' * 500 + 'Y' + 'x' * 500, 2, 501, 'outputs')
    assert len(line) < WIDTH + 10
    assert line[caret.index('^')] == 'Y'
    assert line.count('…') == 2


def test_a_place_behind_the_end_of_a_line_is_shown_at_its_end():
    assert shown(VERSION + 'ab\n', 2, 99, 'outputs') == ['2 | ab', '  |   ^']


def test_a_place_that_is_not_in_the_text_has_no_excerpt():
    assert shown(VERSION, 7, 1, 'outputs') == []


@pytest.mark.parametrize(
    ('line', 'path', 'expected'),
    [
        ('    default: s3cret', ('parameters', 'p', 'default'), '    default: …'),
        (
            '  p: {type: string, hidden: true, "default": s3cret, foo: 1}',
            ('parameters', 'p', 'foo'),
            '  p: {type: string, hidden: true, "default": …',
        ),
        ('    - s3cret', ('parameters', 'p', 'default', 0), '…'),
        ('    default: s3cret: x', (), '    default: …'),
        (
            '{parameters: {p: {hidden: yes, default: s3cret}}, outputs: {x: 1}}',
            ('outputs', 'x'),
            '{parameters: {p: {hidden: yes, default: …',
        ),
        ('    descripton: not secret', ('parameters', 'p', 'descripton'), '    descripton: not secret'),
    ],
)
def test_values_of_parameters_are_left_out_of_templates(line, path, expected):
    assert shown(VERSION + line, 2, 5, *path)[0] == f'2 | {expected}'


@pytest.mark.parametrize(
    ('line', 'path', 'expected'),
    [
        ('  password: s3cret', ('parameters', 'password'), '  password: …'),
        ('parameters: {password: s3cret, oops: 1}', ('parameters', 'oops'), 'parameters: …'),
        (
            '{"parameter_defaults": {"password": "s3cret"}}',
            ('parameter_defaults', 'password'),
            '{"parameter_defaults": …',
        ),
        ('  - s3cret', ('parameters', 'list', 0), '…'),
        ('  password: s3cret: x', (), '  password: …'),
        ('  oops: OS::Heat::Value', ('resource_registry', 'oops'), '  oops: OS::Heat::Value'),
    ],
)
def test_values_of_parameters_are_left_out_of_environments(line, path, expected):
    assert shown('# no template\n' + line, 2, 5, *path)[0] == f'2 | {expected}'


def test_the_error_of_a_hidden_parameter_does_not_show_its_value():
    text = 'parameters:\n  p: {type: number, hidden: true}\n'
    found = problems(text, environment='parameters:\n  p: s3cret\n')
    assert found[0].place.source == 'environment'
    assert 's3cret' not in str(found[0])
    assert found[0].excerpt.splitlines()[0] == '2 |   p: …'
