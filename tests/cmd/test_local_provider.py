"""Whether a process lets templates run programs, and what it says of it."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace

import pytest

from convergence.cmd.wiring.parts import registry
from convergence.config import ApiSettings
from convergence.errors import ConfigurationError
from tests.api.installation import settings

PROCESS = 'Convergence::Local::Process'


def test_each_start_says_as_which_user_programs_run_and_which(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        assert PROCESS in registry(settings(tmp_path))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    for part in (f'uid {os.geteuid()}', sys.executable, str(tmp_path / 'local')):
        assert part in record.message


def test_what_is_disabled_is_neither_there_nor_spoken_of(tmp_path, caplog):
    made = settings(tmp_path)
    assert PROCESS not in registry(replace(made, local_provider=replace(made.local_provider, enabled=False)))
    assert caplog.records == []


def test_with_keystone_it_is_refused_unless_the_operator_says_that_too(tmp_path):
    made = replace(settings(tmp_path), api=ApiSettings(authentication='keystone'))
    with pytest.raises(ConfigurationError, match='allow_with_keystone'):
        registry(made)
    allowed = replace(made, local_provider=replace(made.local_provider, allow_with_keystone=True))
    assert PROCESS in registry(allowed)
