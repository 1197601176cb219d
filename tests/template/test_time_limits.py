"""Time limits of actions and retry policies in templates."""

import pytest

from convergence import template
from convergence.core.model import Action, Definition, RetryPolicy
from convergence.errors import StackValidationFailed

IDENTITY = template.StackIdentity('id', 'stack', 'project')


def definition(metadata, **parameters) -> Definition:
    """The definition of a resource with such metadata."""
    source = {
        'heat_template_version': '2018-08-31',
        'parameters': {'limit': {'type': 'number', 'default': 7}},
        'resources': {'r': {'type': 'OS::Heat::None', 'metadata': metadata}},
    }
    return template.compile(source, identity=IDENTITY, parameters=parameters).goal.definitions['r']


def test_nothing_is_said_by_default():
    made = definition({'other': 1})
    assert (made.time_limits, made.retry) == ({}, None)
    assert 'retry' not in made.document() and 'time_limits' not in made.document()


def test_a_limit_for_each_action_and_a_policy():
    made = definition(
        {
            'convergence': {
                'time_limits': {'create': 600, 'delete': 1.5},
                'retry': {'attempts': 8, 'first_s': 2, 'longest_s': 60},
            }
        }
    )
    assert made.time_limits == {Action.CREATE: 600.0, Action.DELETE: 1.5}
    assert made.retry == RetryPolicy(8, 2.0, 60.0)
    assert Definition.from_document(made.document()) == made


def test_one_limit_for_all_actions_may_come_from_a_parameter():
    made = definition({'convergence': {'time_limits': {'get_param': 'limit'}}}, limit=9)
    assert made.time_limits == {Action.CREATE: 9.0, Action.UPDATE: 9.0, Action.DELETE: 9.0}


@pytest.mark.parametrize(
    ('metadata', 'message'),
    [
        ({'convergence': 5}, 'convergence must be a map'),
        ({'convergence': {'time_limit': 5}}, '"time_limit" has no meaning here.*time_limits'),
        ({'convergence': {'time_limits': {'create': 0}}}, 'create must be a number of seconds'),
        ({'convergence': {'time_limits': 'soon'}}, 'time_limits must be a number of seconds'),
        ({'convergence': {'time_limits': {'craete': 4}}}, '"craete" has no meaning here'),
        ({'convergence': {'retry': {'attempts': 1.5}}}, 'attempts must be a whole number from 1 to 1000'),
        ({'convergence': {'retry': {'attempts': True}}}, 'attempts must be a whole number'),
        ({'convergence': {'retry': {'first_s': -1}}}, 'first_s must be a number of seconds'),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(metadata, message):
    with pytest.raises(StackValidationFailed, match=message):
        definition(metadata)


def test_a_policy_leaves_open_what_it_does_not_say():
    assert RetryPolicy(attempts=3).over(RetryPolicy(5, 1.0, 9.0)) == RetryPolicy(3, 1.0, 9.0)
