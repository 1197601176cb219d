"""``convergence template format``, ``lint``, ``graph`` and ``serve-lsp``: for those who write templates."""

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
from convergence.cli import template_lint_report
from convergence.cli.exits import CommandFailed, ExitCode, UsageMistake
from convergence.cli.graph_text import graph_lines
from convergence.cli.output import say
from convergence.cli.template_check import Findings, TemplateChecker
from convergence.cli.template_files import STANDARD_INPUT, load
from convergence.cli.template_here import given, installed_types, local_installation, unreadable
from convergence.cli.template_lint import RULES
from convergence.cli.template_lint_report import LintResult
from convergence.cli.template_linting import linted
from convergence.cli.template_report import as_text
from convergence.resources.implied import ask_for_implied, with_implied
from convergence.template.formatting import Unformattable, formatted

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
    help='An environment; may be repeated, later ones win.',
)
_UNKNOWN_TYPES = click.option(
    '--ignore-unknown-types', is_flag=True, help='Resource types that are not installed are only warned of.'
)


# --- format ---------------------------------------------------------------------------------------------------


@click.command('format')
@FILES
@click.option('--check', is_flag=True, help='Change nothing; exit code 1 if a file would be changed.')
@click.option('--diff', is_flag=True, help='Change nothing, and show what would be changed.')
def format_(files: Sequence[str], check: bool, diff: bool) -> int:
    """Lay out templates and environments: two spaces a level, one between values, one empty line at most.

    Comments, quotes, lines and the order of keys stay as they are, and so does what the file says: it is read again
    afterwards, and must be the same. FILE may be "-": standard input is written to standard output.

    \b
    Exit codes:
      0  done
      1  with --check or --diff: a file is not laid out like that. Otherwise: one could not be formatted
      2  wrong command line, or a FILE cannot be read
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
    """Write a file so that nobody ever finds half of it."""
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
    help='Leave out this rule; may be repeated.',
)
@click.option(
    '--format',
    'form',
    type=click.Choice(['text', 'json', 'sarif']),
    default='text',
    show_default=True,
    help='What to print.',
)
def lint_(
    files: Sequence[str], environments: Sequence[str], ignore_unknown_types: bool, ignore: Sequence[str], form: str
) -> int:
    """Look for what is valid in templates and probably not meant so, besides what "validate" finds.

    \b
    Exit codes:
      0  nothing was found
      1  something was found
      2  wrong command line, or a FILE cannot be read
    """
    checker = TemplateChecker(
        installed_types(),
        local_installation(tolerant=ignore_unknown_types),
        {},
        ignore_unknown_types=ignore_unknown_types,
    )
    results = [_linted(checker, name, environments, frozenset(ignore)) for name in files]
    if form == 'json':
        click.echo(template_lint_report.as_json(results))
    elif form == 'sarif':
        click.echo(template_lint_report.as_sarif(results))
    else:
        template_lint_report.as_text(Console(highlight=False), results)
    return ExitCode.FAILED if any(result.errors or result.warnings for result in results) else ExitCode.OK


def _linted(checker: TemplateChecker, name: str, environments: Sequence[str], ignored: frozenset[str]) -> LintResult:
    try:
        bundle = load(name, environments, checker.installation.limits)
    except OSError as error:
        raise unreadable(str(error.filename or name), error) from None
    except errors.StackValidationFailed as error:
        return LintResult(name, error.problems, ())
    return linted(checker, bundle, ignored)


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
    help='A parameter; conditions may ask for it.',
)
@click.option(
    '-f',
    '--format',
    'form',
    type=click.Choice(['ascii', *drawing.FORMATS, 'json']),
    default='ascii',
    show_default=True,
    help='How to draw.',
)
def graph(file: str, environments: Sequence[str], parameters: Sequence[str], form: str) -> int:
    """Draw what a template would make: what needs what. Types need not be installed.

    A resource whose condition is false is left out; where that depends on a parameter without a value, it is drawn.

    \b
    Exit codes:
      0  done
      1  the template is wrong
      2  wrong command line, or FILE cannot be read
    """
    installation = local_installation()
    checker = TemplateChecker(installed_types(), installation, given(parameters), ignore_unknown_types=True)
    try:
        findings = checker.check(load(file, environments, installation.limits))
    except OSError as error:
        raise unreadable(str(error.filename or file), error) from None
    except errors.StackValidationFailed as error:
        findings = Findings(file, None, error.problems)
    if findings.compiled is None or findings.errors:
        as_text(Console(stderr=True, highlight=False), [findings])
        return ExitCode.FAILED
    drawn = drawn_of(with_implied(findings.compiled, ask_for_implied(findings.compiled, checker.registry)))
    if form == 'json':
        say(json.dumps(drawn, indent=2, ensure_ascii=False))
    elif form == 'ascii':
        for line in graph_lines(drawn):
            say(line)
    else:
        say(drawing.FORMATS[form][1](drawn), nl=False)
    return ExitCode.OK


def drawn_of(compiled: language.Compiled) -> dict[str, Any]:
    """The graph of a template, as `convergence.drawing` wants it. Nothing of it has a state."""
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
    """Serve an editor in the Language Server Protocol, on standard input and output.

    Diagnostics while you type, completion, documentation under the pointer, go to definition, find references, rename,
    formatting. Needs pygls: pip install convergence-orchestration[lsp].
    """
    if sys.stdin.isatty():
        click.echo('convergence: an editor is to start this, and to speak to it. Ctrl-C ends it.', err=True)
    try:
        from convergence.cli.language_server import serve
    except ImportError as error:
        if (error.name or '').partition('.')[0] not in ('pygls', 'lsprotocol'):
            raise
        raise UsageMistake('The language server needs pygls: pip install convergence-orchestration[lsp].') from None
    serve()


COMMANDS = (format_, lint_, graph, serve_lsp)
