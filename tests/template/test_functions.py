"""Functions: what each gives, in each version whose meaning differs."""

import pytest

from convergence.core.model import Output
from convergence.errors import InvalidTemplateReference, StackValidationFailed, UserParameterMissing
from convergence.template import UNKNOWN, EvaluationFailed, UnresolvedReference, preview, references, resolve
from convergence.template.functions import BY_CODE
from convergence.template.functions.base import Function
from convergence.template.versions import VERSIONS
from tests.template.build import INPUTS, NEWEST, OLDEST, SEVERAL_LISTS, encoded_property, resolved_property

DECLARED = {
    'text': {'type': 'string', 'default': 'word'},
    'count': {'type': 'number', 'default': 3},
    'flag': {'type': 'boolean', 'default': True},
    'items': {'type': 'comma_delimited_list', 'default': 'a,b'},
    'ports': {'type': 'json', 'default': {'b': 80}},
    'tree': {'type': 'json', 'default': {'k': [{'n': 1}, None], 'get_resource': 'db', 'empty': None}},
}


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        ({'get_param': 'text'}, 'word'),
        ({'get_param': ['text']}, 'word'),
        ({'get_param': 'count'}, 3),
        ({'get_param': 'flag'}, True),
        ({'get_param': 'items'}, ['a', 'b']),
        ({'get_param': ['items', 1]}, 'b'),
        ({'get_param': ['items', '1']}, 'b'),
        ({'get_param': ['items', -1]}, 'b'),
        ({'get_param': ['items', 5]}, ''),
        ({'get_param': ['items', 'x']}, ''),
        ({'get_param': ['tree', 'k', 0, 'n']}, 1),
        ({'get_param': ['tree', 'k', '0', 'n']}, 1),
        ({'get_param': ['tree', 'none', 'n']}, ''),
        ({'get_param': ['tree', 'empty']}, None),
        ({'get_param': ['text', 'k']}, ''),
        ({'get_param': ['text', 0]}, 'w'),
        ({'get_param': ['tree', {'get_param': ['items', 7]}]}, ''),
        ({'get_param': {'list_join': ['', ['te', 'xt']]}}, 'word'),
        ({'get_param': 'OS::stack_name'}, 'shop'),
        ({'get_param': 'OS::stack_id'}, 'id-1'),
        ({'get_param': 'OS::project_id'}, 'project-1'),
        ({'get_file': 'motd'}, 'hello $name'),
    ],
)
@pytest.mark.parametrize('version', [OLDEST, NEWEST])
def test_parameters_and_files_are_filled_in_at_once(value, expected, version):
    arguments = {'declared': DECLARED, 'files': {'motd': 'hello $name'}, 'version': version}
    assert encoded_property(value, **arguments) == expected


@pytest.mark.parametrize(
    ('value', 'version', 'expected'),
    [
        ({'list_join': [',', ['a', 'b']]}, OLDEST, 'a,b'),
        ({'list_join': [',', []]}, OLDEST, ''),
        ({'list_join': [',', ['a', None, 'b']]}, OLDEST, 'a,,b'),
        ({'list_join': [',', None]}, OLDEST, ''),
        ({'list_join': [',', ['a'], None, ['b', None]]}, SEVERAL_LISTS, 'a,b,'),
        ({'list_join': ['-', [{'b': 1, 'a': [2]}, ['x', None]]]}, SEVERAL_LISTS, '{"a": [2], "b": 1}-["x", null]'),
        ({'list_join': [{'get_param': 'text'}, {'get_param': 'items'}]}, OLDEST, 'awordb'),
        ({'str_replace': {'template': 'a $x b', 'params': {'$x': 'y'}}}, OLDEST, 'a y b'),
        ({'str_replace': {'template': 'a x x', 'params': {'x': None}}}, OLDEST, 'a  '),
        ({'str_replace': {'template': 'n f b', 'params': {'n': 1, 'f': 2.5, 'b': True}}}, OLDEST, '1 2.5 True'),
        ({'str_replace': {'template': 'host hostname', 'params': {'host': 'A', 'hostname': 'B'}}}, OLDEST, 'A B'),
        ({'str_replace': {'template': 'ab', 'params': {'a': 'b', 'b': 'a'}}}, OLDEST, 'ba'),
        ({'str_replace': {'template': 'abcd', 'params': {'ab': 'X', 'bcd': 'Y'}}}, OLDEST, 'aY'),
        ({'str_replace': {'template': '', 'params': {'a': 'b'}}}, OLDEST, ''),
        ({'str_replace': {'template': 'x', 'params': {}}}, OLDEST, 'x'),
        ({'str_replace': {'template': 'x', 'params': {'x': {'b': 1, 'a': 2}}}}, SEVERAL_LISTS, '{"a": 2, "b": 1}'),
        ({'str_replace': {'template': 'x', 'params': {'x': [1, None]}}}, SEVERAL_LISTS, '[1, null]'),
        (
            {'str_replace': {'template': 'k', 'params': {'k': {'list_join': ['', {'get_param': 'items'}]}}}},
            OLDEST,
            'ab',
        ),
        ({'str_replace': {'template': {'get_param': 'text'}, 'params': {'w': 'W'}}}, OLDEST, 'Word'),
    ],
)
def test_text_is_made_at_once_where_nothing_else_is_needed(value, version, expected):
    assert encoded_property(value, version=version, declared=DECLARED) == expected


