"""A simulator that finds nothing proves nothing: each sabotage of the engine has to be noticed."""

import logging

import pytest
from convergence_simulator.runs.batch import collecting_later

from simulator.tests.mutants import MUTANTS, Edit, Mutant, hunt, sabotaged

IDS = [mutant.name.replace(' ', '-') for mutant in MUTANTS]


@pytest.fixture(autouse=True)
def _quiet():
    """Nobody reads what thousands of simulated processes log, and their garbage can wait."""
    logging.disable(logging.CRITICAL)
    with collecting_later():
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize('mutant', MUTANTS, ids=IDS)
def test_it_is_noticed(mutant):
    assert hunt(mutant) is not None, f'{mutant.name}: nobody noticed'


def test_a_line_that_is_gone_is_an_error():
    gone = Mutant('gone', (Edit('convergence.core.begin:begin', 'no such line', ''),), ())
    with pytest.raises(LookupError, match='no such line'), sabotaged(gone):
        pass


def test_the_engine_is_whole_again_afterwards():
    from convergence.core.begin import begin

    before = begin.__code__
    mutant = next(each for each in MUTANTS if each.edits[0].place == 'convergence.core.begin:begin')
    with sabotaged(mutant):
        assert begin.__code__ is not before
    assert begin.__code__ is before
