# ruff: noqa: RUF009 - prop() makes a dataclass field, like field()
from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from convergence.core.model import Json
from convergence.errors import Place, StackValidationFailed
from convergence.resources.constraints import AllowedPattern, AllowedValues, Length, Range
from convergence.resources.reading import Strictness
from convergence.resources.schema import PropertySchema, prop, remaining
from convergence.template import UNKNOWN


@dataclass(frozen=True)
class Rule:
    port: int = prop(constraints=[Range(1, 65535)])
    protocol: str = prop('tcp', constraints=[AllowedValues(['tcp', 'udp'])])


@dataclass(frozen=True)
class Server:
    image: str = prop(description='What to boot.', constraints=[AllowedPattern('[a-z]+')])
    count: int = prop(1, update_allowed=True)
    ratio: float = prop(0.5)
    public: bool = prop(False, update_allowed=True)
    zone: str | None = prop(None, immutable=True)
    tags: list[str] = prop([], constraints=[Length(maximum=3)])
    labels: dict[str, str] = prop({})
    rules: list[Rule] = prop([])
    first: Rule | None = prop(None)
    extra: Json = prop(None)
    from_: str = prop('', name='from')


SCHEMA = PropertySchema.of(Server)


def problems(mapping, schema=SCHEMA):
    with pytest.raises(StackValidationFailed) as caught:
        schema.parse(mapping)
    return [problem.message for problem in caught.value.problems]


def test_defaults_are_filled_in_and_belong_to_nobody_else():
    first, second = SCHEMA.parse({'image': 'linux'}), SCHEMA.parse({'image': 'linux'})
    assert (first.count, first.tags, first.zone, first.from_) == (1, [], None, '')
    first.tags.append('mine')
    assert second.tags == []


@pytest.mark.parametrize(
    ('name', 'given_value', 'read'),
    [
        ('count', '8', 8),
        ('count', ' -3 ', -3),
        ('count', 2.0, 2),
        ('ratio', '0.25', 0.25),
        ('ratio', '3', 3),
        ('ratio', 4, 4),
        ('public', 'true', True),
        ('public', 'False', False),
        ('image', 'linux', 'linux'),
        ('zone', 7, '7'),
        ('zone', True, 'True'),
        ('tags', ['a', 5], ['a', '5']),
        ('tags', ['a', None], ['a', '']),
        ('labels', {'a': 1}, {'a': '1'}),
        ('extra', {'any': [1, None]}, {'any': [1, None]}),
        ('zone', None, None),
        ('count', None, 1),
    ],
)
def test_values_are_coerced_as_templates_expect(name, given_value, read):
    value = getattr(SCHEMA.parse({'image': 'linux', name: given_value}), name)
    assert value == read
    assert type(value) is type(read)


def test_nested_dataclasses_become_instances():
    server = SCHEMA.parse({'image': 'linux', 'rules': [{'port': '80'}], 'first': {'port': 1, 'protocol': 'udp'}})
    assert server.rules == [Rule(port=80)]
    assert server.first == Rule(port=1, protocol='udp')


@pytest.mark.parametrize(
    ('name', 'wrong'),
    [
        ('count', 'many'),
        ('count', 1.5),
        ('count', True),
        ('count', '9' * 5000),
        ('ratio', float('nan')),
        ('ratio', 'inf'),
        ('ratio', '1e9999'),
        ('public', 'perhaps'),
        ('public', 1),
        ('image', ['linux']),
        ('tags', 'abc'),
        ('labels', ['a']),
        ('labels', {1: 'a'}),
        ('rules', [{'port': 0}]),
        ('rules', [{'port': 1, 'protocol': 'icmp'}]),
        ('tags', ['1', '2', '3', '4']),
        ('image', 'Linux'),
    ],
)
def test_a_wrong_value_is_refused_by_name(name, wrong):
    messages = problems({'image': 'linux', name: wrong})
    assert len(messages) == 1
    assert f'Property {name}' in messages[0]


def test_all_problems_are_reported_together():
    messages = problems({'cuont': 2, 'ratio': 'x', 'rules': [{'port': 1}, {'prot': 2}]})
    assert messages == [
        'Property image not assigned',
        'Property ratio: the value must be a number, not a text',
        'Property rules.1.port not assigned',
        'Unknown Property rules.1.prot; did you mean port?',
        'Unknown Property cuont; did you mean count?',
    ]


def test_a_message_never_shows_the_value():
    for wrong in ({'image': 'Secret'}, {'image': 'a', 'count': 'Secret'}, {'image': 'a', 'first': 'Secret'}):
        assert 'Secret' not in ''.join(problems(wrong))