@pytest.mark.parametrize(
    ('value', 'expected'),
    [
        ({'get_resource': 'db'}, 'db-7'),
        ({'get_resource': 'net'}, None),
        ({'get_attr': ['db', 'port']}, 5432),
        ({'get_attr': ['db', 'names', 1]}, 'b'),
        ({'get_attr': ['db', 'names', '0']}, 'a'),
        ({'get_attr': ['db', 'names', 9]}, None),
        ({'get_attr': ['db', 'names', 0, 0]}, 'a'),
        ({'get_attr': ['db', 'names', 'x']}, None),
        ({'get_attr': ['db', 'tree', 'left', 'right']}, 'leaf'),
        ({'get_attr': ['db', 'tree', 3]}, 'three'),
        ({'get_attr': ['db', 'tree', 'list', 0, 'k']}, 'v'),
        ({'get_attr': ['db', 'tree', 'nowhere', 'right']}, None),
        ({'get_attr': ['db', 'port', 'x']}, None),
        ({'get_attr': ['db']}, INPUTS['db'].attributes['']),
        ({'get_attr': [{'list_join': ['', ['d', 'b']]}, 'port']}, 5432),
        ({'get_attr': ['db', 'tree', {'get_attr': ['db', 'names', 9]}]}, None),
        ({'get_attr': ['db', 'function']}, {'get_resource': 'web'}),
        ({'get_attr': ['db', {'get_attr': ['db', 'names', 0]}]}, 'an attribute whose name is known only now'),
        ({'list_join': ['/', [{'get_resource': 'db'}, 'x'], {'get_attr': ['db', 'names']}]}, 'db-7/x/a/b/'),
        ({'str_replace': {'template': 'p:$p', 'params': {'$p': {'get_attr': ['db', 'port']}}}}, 'p:5432'),
        ({'get_param': ['ports', {'get_attr': ['db', 'names', 1]}]}, 80),
        ({'get_param': ['ports', {'get_attr': ['db', 'names', 0]}]}, ''),
        ({'get_param': ['ports', 'c', {'get_attr': ['db', 'names', 0]}]}, ''),
        ([{'a': {'get_resource': 'db'}}, {'$b': {'get_resource': 'db'}}], [{'a': 'db-7'}, {'$b': 'db-7'}]),
        ({'get_resource': 'nothing', 'two keys': 'are data'}, {'get_resource': 'nothing', 'two keys': 'are data'}),
        ({'unknown_function': ['db']}, {'unknown_function': ['db']}),
    ],
)
def test_other_resources_are_filled_in_when_they_are_there(value, expected):
    assert resolved_property(value, declared={'ports': DECLARED['ports']}) == expected


