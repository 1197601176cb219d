"""Text becomes values with places; what is ambiguous or hostile is refused."""

import datetime
import json

import pytest

from convergence.errors import InvalidTemplateVersion, RequestLimitExceeded, StackValidationFailed
from convergence.template import Installation, Limits, compile
from tests.template.build import IDENTITY, compiled, problems

HEAD = 'heat_template_version: 2016-10-14\n'
COMMENT = ' # heat_template_version'


def value_of(text):
    """The value that a piece of YAML text stands for, as a property."""
    template = f'{HEAD}resources:\n  web:\n    type: T\n    properties:\n      x: {text}\n'
    return compiled(template).goal.definitions['web'].properties['x']


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('1', 1),
        ('-12', -12),
        ('+1', 1),
        ('0644', 420),
        ('0x1F', 31),
        ('0b101', 5),
        ('1_000', 1000),
        ('0x_', '0x_'),
        ('09', '09'),
        ('1.5', 1.5),
        ('.5', 0.5),
        ('1.0e+3', 1000.0),
        ('1e3', '1e3'),
        ('12:30', '12:30'),
        ('190:20:30.15', '190:20:30.15'),
        ('1.2.3', '1.2.3'),
        ('2016-10-14', '2016-10-14'),
        ('2016-10-14 10:00:00', '2016-10-14 10:00:00'),
        ('true', True),
        ('Yes', True),
        ('OFF', False),
        ('y', 'y'),
        ('~', None),
        ('null', None),
        ('', None),
        ('=', '='),
        ('"1"', '1'),
        ("'true'", 'true'),
        ('!!str 1', '1'),
        ('!!int "7"', 7),
        ('!!timestamp 2026-03-01', '2026-03-01'),
        ('!!float 7', 7.0),
        ('[a, [b, {c: d}]]', ['a', ['b', {'c': 'd'}]]),
        ('{1: a, 2.5: b, yes: c, 2016-10-14: d}', {'1': 'a', '2.5': 'b', 'yes': 'c', '2016-10-14': 'd'}),
        ('{a: &x [1], b: *x}', {'a': [1], 'b': [1]}),
        ('{a: &x {k: 1, l: 2}, b: {<<: *x, l: 3}}', {'a': {'k': 1, 'l': 2}, 'b': {'k': 1, 'l': 3}}),
        ('[&x {k: 1}, &y {k: 2, l: 2}, {<<: [*x, *y]}]', [{'k': 1}, {'k': 2, 'l': 2}, {'k': 1, 'l': 2}]),
        ('[&x {k: 1}, {<<: *x, "<<": text}]', [{'k': 1}, {'k': 1, '<<': 'text'}]),
        ('{&k key: 1, other: *k}', {'key': 1, 'other': 'key'}),
        ('[&k key, {*k : 1}]', ['key', {'key': 1}]),
    ],
)
def test_words_mean_what_yaml_says_except_where_that_would_hurt(text, value):
    found = value_of(text)
    assert found == value
    assert type(found) is type(value) or isinstance(value, dict | list)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('.nan', '.nan is not a number that can be stored'),
        ('-.inf', 'put it in quotes'),
        ('1.0e+999', 'not a number that can be stored'),
        ('1' * 65, 'max_number_length'),
        ('!!int x', 'its tag !!int'),
        ('!!python/object:os.system {}', 'has no meaning here'),
        ('!Ref x', 'the tag !Ref has no meaning here'),
        ('!!binary aGk=', 'has no meaning here'),
        ('{~: 1}', 'key of a map is empty or null'),
        ('{[a]: 1}', 'a key must be text'),
        ('{{a: b}: 1}', 'a key must be text'),
        ('*gone', 'stands for nothing'),
        ('&a [*a]', 'used inside of what it stands for'),
        ('{<<: 1}', 'must be followed by a map'),
        ('[&x {a: 1}, {<<: *x, <<: *x}]', '"<<" is given twice'),
        ('a: b', 'mapping values are not allowed'),
        ('[', 'not valid YAML'),
        ('"\\ud800"', 'not valid YAML'),
    ],
)
def test_what_cannot_be_stored_or_understood_is_refused_with_its_place(text, message):
    with pytest.raises(StackValidationFailed) as caught:
        value_of(text)
    problem = caught.value.problems[0]
    assert message in problem.message
    assert problem.place.line >= 6


