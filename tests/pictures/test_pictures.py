"""The pictures of the documentation are what the code would draw now."""

from __future__ import annotations

import re
from itertools import chain
from xml.etree import ElementTree

import pytest

from convergence.core import states
from tests.architecture.source import ROOT
from tests.architecture.test_repository import entry_points
from tests.pictures.architecture import architecture
from tests.pictures.gallery import FOLDER, pictures
from tests.pictures.states import picture, transitions

SVG = '{http://www.w3.org/2000/svg}'


def test_all_pictures_are_current():
    drawn = pictures()
    kept = {path.stem: path.read_text(encoding='utf-8') for path in FOLDER.glob('*.svg')}
    assert sorted(kept) == sorted(drawn)
    stale = [name for name, svg in drawn.items() if kept[name] != svg]
    assert stale == [], 'run: python -m tests.pictures'


def test_all_pictures_are_shown_somewhere():
    pages = chain(ROOT.glob('*.rst'), (ROOT / 'docs').rglob('*.rst'))
    shown = {name for page in pages for name in re.findall(r'pictures/([\w-]+)\.svg', page.read_text(encoding='utf-8'))}
    assert shown == {path.stem for path in FOLDER.glob('*.svg')}


@pytest.mark.parametrize('path', sorted(FOLDER.glob('*.svg')), ids=lambda path: path.stem)
def test_a_picture_fits_its_frame_and_says_what_it_shows(path):
    tree = ElementTree.fromstring(path.read_text(encoding='utf-8'))
    width, height = int(tree.attrib['width']), int(tree.attrib['height'])
    assert (tree.findtext(f'{SVG}title') or '').strip()
    for each in tree.iter(f'{SVG}rect'):
        x, y, across, down = (float(each.attrib[name]) for name in ('x', 'y', 'width', 'height'))
        assert min(x, y) >= 0 and x + across <= width and y + down <= height, each.attrib
    for text in tree.iter(f'{SVG}text'):
        assert 0 <= float(text.attrib['x']) <= width and 0 <= float(text.attrib['y']) <= height, text.text


@pytest.mark.parametrize('table', [states.STACK, states.RESOURCE], ids=['stack', 'resource'])
def test_a_picture_of_states_has_every_transition(table):
    tree = ElementTree.fromstring(picture(table, 'states', {}))
    texts = [text.text or '' for text in tree.iter(f'{SVG}text')]
    words = sum(len(text.removeprefix('next: ').split(', ')) for text in texts if text.startswith('next: '))
    arrows = sum('marker-end' in path.attrib for path in tree.iter(f'{SVG}path'))
    assert words + arrows == len(transitions(table))


def test_the_programs_in_the_picture_are_those_that_are_installed():
    installed = {line.partition(': ')[2].partition(' = ')[0] for line in entry_points() if 'console' in line}
    assert set(re.findall(r'convergence-\w+', architecture())) <= installed
