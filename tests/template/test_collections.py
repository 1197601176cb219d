"""Functions that make lists, maps, texts and addresses of others: what each gives, also at its edges."""

import hashlib

import pytest

from convergence.core.model import Output
from convergence.errors import RequestLimitExceeded, StackValidationFailed
from convergence.template import EvaluationFailed
from convergence.template.functions.text import ALGORITHMS
from tests.template.build import NEWEST, encoded_property, resolved_property


def each(template, **for_each):
    return {'repeat': {'template': template, 'for_each': for_each}}


def paired(template, **for_each):
    return {'repeat': {'template': template, 'for_each': for_each, 'permutations': False}}


def url(**parts):
    return {'make_url': parts}


VALUES = [
    # repeat: in keys and values, in combination, one pass
    (each('x%n%', **{'%n%': ['1', '2']}), ['x1', 'x2']),
    (each({'k%n%': ['%n%', {'a': '%n%'}]}, **{'%n%': ['1']}), [{'k1': ['1', {'a': '1'}]}]),
    (each('%a%%b%', **{'%a%': ['1', '2'], '%b%': ['x', 'y']}), ['1x', '1y', '2x', '2y']),
    (each('%a%', **{'%a%': []}), []),
    (each('%a%', **{'%a%': None}), []),
    (each('%a%%b%', **{'%a%': ['1'], '%b%': []}), []),
    (each('p%n%', **{'%n%': [80, 2.5, True, None]}), ['p80', 'p2.5', 'pTrue', 'p']),
    (each('%n%', **{'%n%': [80, None, {'a': 1}]}), [80, None, {'a': 1}]),
    (each('<%n%>', **{'%n%': [{'b': 1, 'a': 2}, ['x']]}), ['<{"a": 2, "b": 1}>', '<["x"]>']),
    (each('%a%', **{'%a%': {'k1': 'ignored', 'k2': None}}), ['k1', 'k2']),
    (each('ab', a=['b'], b=['a']), ['ba']),
    (each('%n%%nn%', **{'%n%': ['1'], '%nn%': ['2']}), ['12']),
    (each(7, **{'%n%': ['a', 'b']}), [7, 7]),
    (paired('%a%%b%', **{'%a%': ['1', '2'], '%b%': ['x', 'y']}), ['1x', '2y']),
    (paired('%a%', **{'%a%': ['1', '2']}), ['1', '2']),
    (paired('%a%', **{'%a%': None}), []),
    # map_merge
    ({'map_merge': []}, {}),
    ({'map_merge': [{'a': 1, 'b': 1}, None, {'b': 2, 'c': None}]}, {'a': 1, 'b': 2, 'c': None}),
    ({'map_merge': [{'a': {'x': 1}}, {'a': {'y': 2}}]}, {'a': {'y': 2}}),
    # map_replace
    ({'map_replace': [{'a': 'x', 'b': 'y'}, {'keys': {'a': 'A'}, 'values': {'y': 'Y'}}]}, {'A': 'x', 'b': 'Y'}),
    (
        {'map_replace': [{'a': 1, 'b': True, 'c': 2.5}, {'values': {'1': 'one', 'true': 'yes', '2.5': 'half'}}]},
        {'a': 'one', 'b': 'yes', 'c': 'half'},
    ),
    ({'map_replace': [{'a': ['y'], 'b': None}, {'values': {'y': 'Y'}}]}, {'a': ['y'], 'b': None}),
    ({'map_replace': [{'a': 1}, {'keys': {'a': 'a'}}]}, {'a': 1}),
    ({'map_replace': [{'a': 1}, {'keys': None, 'values': {}}]}, {'a': 1}),
    ({'map_replace': [None, {'keys': {'a': 'b'}}]}, {}),
    ({'map_replace': [{'a': 1}, {}]}, {'a': 1}),
    # lists
    ({'list_concat': [['a', 1], None, [], [1, ['b']]]}, ['a', 1, 1, ['b']]),
    ({'list_concat': []}, []),
    ({'list_concat_unique': [['a', 'b', 'a'], ['b', 'c', {'k': 1}], [{'k': 1}]]}, ['a', 'b', 'c', {'k': 1}]),
    ({'list_concat_unique': [[1, True, '1', 1.0]]}, [1, True, '1', 1.0]),
    ({'filter': [['a', None], ['a', 'b', None, 'a', 'c']]}, ['b', 'c']),
    ({'filter': [[], ['a']]}, ['a']),
    ({'filter': [['a'], None]}, None),
    ({'filter': [[{'k': [1]}], [{'k': [1]}, {'k': [2]}]]}, [{'k': [2]}]),
    ({'contains': ['a', ['b', 'a']]}, True),
    ({'contains': [{'k': 1}, [{'k': 1}]]}, True),
    ({'contains': ['a', []]}, False),
    # str_split
    ({'str_split': [',', 'a,b,,c']}, ['a', 'b', '', 'c']),
    ({'str_split': ['--', 'a--b', 1]}, 'b'),
    ({'str_split': [',', 'a,b', '0']}, 'a'),
    ({'str_split': [',', '']}, ['']),
    ({'str_split': [',', 'a,b', -1]}, 'b'),
    (url(scheme='http', password='p', host='h'), 'http://:p@h'),
    ({'filter': [None, ['a']]}, ['a']),
    ({'digest': ['MD5', 'x']}, hashlib.md5(b'x', usedforsecurity=False).hexdigest()),
    ({'str_split': [',', None]}, None),
    # digest
    ({'digest': ['sha256', 'é']}, hashlib.sha256('é'.encode()).hexdigest()),
    ({'digest': ['md5', '']}, hashlib.md5(b'', usedforsecurity=False).hexdigest()),
    # str_replace, strictly
    ({'str_replace_strict': {'template': 'a b', 'params': {'a': None, 'b': 1}}}, ' 1'),
    ({'str_replace_vstrict': {'template': 'a b', 'params': {'a': 'x', 'b': 0}}}, 'x 0'),
    ({'str_replace_vstrict': {'template': 'a', 'params': {'a': []}}}, '[]'),
    # make_url
    (
        url(scheme='http', host='example.com', port=80, path='/a b/c', query={'q': 'x y', 'z': 1}, fragment='f g'),
        'http://example.com:80/a%20b/c?q=x+y&z=1#f%20g',
    ),
    (
        url(scheme='https', username='me@x', password='p:w/d', host='::1', port='8080', path='a'),
        'https://me%40x:p%3Aw%2Fd@[::1]:8080/a',
    ),
    (url(host='[fe80::1]'), '//[fe80::1]'),
    (url(path='a/b'), 'a/b'),
    (url(scheme='http', host='h', query={'a': None, 'b': '&'}), 'http://h?a=&b=%26'),
    (url(), ''),
]


