"""Slips that are made again and again: the error names what to write."""

import pytest

from convergence.errors import StackValidationFailed
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template import analyse, compile
from tests.template.build import IDENTITY, encoded_property


@pytest.mark.parametrize(
    ('value', 'meant'),
    [
        ({'str_replace': {'templte': 'a', 'params': {}}}, 'template'),
        ({'str_replace_strict': {'template': 'a', 'parms': {}}}, 'params'),
        ({'repeat': {'template': 'a', 'foreach': {'a': ['b']}}}, 'for_each'),
        ({'yaql': {'expresion': '1', 'data': 1}}, 'expression'),
        ({'make_url': {'hots': 'h'}}, 'host'),
    ],
)
def test_a_misspelt_key_of_a_function(value, meant):
    with pytest.raises(StackValidationFailed) as caught:
        encoded_property(value)
    assert caught.value.problems[0].hint == f'Did you mean "{meant}"?'


def test_a_misspelt_version_key():
    with pytest.raises(StackValidationFailed) as caught:
        compile('description: x\nheat_template_versoin: 2018-08-31\n', identity=IDENTITY)
    (problem,) = caught.value.problems
    assert (problem.hint, problem.place.line) == ('Did you mean "heat_template_version"?', 2)


@pytest.mark.parametrize(
    ('line', 'remedy'),
    [
        ('value: %index%', 'put a text that begins with % in quotes'),
        ('value: @here', 'put a text that begins with @ in quotes'),
        ('value: foo: bar', 'put a text that has a colon and a space in it in quotes'),
        ('value: *.example.org', 'put a text that begins with * in quotes'),
        ('value: {get_param: on}', 'put a name like on, off, yes or no in quotes'),
    ],
)
def test_what_has_to_be_quoted(line, remedy):
    text = f'heat_template_version: newton\nresources:\n  a: {{type: T}}\n  b:\n    type: T\n    properties:\n      {line}\n'
    with pytest.raises(StackValidationFailed) as caught:
        compile(text, identity=IDENTITY)
    assert remedy in str(caught.value) and caught.value.problems[0].place.line == 7


def test_the_caret_stands_below_the_key_that_is_wrong():
    text = 'heat_template_version: newton\nresources:\n  a:\n    type: OS::Heat::Value\n    properties: {value: 1, valeu: 2}\n'
    with pytest.raises(StackValidationFailed) as caught:
        validate(analyse(text, identity=IDENTITY), Registry.builtin())
    (problem,) = caught.value.problems
    assert (problem.place.line, problem.place.column) == (5, 28)
