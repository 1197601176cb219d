"""Probable mistakes in templates are reported by the commands that send them, and by the check without a server."""

import json

from click.testing import CliRunner

from convergence.cli.submission import request_body
from convergence.cli.template.commands import template

TEXT = 'heat_template_version: 2018-08-31\noutputs:\n  o:\n    value: {get_parm: x}\n'
GIVEN = {'environments': (), 'parameters': (), 'parameter_files': ()}


def test_who_sends_a_template_is_warned(tmp_path, capsys):
    path = tmp_path / 'web.yaml'
    path.write_text(TEXT)
    assert request_body(str(path), GIVEN)['template'] == TEXT
    said = capsys.readouterr()
    assert f'{path}:4:13: warning: get_parm is no function' in said.err and 'Did you mean "get_param"?' in said.err
    assert said.out == ''


def test_warnings_are_told_beside_errors(tmp_path):
    path = tmp_path / 'web.yaml'
    path.write_text(f'{TEXT}  p: {{value: {{get_param: 5}}}}\n')
    document = json.loads(CliRunner().invoke(template, ['validate', '--format', 'json', str(path)]).stdout)
    assert [len(document[name]) for name in ('errors', 'warnings')] == [1, 1]
