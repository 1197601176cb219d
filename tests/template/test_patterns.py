"""`allowed_pattern` means what it means in Python, but in linear time."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergence.errors import RequestLimitExceeded
from convergence.template.limits import Budget, Limits
from convergence.template.patterns import BadPattern, Pattern


@pytest.mark.parametrize(
    'pattern',
    [
        '[a-zA-Z][a-zA-Z0-9_]*',
        r'^(\d{1,3}\.){3}\d{1,3}$',
        '(?=.*[A-Z])(?=.*[0-9])(?!.*x).{3,8}',
        '(?i)[a-c]+|[^d]',
        '(?s)a.b',
        'a.b',
        r'\bword\b.*',
        r'\Aab?\Z',
        '(a|ab)(c|bcd)?',
        '(a*)*',
        '(a?){3}b',
        '()|x',
        r'[\w.]+@[^\s@]+',
        r'[^\d\s]+',
        r'\Bb|a\B.',
        '(?:x{0}|y{2,})',
        '(?P<name>a)+?b*?',
        'ab$',
    ],
)
def test_as_python_matches(pattern):
    texts = [
        '',
        'a',
        'b',
        'A',
        'ab',
        'aB',
        'abc',
        'abcd',
        'a\nb',
        'ab\n',
        '10.0.0.255',
        '1.2.3',
        'Abc1',
        'Abcx1',
        'x',
        'D',
    ]
    texts += ['word', 'words', 'word two', 'me@x.org', 'yyy', 'y', 'aaab', 'aab', 'ä', 'k_9', ' ', 'aaaa']
    mine, theirs = Pattern(pattern), re.compile(pattern)
    for text in texts:
        assert mine.matches(text, Budget(Limits())) is bool(theirs.fullmatch(text)), (pattern, text)


atoms = st.sampled_from(['a', 'b', '.', '[ab]', '[^a]', r'\w', r'\d', 'ab'])
patterns = st.recursive(
    atoms,
    lambda inner: (
        st.tuples(inner, inner).map(''.join)
        | st.tuples(inner, inner).map(lambda pair: f'(?:{pair[0]}|{pair[1]})')
        | st.tuples(inner, st.sampled_from(['*', '+', '?', '{2}', '{1,3}', '*?'])).map(
            lambda pair: f'(?:{pair[0]}){pair[1]}'
        )
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(patterns, st.text('ab1\n', max_size=6))
def test_as_python_matches_what_nobody_thought_of(pattern, text):
    assert Pattern(pattern).matches(text, Budget(Limits())) is bool(re.fullmatch(pattern, text))


@pytest.mark.parametrize('pattern', ['(a+)+$', '(a|a)*b', '(a|aa)+$', '(?:a?){30}a{30}', '(.*a){12}x'])
def test_patterns_that_never_end_in_python_do_here(pattern):
    assert Pattern(pattern).matches('a' * 200 + '!', Budget(Limits())) is False


@pytest.mark.parametrize(
    'pattern',
    [
        '(',
        '*',
        r'(a)\1',
        '(?<=a)b',
        '(?<!a)b',
        '(a)?(?(1)b|c)',
        '(?m)^a',
        '(?i:a)',
        '(?>a)',
        'a++',
        'a{100000}',
        '((a{200}){200}){200}',
        '(' * 2000 + ')' * 2000,
        'a' * 5000,
        '(?=(?=(?=(?=(?=a)))))a',
        'a{99999999999999999999}',
    ],
)
def test_what_cannot_be_matched_in_linear_time_is_refused(pattern):
    with pytest.raises(BadPattern):
        Pattern(pattern)


def test_even_linear_time_has_a_limit():
    with pytest.raises(RequestLimitExceeded, match='max_steps'):
        Pattern('(?:a*){500}b').matches('a' * 100_000, Budget(Limits(max_steps=100_000)))
