"""A foreign template sends no file of its user without confirmation."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from convergence.cli.exits import Refused
from convergence.cli.submission import request_body
from convergence.cli.template.files import load
from convergence.template.limits import Limits

GIVEN = {'environments': (), 'parameters': (), 'parameter_files': ()}
TEMPLATE = 'heat_template_version: 2018-08-31\noutputs:\n  o: {{value: {{get_file: "{name}"}}}}\n'


@pytest.fixture
def place(tmp_path):
    """A secret, and beside it a directory with a template."""
    (tmp_path / 'secret').write_text('canary')
    directory = tmp_path / 'from-somebody'
    directory.mkdir()
    (directory / 'inside').write_text('inside')
    return directory


def template(place, name: str) -> str:
    path = place / 'template.yaml'
    path.write_text(TEMPLATE.format(name=name))
    return str(path)


def outside_names(place):
    (place / 'link').symlink_to(place.parent / 'secret')
    return ['../secret', f'file://{place.parent}/secret', f'{place.parent}/secret', 'link', 'x/../../secret']


def test_a_file_outside_is_not_sent_unless_somebody_says_so(place, capsys):
    (place / 'x').mkdir()
    for name in outside_names(place):
        with pytest.raises(Refused, match='--allow-files-outside'):
            request_body(template(place, name), GIVEN)
        assert f'{place.parent}/secret' in capsys.readouterr().err
        sent = request_body(template(place, name), {**GIVEN, 'allow_files_outside': True})
        assert list(sent['files'].values()) == ['canary']


def test_on_a_terminal_it_is_asked(place, monkeypatch):
    monkeypatch.setattr(sys.stdin, 'isatty', lambda: True, raising=False)
    monkeypatch.setattr(click, 'confirm', lambda *args, **more: True)
    assert request_body(template(place, '../secret'), GIVEN)['files'] == {'../secret': 'canary'}

    def no(*args, abort, **more):
        assert abort
        raise click.Abort

    monkeypatch.setattr(click, 'confirm', no)
    with pytest.raises(click.Abort):
        request_body(template(place, '../secret'), GIVEN)


@pytest.mark.parametrize('name', ['inside', './inside', '../from-somebody/inside'])
def test_a_file_of_the_directory_is_sent_without_a_word(place, name, capsys):
    assert list(request_body(template(place, name), GIVEN)['files'].values()) == ['inside']
    assert capsys.readouterr().err == ''


def test_the_directory_of_an_environment_that_the_user_names_counts_too(place, tmp_path):
    other = tmp_path / 'environments'
    other.mkdir()
    (other / 'web.yaml').write_text(TEMPLATE.format(name='../secret'))
    (other / 'e.yaml').write_text('resource_registry: {My::Web: web.yaml}\n')
    bundle = load(template(place, 'inside'), [str(other / 'e.yaml')], Limits())
    assert [Path(each).name for each in bundle.outside] == ['secret']
