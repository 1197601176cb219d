"""docs/how-it-works.rst tells what the simulator produces now."""

from simulator.tests.document import DOCUMENT, PLACE, SCENARIO, renewed


def test_the_stories_in_the_document_are_current():
    text = DOCUMENT.read_text(encoding='utf-8')
    assert text == renewed(text), 'run: python -m simulator.tests.document'


def test_the_document_has_what_it_is_to_show():
    text = DOCUMENT.read_text(encoding='utf-8')
    assert len(SCENARIO.findall(text)) >= 7
    assert len(PLACE.findall(text)) >= 6


def test_a_stale_story_is_noticed():
    text = DOCUMENT.read_text(encoding='utf-8')
    assert 'takes B, fence 1' in text
    stale = text.replace('takes B, fence 1', 'takes B, fence 7')
    assert renewed(stale) == text
