"""The table in tests/scenarios/README.rst names what exists, and the scenarios tell the same."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROW = re.compile(r'^(F\d{3}) {3}(.{58}) {2}(\S.*)$', re.MULTILINE)


def table() -> dict[str, list[str]]:
    text = (TESTS / 'scenarios' / 'README.rst').read_text(encoding='utf-8')
    return {number: shown.split(', ') for number, _, shown in ROW.findall(text)}


def test_everything_it_names_exists():
    assert len(table()) > 50
    for names in table().values():
        for name in names:
            path = TESTS / (f'{name}.py' if '/' in name else f'scenarios/{name}.py')
            assert path.is_file(), name


def test_what_it_names_says_so_itself():
    for number, names in table().items():
        files = [TESTS / (f'{name}.py' if '/' in name else f'scenarios/{name}.py') for name in names]
        assert any(number in file.read_text(encoding='utf-8') for file in files), number
