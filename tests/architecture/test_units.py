"""The units for systemd: what they allow, as systemd itself judges it."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / 'etc' / 'convergence').glob('*.service'))
BELOW = 3.0
"""What systemd-analyze calls OK begins here."""


def service(path: Path) -> dict[str, str]:
    """The section of a unit that says how it is run. What stands twice is joined."""

    class Joined(dict):
        def __setitem__(self, key, value):
            both = isinstance(value, list) and key in self
            super().__setitem__(key, self[key] + value if both else value)

    parser = configparser.RawConfigParser(strict=False, dict_type=Joined, delimiters=('=',))
    parser.optionxform = str
    parser.read_string(path.read_text(encoding='utf-8'))
    return dict(parser['Service'])


@pytest.mark.parametrize('path', UNITS, ids=lambda path: path.name)
def test_systemd_finds_little_to_attack(path):
    if shutil.which('systemd-analyze') is None:
        pytest.skip('systemd-analyze is not installed')
    asked = subprocess.run(
        ['systemd-analyze', 'security', '--offline=yes', '--no-pager', str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if 'unrecognized option' in asked.stderr:
        pytest.skip('this version of systemd cannot look at a file')
    found = re.search(r'Overall exposure level for \S+: (\d+\.\d+)', asked.stdout)
    assert found is not None, asked.stdout + asked.stderr
    assert float(found[1]) < BELOW, asked.stdout


@pytest.mark.parametrize('path', UNITS, ids=lambda path: path.name)
def test_memory_and_tasks_are_limited_and_keys_are_credentials(path):
    unit = service(path)
    assert re.fullmatch(r'\d+[GM]', unit['MemoryMax']) and int(unit['TasksMax']) > 0
    assert unit['User'] == 'convergence' and unit['UMask'] == '0077'
    has_database = 'api' not in path.name
    assert ('LoadCredential' in unit) is has_database
    if has_database:
        assert unit['LoadCredential'].partition(':')[0] == 'keys'
        assert unit['Environment'] == 'OS_SECRETS__KEY_FILE=%d/keys'


def test_the_keys_of_a_credential_are_used(tmp_path, monkeypatch):
    """The variable of the units is one that the configuration really reads."""
    from oslo_config import cfg

    from convergence import config

    monkeypatch.setenv('OS_SECRETS__KEY_FILE', str(tmp_path / 'keys'))
    made = config.load([], process='p', conf=cfg.ConfigOpts(), config_files=[])
    assert made.secrets.key_file == tmp_path / 'keys'
