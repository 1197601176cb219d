"""``convergence template``: the group of commands, and ``validate``, ``schema``, ``versions``, ``functions``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from convergence import errors
from convergence import template as language
from convergence.cli import problems
from convergence.cli.template import authoring
from convergence.cli.template.files import load
from convergence.cli.template.installed import given, installed_types, template_checker, unreadable
from convergence.resources.catalog import RegistryCatalog
from convergence.template.authoring import json_schema
from convergence.template.authoring.check import Findings, TemplateChecker
from convergence.template.authoring.json_schema import language_versions, meaning
from convergence.template.versions import VERSIONS

_FORMAT = click.option(
    '--format', 'form', type=click.Choice(['text', 'json']), default='text', show_default=True, help='Output format.'
)


@click.group()
def template() -> None:
    """Check, format and draw templates. Needs no server."""


for _command in authoring.COMMANDS:
    template.add_command(_command)


@template.command()
@authoring.FILES
@authoring.ENVIRONMENTS
@click.option(
    '-P',
    '--parameter',
    'parameters',
    multiple=True,
    metavar='NAME=VALUE',
    help='Value of a parameter. May be repeated; wins over environments.',
)
@click.option('--require-parameters', is_flag=True, help='Report parameters without value and default as errors.')
@click.option(
    '--ignore-unknown-types',
    is_flag=True,
    help='Report resource types that are not installed, and constraints of missing services, as warnings.',
)
@_FORMAT
def validate(
    files: Sequence[str],
    environments: Sequence[str],
    parameters: Sequence[str],
    require_parameters: bool,
    ignore_unknown_types: bool,
    form: str,
) -> None:
    """Check templates against the language and the installed resource types.

    Prints each problem with file, line and column. Reads the files that templates name in get_file, in the types of
    resources and in the resource_registry of an environment. Paths are relative to the file that names them. FILE may
    be "-" for standard input.

    \b
    Exit codes:
      0  the templates are valid (there may be warnings)
      1  a template has errors
      2  wrong command line, or unreadable FILE
    """
    checker = template_checker(
        given(parameters),
        language.Require.ALL if require_parameters else language.Require.NONE,
        ignore_unknown_types=ignore_unknown_types,
        tolerant=ignore_unknown_types,
    )
    findings = [_checked(checker, name, environments) for name in files]
    if form == 'json':
        click.echo(problems.as_json(findings))
    else:
        problems.as_text(Console(highlight=False), findings)
    if any(each.errors for each in findings):
        click.get_current_context().exit(1)


@template.command()
@click.option(
    '-o', '--output', type=click.Path(dir_okay=False, path_type=Path), help='File to write.  [default: standard output]'
)
def schema(output: Path | None) -> None:
    """Print a JSON Schema of templates, for editors.

    The schema describes the sections and functions of the language and the properties of the installed resource types.
    Editors complete names and mark mistakes with it. `convergence template validate` checks more.
    """
    text = json.dumps(json_schema.schema(RegistryCatalog(installed_types())), indent=2, ensure_ascii=False) + '\n'
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding='utf-8')
    except OSError as error:
        raise unreadable(str(output), error) from None


@template.command()
@_FORMAT
def versions(form: str) -> None:
    """List the versions of the language."""
    listed = [
        {
            'key': version.key,
            'version': version.date,
            'alias': version.alias,
            'functions': sorted(version.functions),
            'condition_functions': sorted(version.conditions),
        }
        for version in language_versions()
    ]
    if form == 'json':
        click.echo(json.dumps(listed, indent=2))
    else:
        rows = [(version.key, version.date, version.alias or '') for version in language_versions()]
        _print_table(('key', 'version', 'alias'), rows)


@template.command()
@click.argument('version', required=False)
@_FORMAT
def functions(version: str | None, form: str) -> None:
    """List the functions of a version of the language.

    VERSION is a date or the name of a release from `convergence template versions`. The default is the newest one.
    """
    known = {name: each for each in language_versions() for name in (each.date, each.alias) if name}
    chosen = known.get(version) if version else list(VERSIONS.values())[-1]
    if chosen is None:
        raise click.BadParameter(f'unknown version {version}; use one of {", ".join(known)}', param_hint="'VERSION'")
    listed = [
        {
            'function': name,
            'in_conditions': name in chosen.conditions,
            'only_in_conditions': name not in chosen.functions,
            'description': meaning(function),
        }
        for name, function in sorted({**chosen.conditions, **chosen.functions}.items())
    ]
    if form == 'json':
        click.echo(json.dumps(listed, indent=2))
        return
    rows = [(str(each['function']), _where(each), str(each['description'])) for each in listed]
    _print_table(('function', 'where', 'meaning'), rows)


def _where(listed: Mapping[str, object]) -> str:
    if listed['only_in_conditions']:
        return 'conditions'
    return 'values, conditions' if listed['in_conditions'] else 'values'


def _checked(checker: TemplateChecker, name: str, environments: Sequence[str]) -> Findings:
    try:
        return checker.check(load(name, environments, checker.installation.limits))
    except OSError as error:
        raise unreadable(str(error.filename or name), error) from None
    except errors.StackValidationFailed as error:
        return Findings(name, None, error.problems)


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in heads:
        table.add_column(head, overflow='fold')
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