def test_what_is_unknown_is_taken_to_be_right():
    def place(*path):
        return Place(line=len(path), column=1, path=path)

    values = {'image': UNKNOWN, 'count': UNKNOWN, 'rules': [{'port': UNKNOWN}], 'tags': [UNKNOWN], 'labels': UNKNOWN}
    assert SCHEMA.check(values, place) == []
    assert SCHEMA.check(UNKNOWN, place) == []
    found = SCHEMA.check({**values, 'rules': [{'port': UNKNOWN, 'protocol': 'x'}], 'ratio': []}, place)
    assert [problem.place.path for problem in found] == [('ratio',), ('rules', 0, 'protocol')]


def test_encoded_properties_are_checked_with_their_places():
    found = SCHEMA.check_encoded({'image': 'linux', 'count': 'x'}, lambda *path: Place(3, 4, path=path))
    assert [(problem.place.line, problem.place.path) for problem in found] == [(3, ('count',))]


@pytest.mark.parametrize(
    ('previous', 'desired', 'names'),
    [
        ({}, {'count': 1}, set()),
        ({'count': '2'}, {'count': 2}, set()),
        ({'count': 1}, {'count': None}, set()),
        ({'public': True}, {'public': 'true'}, set()),
        ({'extra': 1}, {'extra': True}, {'extra'}),
        ({'extra': {'a': 1, 'b': 2}}, {'extra': {'b': 2, 'a': 1}}, set()),
        ({'count': 2}, {}, {'count'}),
        ({'rules': [{'port': 1}]}, {'rules': [{'port': '1', 'protocol': 'tcp'}]}, set()),
        ({'rules': [{'port': 1}]}, {'rules': [{'port': 2}]}, {'rules'}),
        ({'count': 'unreadable'}, {'count': 1}, {'count'}),
        ({'dropped_in_this_version': 1}, {}, {'dropped_in_this_version'}),
    ],
)
def test_a_change_is_a_change_of_meaning(previous, desired, names):
    assert SCHEMA.changed({'image': 'linux', **previous}, {'image': 'linux', **desired}) == names


def test_lenient_reading_never_fails():
    server = SCHEMA.parse({'count': 'x', 'rules': 'x', 'unknown': 1, 'tags': ['a']}, Strictness.LENIENT)
    assert (server.image, server.count, server.rules, server.tags) == ('', 1, [], ['a'])


@dataclass(frozen=True)
class Pair:
    low: int = prop(0)
    high: int = prop(10)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError('low is above high')


def test_a_dataclass_can_check_itself():
    schema = PropertySchema.of(Pair)
    assert problems({'low': 11}, schema) == ['low is above high']
    assert [problem.message for problem in schema.check({'low': 11}, lambda *path: None)] == ['low is above high']
    assert schema.check({'low': 11, 'high': UNKNOWN}, lambda *path: None) == []
    assert schema.parse({'low': 11}, Strictness.LENIENT).low == 11


def test_remaining_takes_what_nothing_else_declares():
    @dataclass(frozen=True)
    class Open:
        name: str = prop('x')
        others: dict[str, Json] = remaining()

    opened = PropertySchema.of(Open).parse({'name': 'a', 'b': [1]})
    assert (opened.name, opened.others) == ('a', {'b': [1]})


def test_the_description_has_the_fields_shape():
    described = SCHEMA.describe()
    assert described['image'] == {
        'type': 'string',
        'required': True,
        'update_allowed': False,
        'immutable': False,
        'description': 'What to boot.',
        'constraints': [{'allowed_pattern': '[a-z]+'}],
    }
    assert described['rules']['schema']['*']['schema']['port']['constraints'] == [{'range': {'min': 1, 'max': 65535}}]
    assert described['tags']['schema'] == {
        '*': {'type': 'string', 'required': False, 'update_allowed': False, 'immutable': False}
    }
    assert described['first']['schema']['protocol']['default'] == 'tcp'
    assert described['zone']['immutable'] is True
    assert 'from' in described
    json.dumps(described)


def test_a_schema_that_cannot_be_is_refused():
    @dataclass(frozen=True)
    class Odd:
        value: set[str] = prop()

    @dataclass
    class Thawed:
        value: str = prop()

    with pytest.raises(TypeError, match='value'):
        PropertySchema.of(Odd)
    with pytest.raises(TypeError, match='frozen'):
        PropertySchema.of(Thawed)


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(strategies.dictionaries(strategies.sampled_from([*SCHEMA.properties, 'other']), JSON))
def test_whatever_a_template_says_is_read_or_refused(mapping):
    try:
        SCHEMA.parse(mapping)
    except StackValidationFailed as error:
        assert error.problems
    assert SCHEMA.changed(mapping, mapping) == frozenset()
    SCHEMA.parse(mapping, Strictness.LENIENT)