def test_a_duplicate_key_is_an_error_that_gives_both_lines():
    (problem,) = problems(f'{HEAD}resources:\n  web: {{type: T}}\n  db: {{type: T}}\n  web: {{type: U}}\n')
    assert 'the key "web" is given twice, first in line 3, again in line 5' in problem.message
    assert (problem.place.line, problem.place.column) == (5, 3)


def test_a_tab_gets_a_hint():
    (problem,) = problems(f'{HEAD}a:\n\tb: 1')
    assert 'not with tabs' in problem.message
    assert problem.place.line == 3


def test_only_one_document():
    (problem,) = problems(f'{HEAD}---\n{HEAD}')
    assert 'only one YAML document' in problem.message


@pytest.mark.parametrize('source', ['', '[]', 'text', '# heat_template_version', [], {'a': 1}])
def test_a_template_must_be_a_map_with_a_version(source):
    with pytest.raises(StackValidationFailed, match='heat_template_version'):
        compile(source, identity=IDENTITY)


def test_json_text_is_read_with_the_numbers_of_json_and_with_its_lines():
    template = '{"heat_template_version": "newton",\n "resources": {"web": {"type": "T", "properties": {"x": 1e3}}}}'
    result = compiled(template)
    assert result.goal.definitions['web'].properties == {'x': 1000.0}
    assert result.place('resources', 'web').line == 2


def test_json_that_is_no_yaml_is_read_too():
    template = {'heat_template_version': 'newton', 'description': '\U0001f600', 'resources': {'k' * 255: {'type': 'T'}}}
    assert '\\ud83d\\ude00' in json.dumps(template)
    assert compiled(json.dumps(template)).description == '\U0001f600'
    duplicate = '{"heat_template_version": "newton", "description": "\\ud83d\\ude00", "description": ""}'
    assert 'given twice' in problems(duplicate)[0].message


def test_a_parsed_mapping_is_accepted_dates_and_numbers_included():
    template = {
        'heat_template_version': datetime.date(2016, 10, 14),
        'resources': {'web': {'type': 'T', 'properties': {2: ('a', datetime.date(2020, 1, 2)), True: 1}}},
    }
    result = compiled(template)
    assert result.version == '2016-10-14'
    assert result.goal.definitions['web'].properties == {'2': ['a', '2020-01-02'], 'true': 1}
    place = result.place('resources', 'web')
    assert (place.line, place.path) == (0, ('resources', 'web'))


@pytest.mark.parametrize(
    ('value', 'message'),
    [
        (float('nan'), 'not a number that can be stored'),
        (float('inf'), 'not a number that can be stored'),
        (10**1000, 'max_number_length'),
        ({1, 2}, 'type set is not JSON'),
        (b'x', 'type bytes is not JSON'),
        ('\ud800', 'surrogate'),
        ({None: 1}, 'type NoneType is not text'),
        ({1: 'a', '1': 'b'}, 'given twice'),
    ],
)
def test_a_parsed_mapping_is_checked_as_strictly_as_text(value, message):
    found = problems(
        {'heat_template_version': 'newton', 'description': 'd', 'parameters': {}, 'outputs': {'o': {'value': value}}}
    )
    assert message in str(found[0])


def nested(opening, depth):
    return f'{HEAD}description: {opening * depth}'


def cyclic():
    value = []
    value.append(value)
    return {'heat_template_version': 'newton', 'description': value}


def laughs(form):
    lines = [f'a0: &a0 {form(["x"] * 9)}']
    lines += [f'a{level}: &a{level} {form([f"*a{level - 1}"] * 9)}' for level in range(1, 12)]
    return HEAD + '\n'.join(lines)


def merges():
    levels = [
        f'a{level}: &a{level} {{<<: [{",".join([f"*a{level - 1}"] * 9)}], k{level}: 1}}' for level in range(1, 12)
    ]
    return HEAD + '\n'.join(['a0: &a0 {k0: 1}', *levels])


def deep_aliases():
    lines = ['a0: &a0 [x]'] + [f'a{level}: &a{level} [*a{level - 1}]' for level in range(1, 100)]
    return HEAD + '\n'.join(lines)


