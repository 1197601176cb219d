"""docs/glossary.rst: each word once, in order, and all words that the engine has for what users see."""

from __future__ import annotations

import re

from convergence.core.model import Action, Phase
from tests.architecture.source import ROOT

TEXT = (ROOT / 'docs' / 'glossary.rst').read_text(encoding='utf-8')
TERM = re.compile(r'^([a-z][a-z ]*)\n((?:    .+\n)+)', re.MULTILINE)


def terms() -> dict[str, str]:
    """What each word means."""
    return {term: ' '.join(meaning.split()) for term, meaning in TERM.findall(TEXT)}


def test_each_word_is_there_once_and_in_order():
    words = [term for term, _ in TERM.findall(TEXT)]
    assert len(words) > 40
    assert words == sorted(set(words))


def test_all_actions_and_phases_are_explained():
    assert [action for action in Action if not re.search(rf'\b{action.lower()}\b', terms()['action'])] == []
    spoken = [phase.lower().replace('_', ' ') for phase in Phase]
    assert [phase for phase in spoken if phase not in terms()['node']] == []


def test_the_words_that_the_introduction_stresses_are_explained():
    """It says so: words in italics are in the glossary."""
    page = (ROOT / 'docs' / 'how-it-works.rst').read_text(encoding='utf-8')
    stressed = set(re.findall(r'(?<![*\w])\*([a-z][a-z ]+)\*(?!\*)', page)) - {'italics'}
    known = set(terms())
    unknown = {word for word in stressed if not {word, word.removesuffix('s'), word.removesuffix('d')} & known}
    assert unknown == set()
