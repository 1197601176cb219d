"""The distributions of this repository: their types are visible to others, and no text installs a stranger's package.

On the package index the names in `STRANGERS` belong to other projects.
"""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.architecture.test_repository import tracked

STRANGERS = ('convergence', 'convergence-api', 'convergence-core')
FOLDERS = (ROOT, ROOT / 'simulator', *sorted(path.parent for path in ROOT.glob('plugins/*/setup.cfg')))

# A command that installs something, up to the end of the line; and a requirement, with extras or with a version.
COMMAND = re.compile(r'\bpip3?\s+install\b([^\n]*)|\buv (?:pip install|add)\b([^\n]*)')
NAMED = re.compile(r'(?<![\w./:-])(convergence(?:[-_]\w+)*)(?![\w./-])')
REQUIREMENT = re.compile(r'(?<![\w./-])(convergence(?:-\w+)*)(?:\[[a-z]+(?:, ?[a-z]+)*\]|\s?[<>=~!]=\s?\d)')


def declared(folder: Path) -> configparser.ConfigParser:
    """What the setup.cfg of a distribution says."""
    parser = configparser.ConfigParser(delimiters=('=',))
    parser.optionxform = str
    parser.read(folder / 'setup.cfg')
    return parser


OWN = {declared(folder)['metadata']['name'] for folder in FOLDERS}


def installed_by(text: str) -> set[str]:
    """Names like that of this project that a text installs or requires."""
    commands = ' '.join(part for match in COMMAND.findall(text) for part in match)
    return {*NAMED.findall(commands), *REQUIREMENT.findall(text)}


def test_the_distributions_have_names_of_their_own():
    assert len(OWN) == len(FOLDERS)
    assert OWN.isdisjoint(STRANGERS)


@pytest.mark.parametrize(
    'text',
    [
        'pip install convergence',
        "python -m pip install 'convergence[postgresql]'",
        'Install the driver with ``convergence[mysql]``.',
        '    convergence>=0.1',
        'pip install -c constraints.txt convergence-api',
        'convergence-core>=1,<2',
    ],
)
def test_a_package_of_a_stranger_is_noticed(text):
    assert installed_by(text) & set(STRANGERS)


@pytest.mark.parametrize(
    'text',
    [
        'pip install convergence-orchestration[lsp]',
        "pip install ./plugins/heat '.[heat]'",
        'convergence-heat[classes]>=0.1,<0.2',
        'import convergence',
        'python -m pip install --editable . --editable ./simulator',
    ],
)
def test_packages_of_this_repository_are_accepted(text):
    assert installed_by(text) <= OWN


def test_no_text_installs_the_package_of_a_stranger():
    texts = {name: (ROOT / name).read_text(encoding='utf-8', errors='replace') for name in tracked()}
    del texts[Path(__file__).relative_to(ROOT).as_posix()]
    found = {name: installed_by(text) - OWN for name, text in texts.items()}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize('folder', FOLDERS, ids=lambda folder: folder.name)
def test_type_checkers_read_the_annotations_of_a_distribution(folder):
    """Without the marker py.typed in the wheel, mypy takes everything imported from a distribution for `Any`."""
    setup = declared(folder)
    data = setup['options.package_data']
    packages = [name for name in data if (folder / name / 'py.typed').is_file()]
    assert packages and all('py.typed' in data[name].replace(' ', '').split(',') for name in packages)
    assert 'Typing :: Typed' in setup['metadata']['classifiers']
