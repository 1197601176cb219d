"""Expressions in the templates of stacks, from the request to the resource."""

import pytest
import yaml

from convergence.engine.reads.answers import StackReads
from convergence.errors import StackValidationFailed
from convergence.template.limits import STANDARD
from tests.harness import Harness, database, hot

TEMPLATE = hot(
    {
        'a': 'x,y',
        'b': {'link': {'yaql': {'expression': '$.data.split(",").len()', 'data': {'get_attr': ['a', 'value']}}}},
        'c': {'value': 'z', 'condition': 'many'},
        'd': {'value': 'z', 'condition': {'not': 'many'}},
    },
    parameters={'names': {'type': 'comma_delimited_list', 'default': 'a,b'}},
    conditions={'many': {'yaql': {'expression': '$.data.len() > 1', 'data': {'get_param': 'names'}}}},
    outputs={'o': {'value': {'yaql': {'expression': '$.data.toUpper()', 'data': {'get_attr': ['a', 'value']}}}}},
)


@pytest.fixture
def harness(tmp_path):
    engine = database(f'sqlite:///{tmp_path / "convergence.sqlite"}')
    yield Harness(engine)
    engine.dispose()


def created(harness, template):
    identity = harness.stacks.create_stack(harness.context, 's', template)
    harness.run()
    return identity['stack_id']


def test_an_expression_may_stand_wherever_a_value_or_a_condition_may(harness):
    stack = created(harness, TEMPLATE)
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    assert harness.row(stack, 'b').properties['link'] == 2
    assert sorted(row.name for row in harness.rows(stack)) == ['a', 'b', 'c']


def test_an_expression_that_fails_late_fails_its_resource_with_the_reason(harness):
    document = yaml.safe_load(TEMPLATE)
    document['resources']['b']['properties']['link']['yaql']['expression'] = '$.data.nothing()'
    stack = created(harness, yaml.safe_dump(document))
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'Unknown method "nothing"' in harness.stack(stack).status_reason


def test_an_expression_that_does_not_end_is_refused_with_its_place(harness):
    document = yaml.safe_load(TEMPLATE)
    document['conditions']['many']['yaql']['expression'] = 'range(1000000000000).len() > 1'
    with pytest.raises(StackValidationFailed) as caught:
        created(harness, yaml.safe_dump(document))
    (problem,) = caught.value.problems
    assert 'yaql: the expression' in problem.message
    assert problem.place.path == ('conditions', 'many', 'yaql')


def test_the_outputs_of_a_stack_share_what_reading_it_may_cost(harness, monkeypatch):
    class Costly:
        def evaluate(self, expression, data, budget):
            budget.spend_steps(STANDARD.max_steps // 2 + 1, 'yaql')
            return expression

    monkeypatch.setattr('convergence.engine.reads.stacks.evaluator', Costly)
    value = {'value': {'yaql': {'expression': '1', 'data': {'get_attr': ['a', 'value']}}}}
    template = hot({'a': 'x'}, outputs={'o': value, 'p': value, 'q': value})
    identity = harness.stacks.create_stack(harness.context, 's', template)
    harness.run()
    (shown,) = StackReads(harness.reader, harness.compiler).show_stack(harness.context, identity)
    errors = [output.get('output_error') for output in shown['outputs']]
    assert errors[0] is None
    assert all('max_steps' in error for error in errors[1:])