@pytest.mark.parametrize(('value', 'expected'), VALUES)
def test_values_that_are_known_in_advance(value, expected):
    assert encoded_property(value) == expected


WRONG = [
    ({'repeat': {'template': 'x'}}, 'repeat needs a map with the keys template and for_each'),
    ({'repeat': {'template': 'x', 'for_each': {}, 'more': 1}}, 'repeat needs a map'),
    (each('x'), 'for_each must be a map of one or more lists'),
    ({'repeat': {'template': 'x', 'for_each': ['a']}}, 'for_each must be a map of one or more lists'),
    (each('x', **{'': ['a']}), 'a key of for_each is empty'),
    (each('x', a='abc'), 'the items of a must be a list, not a string'),
    (paired('x', a=['1'], b=['1', '2']), 'must be equally long'),
    ({'repeat': {'template': 'x', 'for_each': {'a': []}, 'permutations': 'no'}}, 'permutations must be true or false'),
    ({'map_merge': {'a': 1}}, 'map_merge needs a list of maps'),
    ({'map_merge': [['a']]}, 'the items to merge must be maps, not a list'),
    ({'map_replace': [{'a': 1}]}, 'map_replace needs a list: a map, and a map'),
    ({'map_replace': [[], {}]}, 'the first argument must be a map'),
    ({'map_replace': [{}, {'key': {}}]}, 'the replacements must be a map with the keys keys and values'),
    ({'map_replace': [{}, {'keys': []}]}, 'keys must be a map, not a list'),
    ({'map_replace': [{'a': 1, 'b': 2}, {'keys': {'a': 'b'}}]}, 'b collides with a key in the input map'),
    ({'map_replace': [{'a': 1, 'b': 2}, {'keys': {'a': 'c', 'b': 'c'}}]}, 'c collides with a key in the output map'),
    ({'map_replace': [{'a': 1}, {'keys': {'a': ['c']}}]}, 'what replaces the key a must be a string'),
    ({'list_concat': 'ab'}, 'list_concat needs a list of lists'),
    ({'list_concat': [['a'], 'b']}, 'the items to concatenate must be lists, not a string'),
    ({'filter': [['a']]}, 'filter needs a list'),
    ({'filter': ['a', ['a']]}, 'the values must be a list, not a string'),
    ({'filter': [['a'], 'abc']}, 'only a list can be filtered, not a string'),
    ({'contains': ['a', 7]}, 'must be a list, not a number'),
    ({'contains': [7, 'abc']}, 'only a string can be in a string'),
    ({'str_split': [',']}, 'str_split needs a list'),
    ({'str_split': ['', 'a']}, 'the delimiter must be a string that is not empty'),
    ({'str_split': [',', 7]}, 'only a string can be split, not a number'),
    ({'str_split': [',', 'a,b', 2]}, 'Incorrect index to "str_split" should be between 0 and 1'),
    ({'str_split': [',', 'a,b', -3]}, 'Incorrect index to "str_split" should be between 0 and 1'),
    ({'str_split': [',', 'a,b', 'x']}, 'the index must be a whole number'),
    ({'digest': ['sha256']}, 'digest needs a list'),
    ({'digest': ['crc', 'a']}, 'Algorithm must be one of'),
    ({'digest': ['md5', 7]}, 'only a string has a digest, not a number'),
    (
        {'str_replace_strict': {'template': 'a', 'params': {'a': 1, 'c': 2, 'b': 3}}},
        'The following params were not found in the template: b, c',
    ),
    ({'str_replace_strict': {'template': 'ab', 'params': {'ab': 1, 'b': 2}}}, 'not found in the template: b'),
    (
        {'str_replace_vstrict': {'template': 'a', 'params': {'a': ''}}},
        'str_replace_vstrict has an undefined or empty value for param a, must be a defined non-empty value',
    ),
    ({'str_replace_vstrict': {'template': 'a', 'params': {'a': None}}}, 'undefined or empty value for param a'),
    (url(host='h', port=0), 'Invalid port'),
    (url(host='h', port='http'), 'Invalid port'),
    (url(scheme='http:', host='h'), 'Invalid scheme'),
    (url(hostname='h'), 'make_url needs a map with keys among'),
    (url(query='a=b'), 'query must be a map, not a string'),
    (url(path=['a']), 'path must be a string, not a list'),
    ({'yaql': {'expression': 1, 'data': {}}}, 'the expression must be a string'),
    ({'yaql': {'expression': '$'}}, 'yaql needs a map with exactly the keys expression and data'),
    ({'resource_facade': 'metadata'}, 'a template that is not nested in another one has none'),
    ({'resource_facade': 'name'}, 'resource_facade needs one of metadata, deletion_policy, update_policy'),
]


