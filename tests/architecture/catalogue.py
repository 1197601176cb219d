"""docs/failure-modes.rst, and where its entries are cited. ``python -m tests.architecture.catalogue`` brings the page
up to date: it writes the lines that say by which scenarios and tests an entry is shown.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping

from tests.architecture.source import ROOT

PAGE = ROOT / 'docs' / 'failure-modes.rst'
ENTRY = re.compile(r'^_`(F\d{3}[bc]?)` (\S.*)\n((?:    .*\n|\n(?=    ))+)', re.MULTILINE)
SHOWN_BY = '*Shown by* '
CITED = re.compile(r'\bF\d{3}[bc]?\b')
NO_RULE_OF_OURS = re.compile(r'# (?:ruff: )?noqa:.*')
"""Rules of the linter have numbers of the same kind."""


def citations() -> dict[str, list[str]]:
    """By number of an entry, the Python files of the tests that cite it, from the top of the repository."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / 'tests').rglob('*.py')):
        if path.parent.name == 'architecture':
            continue
        text = NO_RULE_OF_OURS.sub('', path.read_text(encoding='utf-8'))
        for number in sorted(set(CITED.findall(text))):
            found.setdefault(number, []).append(path.relative_to(ROOT).as_posix())
    return found


def entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Number, title and text of each entry."""
    for match in ENTRY.finditer(text):
        yield match[1], match[2], match[3]


def renewed(text: str, cited: Mapping[str, list[str]]) -> str:
    """The page with every line *Shown by* written anew."""

    def entry(match: re.Match[str]) -> str:
        said = match[3].partition(f'\n    {SHOWN_BY}')[0].rstrip('\n')
        shown = _shown_by(cited.get(match[1], []))
        return f'_`{match[1]}` {match[2]}\n{said}\n' + (f'\n{shown}\n' if shown else '')

    return ENTRY.sub(entry, text)


def _shown_by(paths: list[str]) -> str:
    scenarios = [path for path in paths if path.startswith('tests/scenarios/')]
    # A scenario is known by its name, as in ``convergence-simulate tests/scenarios/NAME.py``.
    names = [path.removeprefix('tests/scenarios/').removesuffix('.py') for path in scenarios]
    names += [path for path in paths if path not in scenarios]
    if not names:
        return ''
    text = SHOWN_BY + ', '.join(f'``{name}``' for name in names)
    return textwrap.fill(
        text, 118, initial_indent='    ', subsequent_indent='    ', break_long_words=False, break_on_hyphens=False
    )


if __name__ == '__main__':
    PAGE.write_text(renewed(PAGE.read_text(encoding='utf-8'), citations()), encoding='utf-8')