@pytest.mark.parametrize(
    ('source', 'limit'),
    [
        (nested('[', 200_000), 'max_depth'),
        (nested('{a: ', 50_000), 'max_depth'),
        ('- ' * 100_000 + COMMENT, 'max_depth'),
        ('? ' * 100_000 + COMMENT, 'a key must be text'),
        (cyclic(), 'max_depth'),
        (deep_aliases(), 'max_depth'),
        (laughs(lambda items: f'[{",".join(items)}]'), 'max_nodes'),
        (merges(), 'max_nodes'),
        (HEAD + 'a: &a x\nb: [' + '*a,' * 20_000 + ']', 'max_aliases'),
        (HEAD + 'a: &a ' + 'x' * 100_000 + '\nb: [' + '*a,' * 5_000 + ']', 'max_expanded_bytes'),
        (HEAD + 'description: ' + 'x' * 4_200_000, 'max_bytes'),
        (HEAD + 'description: ' + '1:1' * 100 + ':1' * 200_000 + '\nbad: 1', 'section is invalid: bad'),
        (HEAD + 'description: ' + '1' * 500_000, 'max_number_length'),
        (HEAD + 'resources: {' + ','.join(f'r{index}: {{type: T}}' for index in range(10_001)) + '}', 'max_resources'),
        (HEAD + ''.join(f'x: {index}\n' for index in range(50_000)), 'more than 100 problems'),
        ({'heat_template_version': 'newton', 'description': 'x' * 4_200_000}, 'max_bytes'),
        ({'heat_template_version': 'newton', 'outputs': [0] * 600_000}, 'max_nodes'),
    ],
    ids=range(17),
)
def test_a_hostile_document_is_refused_by_the_name_of_a_limit(source, limit):
    with pytest.raises((RequestLimitExceeded, StackValidationFailed), match=limit):
        compiled(source)


def test_limits_can_be_set_and_their_errors_say_where():
    with pytest.raises(RequestLimitExceeded, match=r'line 2, column 14: .*the limit max_depth is 2'):
        compiled(f'{HEAD}outputs: {{o: [1]}}', installation=Installation(Limits(max_depth=2)))
    many = HEAD + 'resources: {' + ','.join(f'r{index}: {{type: T}}' for index in range(1001)) + '}'
    assert len(compiled(many, installation=Installation(Limits(max_resources=1001))).goal.definitions) == 1001


@pytest.mark.parametrize(
    'value',
    [
        {'list_join': [{'get_file': 'big'}, [''] * 100]},
        {'str_replace': {'template': 'x' * 100, 'params': {'x': {'get_file': 'big'}}}},
        [{'get_file': 'big'}] * 100,
        [{'get_param': 'big'}] * 100,
    ],
)
def test_functions_cannot_multiply_text_without_bound(value):
    template = {
        'heat_template_version': 'newton',
        'parameters': {'big': {'type': 'json'}},
        'resources': {'web': {'type': 'T', 'properties': {'x': value}}},
    }
    with pytest.raises(RequestLimitExceeded, match='max_expanded_bytes'):
        compiled(template, files={'big': 'y' * 500_000}, parameters={'big': ['y' * 500_000]})


def test_replacing_many_keys_in_much_text_is_bounded():
    params = {f'key{index}x': 1 for index in range(9_000)}
    value = {'str_replace': {'template': {'get_file': 'big'}, 'params': params}}
    template = {'heat_template_version': 'newton', 'outputs': {'o': {'value': value}}}
    with pytest.raises(RequestLimitExceeded, match='max_steps'):
        compiled(template, files={'big': 'key' * 200_000})


def test_a_chain_as_long_as_the_template_is_no_problem():
    chain = ''.join(f'  r{index}: {{type: T, depends_on: r{index + 1}}}\n' for index in range(5000))
    text = f'{HEAD}resources:\n{chain}  r5000: {{type: T}}\n'
    assert len(compiled(text, installation=Installation(Limits(max_resources=6000))).goal.definitions) == 5001


def test_an_unknown_version_is_refused_with_all_that_are_known():
    (problem,) = problems('heat_template_version: 2013-05-24\n', InvalidTemplateVersion)
    for name in ('2013-05-23', '2021-04-16', 'newton', 'wallaby'):
        assert name in problem.message
    assert problem.place.line == 1


@pytest.mark.parametrize(
    ('name', 'version'),
    [('newton', '2016-10-14'), ('pike', '2017-09-01'), ('2018-03-02', '2018-03-02'), ('"2013-05-23"', '2013-05-23')],
)
def test_versions_are_named_by_date_or_release(name, version):
    assert compiled(f'heat_template_version: {name}\n').version == version


@pytest.mark.parametrize('control', ['\x00', '\x01', '\x7f', '\x1b'])
def test_a_control_character_is_shown_where_it_stands(control):
    (problem,) = problems(f'heat_template_version: 2018-08-31\ndescription: aé{control}b\n')
    assert 'control characters are not allowed' in problem.message
    assert (problem.place.line, problem.place.column) == (2, 16)