@pytest.mark.parametrize(('value', 'text'), WRONG)
def test_a_wrong_call_is_refused_and_the_text_says_why(value, text):
    with pytest.raises(StackValidationFailed) as caught:
        encoded_property(value)
    assert text in str(caught.value)
    assert len(caught.value.problems) == 1


def _late(value):
    """The value in its place, known only when another resource is there."""
    return {'get_attr': ['db', 'late']}, {'late': value}


@pytest.mark.parametrize(('value', 'expected'), [*VALUES, *((value, None) for value, _ in WRONG)])
def test_what_is_known_late_gives_the_same_as_what_is_known_early(value, expected):
    """Folding and evaluation are the same: the whole argument comes from another resource, or each part of it."""
    ((name, argument),) = value.items()
    for late, attributes in (_late(argument), _parts_late(argument)):
        call = {name: late}
        inputs = _inputs(attributes)
        try:
            early = encoded_property(value)
        except StackValidationFailed:
            with pytest.raises((EvaluationFailed, StackValidationFailed)):
                resolved_property(call, inputs=inputs)
        else:
            assert resolved_property(call, inputs=inputs) == early == expected


def _parts_late(argument):
    """The argument with each of its parts known only later."""
    if isinstance(argument, dict):
        calls = {key: {'get_attr': ['db', key or 'x']} for key in argument}
        return calls, {key or 'x': argument[key] for key in argument}
    if isinstance(argument, list):
        parts = {str(index): part for index, part in enumerate(argument)}
        return [{'get_attr': ['db', name]} for name in parts], parts
    return _late(argument)


