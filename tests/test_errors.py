"""Every error can be made again in another process, from what oslo.messaging carries of it."""

from __future__ import annotations

import json

import pytest

from convergence import errors

CLASSES = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ConvergenceError)
]
PROBLEMS = (
    errors.Problem('too long', errors.Place(3, 9, 'a.yaml', ('outputs', 'x', 0))),
    errors.Problem('and somehow wrong'),
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
    assert str(error) == 'a.yaml, line 3, column 9 (outputs.x.0): too long\nand somehow wrong'