@pytest.mark.parametrize(
    ('value', 'version', 'text', 'kind'),
    [
        (
            {'get_param': 'txet'},
            OLDEST,
            'The Parameter (txet) was not provided. Did you mean "text"?',
            UserParameterMissing,
        ),
        ({'get_param': 'OS::region'}, OLDEST, 'The Parameter (OS::region) was not provided.', UserParameterMissing),
        ({'get_param': {'a': 1}}, OLDEST, 'get_param needs the name', StackValidationFailed),
        ({'get_param': []}, OLDEST, 'get_param needs the name', StackValidationFailed),
        ({'get_param': {'get_resource': 'db'}}, OLDEST, 'known in advance', StackValidationFailed),
        ({'get_resource': 'bd'}, OLDEST, '"bd" (in web) is incorrect.', InvalidTemplateReference),
        ({'get_resource': ['db']}, OLDEST, 'get_resource needs the name', StackValidationFailed),
        ({'get_resource': {'get_resource': 'db'}}, OLDEST, 'known in advance', StackValidationFailed),
        ({'get_attr': ['bd', 'port']}, OLDEST, '"bd" (in web) is incorrect', InvalidTemplateReference),
        ({'get_attr': ['db']}, OLDEST, 'get_attr needs a list', StackValidationFailed),
        ({'get_attr': 'db'}, NEWEST, 'get_attr needs a list', StackValidationFailed),
        ({'get_attr': []}, NEWEST, 'get_attr needs a list', StackValidationFailed),
        ({'get_attr': ['db', 1]}, NEWEST, 'the name of an attribute', StackValidationFailed),
        ({'get_attr': ['db', '']}, NEWEST, 'cannot be empty', StackValidationFailed),
        ({'get_attr': [{'get_resource': 'net'}, 'port']}, NEWEST, 'known in advance', StackValidationFailed),
        (
            {'get_file': 'gone'},
            OLDEST,
            'No content found in the "files" section for get_file path: gone',
            InvalidTemplateReference,
        ),
        ({'get_file': ['a']}, OLDEST, 'get_file needs the name', StackValidationFailed),
        ({'list_join': ','}, OLDEST, 'list_join needs', StackValidationFailed),
        ({'list_join': [',']}, NEWEST, 'list_join needs', StackValidationFailed),
        ({'list_join': [',', ['a'], ['b']]}, OLDEST, 'list_join needs', StackValidationFailed),
        ({'list_join': [',', [1]]}, OLDEST, 'must be strings, not a number', StackValidationFailed),
        ({'list_join': [',', [1]]}, NEWEST, 'not a number', StackValidationFailed),
        ({'list_join': [',', [True]]}, NEWEST, 'not a boolean', StackValidationFailed),
        ({'list_join': [',', [{'a': 1}]]}, OLDEST, 'must be strings, not a map', StackValidationFailed),
        ({'list_join': [',', 'abc']}, NEWEST, 'must be a list, not a string', StackValidationFailed),
        ({'list_join': [1, ['a']]}, NEWEST, 'the delimiter must be a string', StackValidationFailed),
        ({'list_join': [',', [{'get_resource': 'db'}, 1]]}, NEWEST, 'not a number', StackValidationFailed),
        ({'str_replace': {'template': 'x'}}, OLDEST, 'exactly the keys', StackValidationFailed),
        ({'str_replace': {'template': 'x', 'params': {}, 'y': 1}}, OLDEST, 'exactly the keys', StackValidationFailed),
        ({'str_replace': 'x'}, OLDEST, 'exactly the keys', StackValidationFailed),
        (
            {'str_replace': {'template': 1, 'params': {}}},
            OLDEST,
            'the template must be a string',
            StackValidationFailed,
        ),
        ({'str_replace': {'template': 'x', 'params': []}}, OLDEST, 'params must be a map', StackValidationFailed),
        ({'str_replace': {'template': 'x', 'params': {'x': [1]}}}, OLDEST, 'not a list', StackValidationFailed),
        ({'str_replace': {'template': 'x', 'params': {'': 'y'}}}, NEWEST, 'empty', StackValidationFailed),
    ],
)
def test_a_wrong_call_is_refused_and_the_text_says_why(value, version, text, kind):
    with pytest.raises(StackValidationFailed) as caught:
        encoded_property(value, version=version, declared=DECLARED)
    assert text in str(caught.value)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ('name', 'without', 'with_'),
    [
        ('repeat', '2014-10-16', '2015-04-30'),
        ('digest', '2014-10-16', '2015-04-30'),
        ('str_split', '2015-04-30', '2015-10-15'),
        ('map_merge', '2015-10-15', '2016-04-08'),
        ('if', '2016-04-08', '2016-10-14'),
        ('filter', '2016-10-14', '2017-02-24'),
        ('make_url', '2017-02-24', '2017-09-01'),
    ],
)
def test_a_name_is_a_function_only_in_versions_that_have_it(name, without, with_):
    assert encoded_property({name: 17}, version=without) == {name: 17}
    with pytest.raises(StackValidationFailed, match=f'{name} needs|{name}: only|if needs'):
        encoded_property({name: 17}, version=with_)


