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


NOTATION = (
    *'ab0-_ ]}|(){}[^$.*+?,\\',
    *(
        '(?:',
        '(?=',
        '(?!',
        '(?i)',
        '(?s)',
        '(?P<n>',
        '(?#c)',
        '{2}',
        '{1,}',
        '{,2}',
        '{2,1}',
        '[^',
        '[a-c]',
        '[]',
        'a-c',
    ),
    *(
        r'\d',
        r'\W',
        r'\s',
        r'\b',
        r'\B',
        r'\A',
        r'\Z',
        r'\n',
        r'\.',
        r'\-',
        r'\0',
        r'\07',
        r'\101',
        r'\777',
        r'\x41',
        r'\x4',
    ),
    *(
        r'\u00e9',
        r'\U0001f600',
        r'\U00110000',
        r'\N{DIGIT ONE}',
        r'\N{none}',
        r'\N',
        r'\q',
        r'\é',
        r'\]',
        '**',
        '+?',
        'é',
    ),
)
"""Parts of patterns: every construct that is accepted, and mistakes in it."""
REFUSED_BY_DESIGN = ('cannot be used', 'can be used', 'too much', 'too deeply')


@settings(max_examples=15 * settings.default.max_examples, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(NOTATION), max_size=8).map(''.join), st.lists(st.text('ab0 -]\n', max_size=3), max_size=3)
)
@pytest.mark.filterwarnings('ignore::FutureWarning')
def test_the_notation_is_that_of_python(pattern, texts):
    try:
        theirs = re.compile(pattern)
    except (re.error, OverflowError):
        with pytest.raises(BadPattern):
            Pattern(pattern)
        return
    try:
        mine = Pattern(pattern)
    except BadPattern as error:
        assert str(error).endswith(REFUSED_BY_DESIGN), pattern
        return
    for text in ('', 'a', 'ab', *texts):
        if not text and r'\B' in pattern:
            continue  # \B matches the empty text only since Python 3.14, and here.
        assert mine.matches(text, Budget(Limits())) is bool(theirs.fullmatch(text)), (pattern, text)


@pytest.mark.parametrize(
    'pattern',
    [
        *(
            '{',
            'a{',
            'a{}',
            'a{x}',
            '{x',
            'a{1',
            'a{1,2',
            ']',
            '}',
            '[]a]',
            '[^]a]',
            '[a-]',
            '[-a]',
            r'[\d-]',
            r'[\]-a]',
        ),
        *('(?i)(?s)a', '(?#c)(?i)a', 'a(?#c)*', '(?:)*', '()*', '(?=a)*', '(?:^)*', '(?:a*)*', '|', 'a||b', '(|a)'),
        *(
            r'\0',
            r'\012',
            r'\101',
            r'[\101]',
            r'[\b]',
            r'\x41',
            r'\N{DIGIT ONE}',
            r'\%',
            r'\ä',
            '(?isu)a',
            '(?P<a>b)(?P<c>d)',
        ),
    ],
)
@pytest.mark.filterwarnings('ignore::FutureWarning')
def test_unusual_notation_is_accepted(pattern):
    theirs, mine = re.compile(pattern), Pattern(pattern)
    for text in ('', 'a', 'b', '{', 'a{', 'a{}', 'aa', ']', '-', '1', 'A', '\n', '\0', '\b', '%', 'bd', 'ä'):
        assert mine.matches(text, Budget(Limits())) is bool(theirs.fullmatch(text)), (pattern, text)


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
