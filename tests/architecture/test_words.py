"""Plain words: the forms that the glossary forbids become fewer in each room, and never more."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.architecture import words
from tests.architecture.source import ROOT, Source


def over(counts: Counter[str]) -> list[str]:
    """The rooms with too many findings. Files may move between rooms that are not clean yet."""
    grown = [name for name, count in counts.items() if count > words.CEILINGS.get(name, 0)]
    if counts.total() <= sum(words.CEILINGS.values()):
        grown = [name for name in grown if words.CEILINGS.get(name) == 0]
    return sorted(grown)


def test_no_room_has_more_forbidden_words_than_its_ceiling():
    grown = over(words.counts())
    lines = [str(each) for each in words.everything() if words.room(each.name) in grown]
    assert grown == [], (
        '\n'.join(lines[:200])
        + '\nUse the words of docs/glossary.rst; python -m tests.architecture.words PATH lists a room.'
    )


def test_a_clean_room_stays_clean(monkeypatch):
    monkeypatch.setattr(words, 'CEILINGS', {'clean': 0, 'one': 3, 'other': 2})
    assert over(Counter(one=5)) == []
    assert over(Counter(one=6)) == ['one']
    assert over(Counter(clean=1)) == ['clean']
    assert over(Counter(new=4)) == []


def test_each_room_of_the_table_is_there():
    assert [name for name in words.CEILINGS if not (ROOT / name).exists()] == []


def source(text: str) -> Source:
    return Source(ROOT / 'made_up.py', text, ast.parse(text))


@pytest.mark.parametrize(
    ('text', 'found'),
    [
        ('"""Nobody is here."""', ['Nobody']),
        ('"""What a thing is."""', ['begins with "What"']),
        ('"""The node waits\n    and nobody comes."""', ['nobody']),
        ('x = 1  # whoever reads this', ['whoever']),
        ("x = '# whoever'", []),
        ("LOG.warning('This worker stops: %s', x)", ['begins with "This worker"']),
        ("option('x', help='Which of them')", ['begins with "Which"']),
        ("raise ValueError(f'{name} is told')", ['is told']),
        ('"""``nobody`` is a name."""', []),
        ('"""The state.\\n\\n:param wanted: as far as it is known."""', []),
        ("KEYS = 'nobody'", []),
        ('"""The worker foretells it, as  it is."""', ['as it is', 'foretells']),
    ],
)
def test_forms_are_found_in_code(text, found):
    assert sorted(each.said for part in words.texts_of_source(source(text)) for each in words._in_text('x', part)) == (
        sorted(found)
    )


def test_literal_blocks_of_documents_are_skipped():
    page = 'Nobody is here::\n\n    nobody\n\nand nobody there.\n'
    found = [each for part in words.texts_of_document(page) for each in words._in_text('x', part)]
    assert [(each.line, each.said) for each in found] == [(1, 'Nobody'), (5, 'nobody')]


def test_the_glossary_lists_forms():
    assert {'nobody', 'is told', 'in hand'} <= set(words.avoided())
    assert words.avoided_pattern().search('what  IS it') is not None