def test_one_wrong_argument_gives_one_problem():
    value = {'list_join': [',', [{'str_replace': {'template': {'get_param': 'gone'}, 'params': {}}}]]}
    with pytest.raises(UserParameterMissing) as caught:
        encoded_property(value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ('value', 'text', 'resource', 'attribute'),
    [
        ({'get_resource': 'db'}, 'reference id of the resource db', 'db', None),
        ({'get_attr': ['db', 'port']}, 'attribute port of the resource db', 'db', 'port'),
        ({'get_attr': ['db']}, 'all attributes of db', 'db', ''),
    ],
)
def test_a_missing_input_is_named(value, text, resource, attribute):
    with pytest.raises(UnresolvedReference, match=text) as caught:
        resolved_property(value, inputs={})
    assert (caught.value.resource, caught.value.attribute) == (resource, attribute)


def test_an_attribute_that_could_not_be_read_fails_its_user_with_the_reason():
    with pytest.raises(UnresolvedReference, match='the service said no'):
        resolved_property({'get_attr': ['db', 'broken', 'x']})


def test_an_attribute_that_was_not_provided_is_an_error_not_null():
    with pytest.raises(UnresolvedReference, match='not provided'):
        resolved_property({'get_attr': ['db', 'other']})


def test_a_function_that_cannot_work_with_a_late_value_says_so():
    with pytest.raises(EvaluationFailed, match=r'list_join.*not a number'):
        resolved_property({'list_join': [',', [{'get_attr': ['db', 'port']}]]})
    with pytest.raises(EvaluationFailed, match='params must be a map, not a number'):
        resolved_property({'str_replace': {'template': 'x', 'params': {'get_attr': ['db', 'port']}}})


def test_stored_calls_keep_the_meaning_of_their_version():
    value = {'list_join': [',', [{'get_attr': ['db', 'tree', 'left']}]]}
    assert resolved_property(value, version=SEVERAL_LISTS) == '{"right": "leaf"}'
    with pytest.raises(EvaluationFailed, match='must be strings, not a map'):
        resolved_property(value, version=OLDEST)


def test_a_call_stored_by_a_newer_program_is_refused_with_what_to_do():
    with pytest.raises(EvaluationFailed, match='Upgrade'):
        resolve({'$fn': ['from_the_future', None]}, {})


def test_a_preview_knows_what_can_be_known():
    encoded = encoded_property(
        {
            'plain': 1,
            'id': {'get_resource': 'db'},
            'text': {'list_join': ['-', ['x', {'get_resource': 'db'}]]},
            'list': ['a', {'get_attr': ['db', 'port']}],
        }
    )
    assert preview(encoded, {}) == {'plain': 1, 'id': UNKNOWN, 'text': UNKNOWN, 'list': ['a', UNKNOWN]}
    assert preview(encoded, INPUTS) == {'plain': 1, 'id': 'db-7', 'text': 'x-db-7', 'list': ['a', 5432]}
    assert preview(encoded, {'db': Output('r1', 'new')})['list'] == ['a', UNKNOWN]


def test_references_tell_what_a_value_needs():
    encoded = encoded_property(
        [
            {'get_resource': 'db'},
            {
                '$k': {
                    'list_join': [
                        '',
                        [{'get_attr': ['db', 'port']}, {'get_attr': ['net', 'a', {'get_attr': ['net', 'b']}]}],
                    ]
                }
            },
            {'get_attr': ['net']},
        ]
    )
    assert references(encoded) == ({'db'}, {'db': {'port'}, 'net': {'a', 'b', ''}})
    late = encoded_property({'get_attr': ['db', {'get_attr': ['net', 'a']}]})
    assert references(late) == (set(), {'db': {''}, 'net': {'a'}})
    assert references({'plain': ['get_resource', 'db']}) == (set(), {})


OFFERED = {
    f'{version.date} {name}': function for version in VERSIONS.values() for name, function in version.functions.items()
}


@pytest.mark.parametrize('function', OFFERED.values(), ids=list(OFFERED))
def test_what_a_version_offers_can_be_evaluated_when_it_was_stored(function):
    """A call that remains in a definition is found again by its code, with the meaning that it was written with."""
    kind = type(function)
    if not hasattr(function, 'code'):
        changed = kind.fold is not Function.fold or kind.read is not Function.read
        assert changed, f'{kind.__name__} leaves calls without a code'
        return
    stored = BY_CODE[function.code]
    assert stored.code == function.code
    assert isinstance(function, type(stored))
    assert (type(stored).evaluate, type(stored).reference) == (kind.evaluate, kind.reference)
    assert kind.evaluate is not Function.evaluate
