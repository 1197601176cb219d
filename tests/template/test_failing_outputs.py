"""Outputs whose value cannot be had: the template is none the worse for them."""

import pytest

from convergence.errors import StackValidationFailed
from convergence.template import EvaluationFailed, resolve
from tests.template.build import compiled

FAILING = [
    ('{get_param: nothing}', 'The Parameter (nothing) was not provided.'),
    ('{get_param: "OS::region"}', 'The Parameter (OS::region) was not provided.'),
    ('{get_resource: nothing}', 'The specified reference "nothing" (in outputs.o) is incorrect.'),
    ('{get_attr: [nothing, x]}', 'The specified reference "nothing" (in outputs.o) is incorrect.'),
    ('{get_file: nothing}', 'No content found in the "files" section for get_file path: nothing'),
    ('{str_split: [",", "a,b", 7]}', 'Incorrect index to "str_split" should be between 0 and 1'),
    ('{str_replace_strict: {template: a, params: {b: c}}}', 'The following params were not found in the template: b'),
    ('[{list_join: ["", [x, {get_param: nothing}]]}]', 'The Parameter (nothing) was not provided.'),
]


@pytest.mark.parametrize(('value', 'message'), FAILING)
def test_an_output_whose_values_cannot_work_fails_alone_and_with_a_warning(value, message):
    found = compiled(f'outputs:\n  o: {{value: {value}}}\n  p: {{value: 1}}\n')
    (warning,) = found.warnings
    assert warning.message.startswith(f'This cannot succeed: {message}') and warning.place.line == 3
    with pytest.raises(EvaluationFailed) as caught:
        resolve(found.outputs['o'].value, {})
    assert str(caught.value).startswith(message)
    assert resolve(found.outputs['p'].value, {}) == 1


@pytest.mark.parametrize('value', ['{list_join: 5}', '{get_attr: r}', '{if: [nothing, 1, 2]}', '{Ref: r}'])
def test_an_output_that_is_not_written_as_the_language_wants_it_is_refused(value):
    with pytest.raises(StackValidationFailed):
        compiled(f'outputs:\n  o: {{value: {value}}}\n')


def test_what_a_resource_needs_has_to_succeed():
    with pytest.raises(StackValidationFailed, match='was not provided'):
        compiled('resources: {r: {type: T, properties: {x: {get_param: nothing}}}}')
