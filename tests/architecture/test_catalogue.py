"""docs/failure-modes.rst has every failure mode that a test cites, and names only tests that exist."""

from __future__ import annotations

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


def test_a_place_that_is_gone_is_noticed():
    text = PAGE.read_text(encoding='utf-8')
    cited = citations()
    assert renewed(text, {**cited, 'F001': []}) != text
    assert renewed(renewed(text, {}), cited) == text
