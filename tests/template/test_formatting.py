"""Texts are laid out, and say the same as before."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from convergence.errors import StackValidationFailed
from convergence.template.authoring import formatting
from convergence.template.authoring.formatting import Unformattable, formatted

HERE = Path(__file__).parent
DOCUMENTS = sorted([*(HERE / 'documents').glob('*.yaml'), *(HERE.parents[1] / 'examples').rglob('*.yaml')])

UNTIDY = """
heat_template_version:   2018-08-31 # the version


parameters:
    text: {type: string,default:   one,
           # inside of brackets
           hidden: true }
# before a section
resources:
    a:
        type: OS::Heat::Value
        properties:
            value:
            - {get_param:   text}
            # between items
            - [ a,b,
               "c" ]
            -   first: 1
                second: |
                     keeps
                       its shape

            - plain text
              that goes on
            # last in the list
        # after the properties
    # after a

outputs: { }
"""
TIDY = """heat_template_version: 2018-08-31  # the version

parameters:
  text: {type: string, default: one,
    # inside of brackets
    hidden: true}
# before a section
resources:
  a:
    type: OS::Heat::Value
    properties:
      value:
        - {get_param: text}
        # between items
        - [a, b,
            "c"]
        - first: 1
          second: |
            keeps
              its shape

        - plain text
          that goes on
        # last in the list
    # after the properties
  # after a

outputs: {}
"""


def test_a_text_is_laid_out():
    assert formatted(UNTIDY) == TIDY
    assert formatted(TIDY) == TIDY
    assert formatted(UNTIDY.replace('\n', '\r\n')) == TIDY


@pytest.mark.parametrize('path', DOCUMENTS, ids=lambda path: path.name)
def test_what_is_laid_out_stays_as_it_is(path):
    text = path.read_text(encoding='utf-8')
    try:
        once = formatted(text)
    except StackValidationFailed:
        with pytest.raises(yaml.YAMLError):
            list(yaml.parse(text))
        return
    assert formatted(once) == once
    assert not any(line != line.rstrip() and not line.lstrip().startswith('#') for line in _structure(once))


def _structure(text):
    """The lines with keys: those of texts may end as they like."""
    return [line for line in text.split('\n') if line.rstrip().endswith(':')]


_TEXTS = st.sampled_from(
    [
        *('a', 'b c', 'x: y', '- z', '#no', 'two\nlines\n', 'tail \n', 'long ' * 30, 'é', '', '1', 'yes', '~', '"q"'),
        *('\n\nlead', '  indented\n more', "it's", '{x}', 'a\n\n\nb\n', 'kept\n\n\n', '\ttab', 'a\n \nb'),
    ]
)
_VALUES = st.recursive(
    _TEXTS | st.none() | st.booleans() | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    value=st.dictionaries(_TEXTS, _VALUES, max_size=3),
    flow=st.sampled_from([None, True, False]),
    indent=st.integers(2, 9),
    width=st.sampled_from([20, 80, 1000]),
    style=st.sampled_from([None, '|', '>', '"', "'"]),
)
def test_whatever_the_layout_it_says_the_same(value, flow, indent, width, style):
    text = yaml.safe_dump(
        value, default_flow_style=flow, indent=indent, width=width, default_style=style, allow_unicode=True
    )
    once = formatted(text)
    assert yaml.safe_load(once) == yaml.safe_load(text)  # which is not always what was dumped
    assert formatted(once) == once


def test_what_would_say_something_else_is_refused(monkeypatch):
    monkeypatch.setattr(formatting._Layout, '_shown', lambda layout, token: 'x')
    with pytest.raises(Unformattable, match='not changed'):
        formatted('a: 1\n')


def test_what_is_no_yaml_is_told_with_its_place():
    with pytest.raises(StackValidationFailed) as caught:
        formatted('a: [1\nb: 2\n', 'wrong.yaml')
    (problem,) = caught.value.problems
    assert (problem.place.source, problem.place.line) == ('wrong.yaml', 2)
