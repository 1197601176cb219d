"""Every error can be made again in another process, from what oslo.messaging carries of it."""

from __future__ import annotations

import json

import pytest

from convergence import errors

CLASSES = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ConvergenceError)
]
PROBLEMS = (
    errors.Problem('too long', errors.Place(3, 9, 'a.yaml', ('outputs', 'x', 0)), excerpt='3 |   x: [y]\n  |      ^'),
    errors.Problem('and somehow wrong.', hint='Did you mean "right"?', kind='InvalidTemplateReference'),
)


def carried(error):
    """The error as another process makes it."""
    arguments, named = json.loads(json.dumps([error.args, error.kwargs]))
    return type(error)(*arguments, **named)


def test_there_are_errors():
    assert len(CLASSES) > 20


@pytest.mark.parametrize('kind', CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_on_the_other_side(kind):
    """Each can be made from a text alone: a plain answer for those who only know that much."""
    error = carried(kind('Wrong: the value ☂.'))
    assert (type(error), str(error)) == (kind, 'Wrong: the value ☂.')


@pytest.mark.parametrize(
    'kind', [kind for kind in CLASSES if issubclass(kind, errors.StackValidationFailed)], ids=lambda kind: kind.__name__
)
def test_problems_keep_their_places(kind):
    error = carried(carried(kind(PROBLEMS)))
    assert error.problems == PROBLEMS
    assert str(error).splitlines() == [
        'too long',
        '  a.yaml, line 3, column 9 (outputs.x.0)',
        '  3 |   x: [y]',
        '    |      ^',
        'and somehow wrong. Did you mean "right"?',
    ]


def test_a_problem_is_flat_data_for_programs():
    assert [problem.document() for problem in PROBLEMS] == [
        {
            'message': 'too long',
            'file': 'a.yaml',
            'line': 3,
            'column': 9,
            'path': ['outputs', 'x', 0],
            'hint': None,
            'kind': 'StackValidationFailed',
            'excerpt': '3 |   x: [y]\n  |      ^',
        },
        {
            'message': 'and somehow wrong.',
            'file': None,
            'line': None,
            'column': None,
            'path': None,
            'hint': 'Did you mean "right"?',
            'kind': 'InvalidTemplateReference',
            'excerpt': None,
        },
    ]
