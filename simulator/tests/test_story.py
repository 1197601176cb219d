"""Stories: what people read of a run."""

import pytest
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.runs.report import tell
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import Faults

from simulator.tests.programs import CHAIN, REPLACE, program

CREATION = """\
     0.0 s  user      create_stack chain (sent to engine-1)
     0.0 s  engine-1  commits: new stack chain; new rows: A, B; plans CREATE of chain in 4 nodes; ready: UPDATE A
     0.0 s  broker    check UPDATE A, to worker-1
     0.0 s  worker-1  commits: takes A, fence 1; A is CREATE_IN_PROGRESS
     0.0 s  worker-1  creates A-1 (a: x)
     0.0 s  worker-1  commits: A is CREATE_COMPLETE; A is A-1; releases A; UPDATE A is done; ready: UPDATE B
     0.0 s  broker    check UPDATE B, to worker-1
     0.0 s  worker-1  commits: takes B, fence 1; B is CREATE_IN_PROGRESS
     0.0 s  worker-1  creates B-2 (a: x)
     0.0 s  worker-1  commits: B is CREATE_COMPLETE; B is B-2; releases B; UPDATE B is done; ready: IN_SERVICE
     0.0 s  worker-1  commits: stack chain is CREATE_COMPLETE; its template is the last good one now; IN_SERVICE is done; \
COMPLETE is done"""


def in_order(tmp_path, text):
    verdict, story = tell(program(tmp_path, 'told', text), RunPlan(mode=Mode.ORDER), Choices())
    assert not verdict.error
    return story


def test_a_story_says_who_did_what_to_which_row(tmp_path):
    assert in_order(tmp_path, CHAIN).text() == CREATION


def test_two_rows_of_one_name_are_told_apart(tmp_path):
    text = in_order(tmp_path, REPLACE).text()
    assert 'new rows: A(2); A is replaced; the node of A works on A(2)' in text
    assert 'creates A-2 (!a: y)' in text
    assert text.index('A(2) is CREATE_COMPLETE') < text.index('deletes A-1')
    assert 'removes the row of A; CLEANUP A is done' in text


def test_a_diagram_has_one_arrow_for_each_step_and_declares_everybody(tmp_path):
    story = in_order(tmp_path, CHAIN)
    first, *lines = story.mermaid().splitlines()
    declared = [line.split() for line in lines if line.startswith('    participant')]
    assert first == 'sequenceDiagram'
    assert [words[3] for words in declared] == ['user', 'engine-1', 'broker', 'worker-1', 'rows', 'cloud']
    steps = lines[len(declared) :]
    assert len(steps) == len(story.steps)
    known = {words[1] for words in declared}
    for line in steps:
        ends, _, what = line.strip().partition(': ')
        assert what
        assert ';' not in what
        assert {ends[:2], ends[-2:]} <= known


def test_losses_and_deaths_are_told(tmp_path):
    path = program(tmp_path, 'told', CHAIN)
    faults = Faults(drop=0.3, crash=0.05)
    texts = [tell(path, RunPlan(faults=faults), Choices(seed))[1].text() for seed in range(12)]
    assert any('broker' in text and 'loses check UPDATE A' in text for text in texts)
    assert any('crashes' in text for text in texts)


@pytest.mark.parametrize('seed', [0, 7])
def test_the_same_seed_tells_the_same_story(tmp_path, seed):
    path = program(tmp_path, 'told', REPLACE)
    plan = RunPlan(faults=Faults(0.1, 0.1, 0.02))
    assert tell(path, plan, Choices(seed))[1].steps == tell(path, plan, Choices(seed))[1].steps
