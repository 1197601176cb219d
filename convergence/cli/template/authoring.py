"""``convergence template format``, ``lint``, ``graph`` and ``serve-lsp``."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from convergence import drawing, errors
from convergence import template as language
from convergence.cli.exits import CommandFailed, ExitCode, UsageMistake
from convergence.cli.graph_text import graph_lines
from convergence.cli.output import say
from convergence.cli.problems import as_text
from convergence.cli.template import lint_report
from convergence.cli.template.files import STANDARD_INPUT, load
from convergence.cli.template.installed import given, installed_types, template_checker, unreadable
from convergence.resources.implied import ask_for_implied, with_implied
from convergence.template.authoring.check import Findings, TemplateChecker
from convergence.template.authoring.formatting import Unformattable, formatted
from convergence.template.authoring.lint import RULES, LintResult, lint_bundle

FILES = click.argument(
    'files', nargs=-1, required=True, metavar='FILE...', type=click.Path(exists=True, allow_dash=True, dir_okay=False)
)
ENVIRONMENTS = click.option(
    '-e',
    '--environment',
    'environments',
    multiple=True,
    metavar='FILE',
    type=click.Path(exists=True, dir_okay=False),
    help='Environment file. May be repeated; later files win.',
)
_UNKNOWN_TYPES = click.option(
    '--ignore-unknown-types', is_flag=True, help='Report resource types that are not installed as warnings.'
)


# --- format ---------------------------------------------------------------------------------------------------


@click.command('format')
@FILES
@click.option('--check', is_flag=True, help='Change no file. The exit code is 1 if a file is not formatted.')
@click.option('--diff', is_flag=True, help='Change no file, and print the differences.')
def format_(files: Sequence[str], check: bool, diff: bool) -> int:
    """Format templates and environments: two spaces per level, one space between values, one empty line at most.

    Comments, quotes, lines and the order of keys stay the same. The command verifies that the content is unchanged.
    FILE may be "-": standard input is written to standard output.

    \b
    Exit codes:
      0  done
      1  a file is not formatted (with --check or --diff), or cannot be formatted
      2  wrong command line, or unreadable FILE
    """
    changed, failed = [], []
    for name in files:
        try:
            before, after = _laid_out(name)
        except (errors.StackValidationFailed, Unformattable) as error:
            _tell(name, error)
            failed.append(name)
            continue
        if name == STANDARD_INPUT and not (check or diff):
            click.echo(after, nl=False)
        elif before != after:
            changed.append(name)
            if diff:
                lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm='')
                say('\n'.join(lines))
            elif check:
                click.echo(f'{name} is not formatted.', err=True)
            else:
                _replace(Path(name), after)
                click.echo(f'{name} is formatted.', err=True)
    return ExitCode.FAILED if failed or (changed and (check or diff)) else ExitCode.OK


def _laid_out(name: str) -> tuple[str, str]:
    try:
        with click.open_file(name, encoding='utf-8') as file:
            text = str(file.read())
    except OSError as error:
        raise unreadable(name, error) from None
    except UnicodeDecodeError:
        raise UsageMistake(f'{name} is not UTF-8 text.') from None
    return text, formatted(text, name)


def _tell(name: str, error: errors.ConvergenceError) -> None:
    if isinstance(error, errors.StackValidationFailed):
        as_text(Console(stderr=True, highlight=False), [Findings(name, None, error.problems)])
    else:
        click.echo(f'convergence: {error}', err=True)


def _replace(path: Path, text: str) -> None:
    """Write a file atomically."""
    place = path.resolve()
    try:
        handle, unfinished = tempfile.mkstemp(dir=place.parent, prefix=f'.{place.name}.')
        try:
            with os.fdopen(handle, 'w', encoding='utf-8') as file:
                file.write(text)
            shutil.copymode(place, unfinished)
            os.replace(unfinished, place)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError as error:
        raise CommandFailed(f'{path} cannot be written: {error.strerror}') from None


# --- lint -----------------------------------------------------------------------------------------------------


@click.command('lint', epilog='\b\nRules:\n' + '\n'.join(f'  {rule.id:<20} {rule.meaning}' for rule in RULES))
@FILES
@ENVIRONMENTS
@_UNKNOWN_TYPES
@click.option(
    '--ignore',
    multiple=True,
    metavar='RULE',
    type=click.Choice([rule.id for rule in RULES]),
    help='Rule to skip. May be repeated.',
)
@click.option(
    '--format',
    'form',
    type=click.Choice(['text', 'json', 'sarif']),
    default='text',
    show_default=True,
    help='Output format.',
)
def lint_(
    files: Sequence[str], environments: Sequence[str], ignore_unknown_types: bool, ignore: Sequence[str], form: str
) -> int:
    """Check templates for errors and for probable mistakes in valid templates.

    \b
    Exit codes:
      0  no findings
      1  findings
      2  wrong command line, or unreadable FILE
    """
    checker = template_checker({}, ignore_unknown_types=ignore_unknown_types, tolerant=ignore_unknown_types)
    results = [_linted(checker, name, environments, frozenset(ignore)) for name in files]
    if form == 'json':
        click.echo(lint_report.as_json(results))
    elif form == 'sarif':
        click.echo(lint_report.as_sarif(results))
    else:
        lint_report.as_text(Console(highlight=False), results)
    return ExitCode.FAILED if any(result.errors or result.warnings for result in results) else ExitCode.OK


def _linted(checker: TemplateChecker, name: str, environments: Sequence[str], ignored: frozenset[str]) -> LintResult:
    try:
        bundle = load(name, environments, checker.installation.limits)
    except OSError as error:
        raise unreadable(str(error.filename or name), error) from None
    except errors.StackValidationFailed as error:
        return LintResult(name, error.problems, ())
    return lint_bundle(checker, bundle, ignored)


# --- graph ----------------------------------------------------------------------------------------------------


@click.command()
@click.argument('file', metavar='FILE', type=click.Path(exists=True, allow_dash=True, dir_okay=False))
@ENVIRONMENTS
@click.option(
    '-P',
    '--parameter',
    'parameters',
    multiple=True,
    metavar='NAME=VALUE',
    help='Value of a parameter, for conditions. May be repeated.',
)
@click.option(
    '-f',
    '--format',
    'form',
    type=click.Choice(['ascii', *drawing.FORMATS, 'json']),
    default='ascii',
    show_default=True,
    help='Output format.',
)
def graph(file: str, environments: Sequence[str], parameters: Sequence[str], form: str) -> int:
    """Draw the dependency graph of a template. Its resource types need not be installed.

    Resources whose condition is false are left out. A condition that depends on a parameter without a value counts as
    true.

    \b
    Exit codes:
      0  done
      1  the template is invalid
      2  wrong command line, or unreadable FILE
    """
    checker = template_checker(given(parameters), ignore_unknown_types=True)
    try:
        findings = checker.check(load(file, environments, checker.installation.limits))
    except OSError as error:
        raise unreadable(str(error.filename or file), error) from None
    except errors.StackValidationFailed as error:
        findings = Findings(file, None, error.problems)
    if findings.compiled is None or findings.errors:
        as_text(Console(stderr=True, highlight=False), [findings])
        return ExitCode.FAILED
    drawn = template_graph(with_implied(findings.compiled, ask_for_implied(findings.compiled, installed_types())))
    if form == 'json':
        say(json.dumps(drawn, indent=2, ensure_ascii=False))
    elif form == 'ascii':
        for line in graph_lines(drawn):
            say(line)
    else:
        say(drawing.FORMATS[form][1](drawn), nl=False)
    return ExitCode.OK


def template_graph(compiled: language.Compiled) -> dict[str, Any]:
    """Return the graph of a template for `convergence.drawing`. Its resources have no states."""
    definitions = compiled.goal.definitions
    nodes = [{'name': name, 'type': each.written_type or each.type, 'status': ''} for name, each in definitions.items()]
    edges = [
        {'from': name, 'to': required, **({'is_implied': True} if required in each.implied else {})}
        for name, each in definitions.items()
        for required in each.requires
        if required in definitions
    ]
    return {'nodes': nodes, 'edges': edges}


# --- the language server --------------------------------------------------------------------------------------


@click.command('serve-lsp')
def serve_lsp() -> None:
    """Run the language server (LSP) for editors on standard input and output.

    It offers diagnostics, completion, hover, go to definition, find references, rename and formatting. Needs pygls:
    pip install convergence-orchestration[lsp].
    """
    if sys.stdin.isatty():
        click.echo('convergence: this command is for editors, not for terminals. Stop it with Ctrl-C.', err=True)
    try:
        from convergence.cli.template.language_server import serve
    except ImportError as error:
        if (error.name or '').partition('.')[0] not in ('pygls', 'lsprotocol'):
            raise
        raise UsageMistake('The language server needs pygls: pip install convergence-orchestration[lsp].') from None
    serve()


COMMANDS = (format_, lint_, graph, serve_lsp)
