"""docs/failure-modes.rst has every failure mode that a test cites, and names only tests that exist."""

from __future__ import annotations

import ast
import re

from tests.architecture.catalogue import PAGE, SHOWN_BY, citations, entries, renewed
from tests.architecture.source import ROOT

RENEW = 'run: python -m tests.architecture.catalogue'


def test_each_number_that_is_cited_has_one_entry():
    numbers = [number for number, _, _ in entries(PAGE.read_text(encoding='utf-8'))]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == PAGE.read_text(encoding='utf-8').count('\n_`F')
    unknown = {number: paths for number, paths in citations().items() if number not in numbers}
    assert unknown == {}, 'cited, but not in docs/failure-modes.rst'


def test_the_places_in_the_catalogue_are_current():
    text = PAGE.read_text(encoding='utf-8')
    assert text == renewed(text, citations()), RENEW


def test_what_an_entry_names_exists():
    missing = []
    for number, _, text in entries(PAGE.read_text(encoding='utf-8')):
        for name in re.findall(r'``((?:tests|core|db|worker|engine)/[\w/.]+)``', text):
            path = ROOT / name if name.startswith('tests/') else ROOT / 'convergence' / f'{name}.py'
            missing += [] if path.is_file() else [f'{number}: {name}']
    assert missing == []


def test_each_entry_says_what_holds_it():
    """By a test that cites it, or that it names; or because there is nothing here that could go wrong so."""
    text = PAGE.read_text(encoding='utf-8')
    open_ended = [
        number
        for number, _, said in entries(text)
        if SHOWN_BY not in said and '``tests/' not in said and not re.search(r'\bNot here\b|\bAs F\d{3}\b', said)
    ]
    assert open_ended == []


LONG = 'pytest.mark.long'


def of_each_commit(text: str) -> str:
    """Return the text of a test module without its tests that have the mark ``long``; empty if all of them have it."""
    if LONG not in text:
        return text
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and ast.unparse(node).startswith('pytestmark') and LONG in ast.unparse(node):
            return ''
        if isinstance(node, ast.FunctionDef) and LONG in map(ast.unparse, node.decorator_list):
            lines[node.lineno - 1 : node.end_lineno] = [''] * len(lines[node.lineno - 1 : node.end_lineno])
    return '\n'.join(lines)


def test_each_entry_is_proved_with_each_commit():
    """A test with the mark ``long`` may repeat a proof, and may not be the only one."""
    proved: dict[str, bool] = {}
    for number, paths in citations().items():
        texts = (of_each_commit((ROOT / path).read_text(encoding='utf-8')) for path in paths)
        proved[number] = any(re.search(rf'\b{number}\b', text) for text in texts)
    assert [number for number, is_proved in proved.items() if not is_proved] == []


def test_a_test_with_the_mark_is_no_proof():
    marked = f'@{LONG}\ndef test_it():\n    """F001."""\n'
    assert 'F001' not in of_each_commit(marked)
    assert 'F002' in of_each_commit(marked + 'def test_more():\n    """F002."""\n')
    assert of_each_commit(f'pytestmark = {LONG}\ndef test_it():\n    """F001."""\n') == ''


def test_a_place_that_is_gone_is_noticed():
    text = PAGE.read_text(encoding='utf-8')
    cited = citations()
    assert renewed(text, {**cited, 'F001': []}) != text
    assert renewed(renewed(text, {}), cited) == text