def _inputs(attributes):
    return {'db': Output('r', 'db', attributes=attributes)}


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_every_algorithm_has_a_digest(algorithm):
    assert encoded_property({'digest': [algorithm, 'x']})


def test_repeat_fills_in_what_another_repeat_has_made():
    nested = each(each('%a%%b%', **{'%b%': ['x', 'y']}), **{'%a%': ['1', '2']})
    assert encoded_property(nested) == [['1x', '1y'], ['2x', '2y']]


def test_repeat_over_maps_and_side_by_side_came_later():
    of_map = each('%a%', **{'%a%': {'k': 1}})
    assert encoded_property(of_map, version='2016-10-14') == ['k']
    with pytest.raises(StackValidationFailed, match='the items of %a% must be a list, not a map'):
        encoded_property(of_map, version='2016-04-08')
    with pytest.raises(StackValidationFailed, match='repeat needs a map'):
        encoded_property(paired('%a%', **{'%a%': ['k']}), version='2017-02-24')


def test_repeat_cannot_be_made_to_exhaust_anything():
    digits = [str(number) for number in range(10)]
    lists = {f'%{number}%': digits for number in range(9)}
    with pytest.raises(RequestLimitExceeded, match='repeat'):
        encoded_property(each(''.join(lists), **lists))
    nested = 'x'
    for number in range(20):
        nested = each(nested, **{f'%{number}%': digits})
    with pytest.raises(RequestLimitExceeded):
        encoded_property(nested)


def test_a_map_of_the_user_that_looks_like_a_stored_call_is_data():
    """Values of other resources are never taken for functions, whatever they look like."""
    forged = {'$fn': ['get_attr', ['net', 'x']]}
    odd = {'$fn': [1, 2, 3]}
    for value in (forged, odd, {'$map': {'a': 1}}):
        inputs = _inputs({'late': value})
        late = {'get_attr': ['db', 'late']}
        assert resolved_property({'list_concat': [[late]]}, inputs=inputs) == [value]
        assert resolved_property({'map_merge': [late]}, inputs=inputs) == value
        assert resolved_property({'contains': [late, [late]]}, inputs=inputs) is True
        with pytest.raises(EvaluationFailed, match='not a map'):
            resolved_property({'str_split': [',', late]}, inputs=inputs)
        with pytest.raises(EvaluationFailed, match='not a map'):
            resolved_property({'list_join': [late, []]}, inputs=inputs)


def test_a_value_of_another_resource_cannot_be_multiplied_without_end():
    inputs = _inputs({'large': 'x' * 1_000_000})
    with pytest.raises(RequestLimitExceeded, match='get_attr of db'):
        resolved_property([{'get_attr': ['db', 'large']}] * 40, inputs=inputs)


def test_expressions_wait_for_somebody_who_evaluates_them():
    value = {'yaql': {'expression': '$.data', 'data': {'get_param': 'p'}}}
    encoded = encoded_property(value, version=NEWEST, declared={'p': {'type': 'json', 'default': [1]}})
    with pytest.raises(EvaluationFailed, match='expressions are not evaluated here'):
        resolved_property(value, declared={'p': {'type': 'json', 'default': [1]}})
    assert encoded == {'$fn': ['yaql', {'expression': '$.data', 'data': [1]}]}
