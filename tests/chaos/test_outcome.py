"""What the exit code of ``make chaos`` says."""

from __future__ import annotations

import logging

import pytest

from tests.chaos import __main__ as chaos
from tests.chaos import clusters
from tests.chaos.installation import Broken
from tests.chaos.servers import CannotStart, Unavailable


@pytest.fixture(autouse=True)
def outside(monkeypatch, tmp_path):
    """What a run changes of its process stays with it."""
    monkeypatch.setattr(chaos.tempfile, 'mkdtemp', lambda **_: str(tmp_path))
    monkeypatch.setattr(chaos.shutil, 'rmtree', lambda *_, **__: None)
    monkeypatch.setattr(chaos.signal, 'signal', lambda *_: None)
    monkeypatch.setattr(chaos.SERVICES, 'close', lambda: None)
    yield
    logging.disable(logging.NOTSET)


def run(monkeypatch: pytest.MonkeyPatch, error: Exception) -> int:
    """A run whose only cluster raises something."""

    def part(directory: object, say: object) -> clusters.Found:
        raise error

    monkeypatch.setattr(clusters, 'PARTS', {'mariadb': (part,)})
    return chaos.main(['--only', 'clusters', '--database', 'mariadb'])


def test_a_cluster_whose_programs_are_missing_is_skipped_and_that_is_said(monkeypatch, capsys):
    assert run(monkeypatch, Unavailable('galera-4 is not installed')) == 0
    assert 'SKIPPED' in capsys.readouterr().err


@pytest.mark.parametrize(
    'error', [CannotStart('mariadbd does not start'), Broken('the trouble itself: the server does not come back')]
)
def test_a_cluster_that_does_not_start_although_its_programs_are_there_has_failed(monkeypatch, capsys, error):
    assert run(monkeypatch, error) == 1
    shown = capsys.readouterr()
    assert 'DID NOT HOLD' in shown.out
    assert 'SKIPPED' not in shown.err


def test_a_server_that_is_killed_and_does_not_come_back_fails_the_round():
    def trouble() -> None:
        raise CannotStart('it does not join the others')

    with pytest.raises(Broken, match='does not join'), clusters._beside(trouble):
        pass
