"""docs/how-it-works.rst tells what the simulator produces now."""

from convergence.core import states
from tests.simulation_tools.document import DOCUMENT, PLACE, SCENARIO, SHOWN, renewed, state_diagram


def test_the_stories_and_diagrams_in_the_document_are_current():
    text = DOCUMENT.read_text(encoding='utf-8')
    assert text == renewed(text), 'run: python -m tests.simulation_tools.document'


def test_the_document_has_what_it_is_to_show():
    text = DOCUMENT.read_text(encoding='utf-8')
    assert len(SCENARIO.findall(text)) >= 6
    kinds = [kind for kind, _ in PLACE.findall(text)]
    assert kinds.count('story') >= 6
    assert kinds.count('diagram') >= 2
    assert kinds.count('states') == 2


def test_a_stale_story_is_noticed():
    text = DOCUMENT.read_text(encoding='utf-8')
    assert 'takes B, fence 1' in text
    stale = text.replace('takes B, fence 1', 'takes B, fence 7')
    assert renewed(stale) == text


def test_a_state_diagram_has_every_transition_of_the_actions_that_it_shows():
    lines = state_diagram(states.RESOURCE).splitlines()
    assert lines[0] == 'stateDiagram-v2'
    assert '    INIT_COMPLETE --> CREATE_IN_PROGRESS' in lines
    shown = [(state, each) for state, following in states.RESOURCE.items() for each in following]
    assert len(lines) == 1 + sum({before[0], after[0]} <= SHOWN for before, after in shown)
    assert not any('SUSPEND' in line for line in lines)
