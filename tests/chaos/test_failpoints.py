"""Failpoints do what the rules of their directory say."""

from __future__ import annotations

import ast
import json
from dataclasses import asdict
from pathlib import Path

import pytest

import convergence
from convergence.core.claim import Step, StepDecision
from tests.chaos import failpoints
from tests.chaos.failpoints import Do, Failpoints, Injected, Rule
from tests.chaos.operations import OPERATIONS, REQUIRED


class Steps:
    """Somebody who decides."""

    def begin(self):
        """Begin."""
        return lambda: None


DECIDED = Steps().begin()
PLACE = 'Steps.begin'


@pytest.fixture
def deaths():
    """What has died."""
    return []


@pytest.fixture
def points(tmp_path, deaths):
    """Failpoints that only say that this process would die."""
    return Failpoints(tmp_path, lambda: deaths.append('died'))


def rule(directory, *rules):
    """Write rules."""
    (directory / 'rules.json').write_text(json.dumps([asdict(each) for each in rules]))


def test_each_commit_and_each_send_has_a_place_before_and_after_it(tmp_path, points):
    done = []
    points.commit(lambda: done.append('commit'), DECIDED, Step.CREATE)
    points.send(lambda: done.append('send'), 'check_resource')
    assert done == ['commit', 'send']
    assert [line.partition(' ')[2] for line in (tmp_path / 'passed').read_text().splitlines()] == [
        f'before commit of {PLACE}:CREATE',
        f'after commit of {PLACE}:CREATE',
        'before send of check_resource',
        'after send of check_resource',
    ]


def test_a_process_dies_at_the_passing_it_was_told_and_only_once(tmp_path, points, deaths):
    rule(tmp_path, Rule('r', 'after commit of *', Do.KILL, at=2))
    died = []
    for _ in range(4):
        points.commit(lambda: None, DECIDED)
        died.append(len(deaths))
    assert died == [0, 1, 1, 1]
    others = []
    second = Failpoints(tmp_path, lambda: others.append('died'))
    for _ in range(4):
        second.commit(lambda: None, DECIDED)
    assert others == []


def test_a_commit_that_fails_is_not_made(tmp_path, points):
    done = []
    rule(tmp_path, Rule('r', f'before commit of {PLACE}', Do.RAISE))
    with pytest.raises(Injected):
        points.commit(lambda: done.append('commit'), DECIDED)
    assert done == []


@pytest.mark.parametrize(('share', 'sent'), [(1.0, 0), (0.0, 20)])
def test_messages_are_lost_in_the_given_share(tmp_path, points, share, sent):
    done = []
    rule(tmp_path, Rule('r', 'before send of *', Do.LOSE, share=share))
    for _ in range(20):
        points.send(lambda: done.append('send'), 'check_resource')
    assert len(done) == sent


def test_rules_are_read_again_when_they_change(tmp_path, points, deaths):
    points.commit(lambda: None, DECIDED)
    rule(tmp_path, Rule('r', '*', Do.KILL))
    points.commit(lambda: None, DECIDED)
    assert deaths == ['died']
    (tmp_path / 'rules.json').unlink()
    (tmp_path / 'fired' / 'r').unlink()
    points.commit(lambda: None, DECIDED)
    assert deaths == ['died']


def test_a_commit_is_named_after_who_decided_and_what():
    assert failpoints.name_of(DECIDED, None) == PLACE
    assert failpoints.name_of(DECIDED, StepDecision(Step.WAIT, 'stack', 'resource')) == f'{PLACE}:WAIT'
    assert failpoints.name_of(DECIDED, 'anything else') == PLACE


def deciding_methods():
    """The methods of the engine in which a transaction is asked for, or decided: what commits are named after."""
    for path in Path(convergence.__file__).parent.rglob('*.py'):
        for kind in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            for each in kind.body if isinstance(kind, ast.ClassDef) else ():
                inside = list(ast.walk(each)) if isinstance(each, ast.FunctionDef) else []
                asks = any(isinstance(node, ast.Attribute) and node.attr in ('transact', 'write') for node in inside)
                if asks or any(isinstance(node, ast.FunctionDef) and node.name == 'decide' for node in inside):
                    yield f'{kind.name}.{each.name}'


def test_the_places_that_have_to_be_tried_are_called_as_the_engine_calls_them():
    rules = [rule.place.partition(' ')[2] for operation in OPERATIONS for rule in operation.rules]
    named = [
        place.removeprefix('commit of ') for place in (*REQUIRED.values(), *rules) if place.startswith('commit of')
    ]
    assert len(named) > 10
    assert {place.partition(':')[0] for place in named} - set(deciding_methods()) == set()
