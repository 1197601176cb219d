"""Makes up expressions: calls of functions within each other, with arguments that are sometimes odd."""

import random

from convergence.template.versions import VERSIONS as LANGUAGE

PARAMETERS = {
    'text': {'type': 'string', 'default': 'hello'},
    'items': {'type': 'comma_delimited_list', 'default': 'a,b,c'},
    'map': {'type': 'json', 'default': {'k': 'v', 'list': [1, {'n': None}], '1': 'one'}},
    'number': {'type': 'number', 'default': 3},
    'flag': {'type': 'boolean', 'default': True},
}
LEAVES = ('', 'a', 'hello', 'a,b', '%i%', 0, 1, -1, 2.5, True, None, [], {}, ['a', 'b'], [1, 'a'], {'a': 1}, {'k': 'v'})
TEXTS = ('', 'a', 'a,b,c', 'hello %i%', 'k=v')
VERSIONS = ('2017-09-01', '2018-08-31', '2021-04-16')
ODD = 0.1
"""Probability of an argument of the wrong kind."""


class Maker:
    """Expressions from one seed."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._functions = {name: getattr(self, name) for name in dir(type(self)) if name.startswith('_make_')}

    def expression(self, depth=3):
        """A call."""
        make = self._functions[self._random.choice(sorted(self._functions))]
        return make(depth)

    def _any(self, depth):
        if depth > 0 and self._random.random() < 0.4:
            return self.expression(depth - 1)
        return self._random.choice(LEAVES)

    def _of(self, depth, choices):
        return self._any(depth - 1) if self._random.random() < ODD else self._random.choice(choices)

    def _text(self, depth):
        if depth > 0 and self._random.random() < 0.3:
            return self._random.choice((self._make_join, self._make_replace, self._make_parameter))(depth - 1)
        return self._of(depth, TEXTS)

    def _list(self, depth):
        if depth > 0 and self._random.random() < 0.3:
            return self._random.choice((self._make_concat, self._make_filter, self._make_split))(depth - 1)
        return self._of(depth, (['a', 'b'], [], ['a', 'a', 'c'], [1, 'b'], [{'a': 1}], None))

    def _map(self, depth):
        return self._of(depth, ({'a': 'x'}, {}, {'k': 'v', 'a': [1]}, {'b': {'c': 1}}, None))

    def _make_parameter(self, depth):
        path = self._random.choice(
            (
                ['text'],
                ['items'],
                ['map'],
                ['number'],
                ['flag'],
                ['items', 1],
                ['map', 'list', 1],
                ['map', 'no'],
                ['none'],
            )
        )
        return {'get_param': path if len(path) > 1 else path[0]}

    def _make_join(self, depth):
        lists = [self._list(depth - 1) for _ in range(self._random.choice((1, 1, 2)))]
        return {'list_join': [self._of(depth, (',', '', '-')), *lists]}

    def _make_split(self, depth):
        index = self._random.choice(((), (), (0,), (-1,), (5,), ('1',)))
        return {'str_split': [self._of(depth, (',', ' ')), self._text(depth - 1), *index]}

    def _make_replace(self, depth):
        params = {'a': self._any(depth - 1), '%i%': self._text(depth - 1)}
        name = self._random.choice(('str_replace', 'str_replace', 'str_replace_strict', 'str_replace_vstrict'))
        return {name: {'template': self._text(depth - 1), 'params': params}}

    def _make_merge(self, depth):
        return {'map_merge': [self._map(depth - 1) for _ in range(self._random.randint(1, 3))]}

    def _make_map_replace(self, depth):
        return {'map_replace': [self._map(depth - 1), {'keys': {'a': 'b'}, 'values': {'v': 'w', 'x': 2}}]}

    def _make_concat(self, depth):
        name = self._random.choice(('list_concat', 'list_concat_unique'))
        return {name: [self._list(depth - 1) for _ in range(self._random.randint(1, 3))]}

    def _make_filter(self, depth):
        return {'filter': [self._list(depth - 1), self._list(depth - 1)]}

    def _make_contains(self, depth):
        return {'contains': [self._any(depth - 1), self._list(depth - 1)]}

    def _make_repeat(self, depth):
        return {
            'repeat': {
                'template': self._of(depth, ('x-%i%', {'%i%': 'a'}, ['%i%'])),
                'for_each': {'%i%': self._list(depth - 1)},
            }
        }

    def _make_digest(self, depth):
        return {'digest': [self._of(depth, ('md5', 'sha256', 'SHA1')), self._text(depth - 1)]}

    def _make_url(self, depth):
        return {
            'make_url': {
                'scheme': 'http',
                'host': self._text(depth - 1),
                'path': self._of(depth, ('/a b', 'x')),
                'port': self._of(depth, (80, '8080')),
            }
        }

    def _make_if(self, depth):
        return {
            'if': [self._random.choice((True, False, {'equals': [1, 1]})), self._any(depth - 1), self._any(depth - 1)]
        }

    def _make_yaql(self, depth):
        return {
            'yaql': {
                'expression': self._random.choice(('$.data', '$.data.a', 'len($.data)', '$.data.toList()')),
                'data': self._any(depth - 1),
            }
        }


def calls_within(value):
    """Every call within a value, the inner ones first."""
    found = []
    if isinstance(value, dict):
        for inner in value.values():
            found += calls_within(inner)
        if len(value) == 1 and next(iter(value)) in NAMES:
            found.append(value)
    elif isinstance(value, list):
        for inner in value:
            found += calls_within(inner)
    return found


NAMES = frozenset(LANGUAGE[VERSIONS[-1]].functions)
