"""Turns the options of the command line into the body of a create or update request."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from convergence.cli.arguments import CommandT
from convergence.cli.exits import BadTemplate, ExitCode, Refused, UsageMistake
from convergence.cli.template.files import load
from convergence.errors import ConvergenceError, Problem, StackValidationFailed
from convergence.escaping import escaped
from convergence.template import Require, StackIdentity, analyse
from convergence.template.authoring.bundle import Bundle
from convergence.template.limits import Limits

_OPTIONS = (
    click.option(
        '-e',
        '--environment',
        'environments',
        multiple=True,
        metavar='FILE',
        help='Environment file. May be repeated; later files win.',
    ),
    click.option(
        '-P',
        '--parameter',
        'parameters',
        multiple=True,
        metavar='NAME=VALUE',
        help='Value of a parameter. May be repeated; wins over environments.',
    ),
    click.option(
        '--parameter-file',
        'parameter_files',
        multiple=True,
        metavar='NAME=FILE',
        help='Parameter whose value is the content of FILE. Keeps secrets off the command line.',
    ),
    click.option(
        '--allow-files-outside',
        is_flag=True,
        help='Send files outside the directories of the template and environments without confirmation.',
    ),
    click.option('--tags', metavar='TAG,...', help='Tags of the stack, for searches.'),
    click.option(
        '--timeout',
        'timeout_mins',
        type=click.IntRange(min=1),
        metavar='MINUTES',
        help='Timeout of the operation in minutes.',
    ),
    click.option(
        '--drift-policy',
        type=click.Choice(['ignore', 'report', 'repair']),
        help='Reaction to an object that was changed outside the stack.',
    ),
    click.option(
        '--disable-rollback/--enable-rollback',
        default=None,
        help='After a failure, keep the failed state or roll back.',
    ),
)


class UnreadableFiles(BadTemplate):
    """A file that the template names cannot be read."""

    exit_code = ExitCode.USAGE


def template_options(command: CommandT) -> CommandT:
    """Give a command the options that accompany a template."""
    wrapped: Any = command
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def request_body(template: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request.

    :param template: path; None keeps the template of the stack.
    :param given: values of the options of `template_options`.
    :raises UsageMistake: a file cannot be read, or an option is wrong.
    :raises BadTemplate: a file that the template names cannot be read.
    :raises Refused: a file lies outside the template's directory, and the user has not confirmed it.
    """
    bundle = _bundle(template, tuple(given['environments'])) if template or given['environments'] else None
    if bundle is not None and bundle.outside and not given.get('allow_files_outside'):
        _ask_about(bundle.outside)
    body: dict[str, Any] = {}
    if bundle is not None:
        if template:
            _warn(bundle)
            body['template'] = bundle.text
        body['files'] = {**bundle.files, **bundle.environments}
        body['environment_files'] = list(bundle.environments)
    body['parameters'] = {**pairs('--parameter', given['parameters']), **_contents(given['parameter_files'])}
    for name in ('tags', 'timeout_mins', 'disable_rollback', 'drift_policy'):
        if given.get(name) is not None:
            body[name] = given[name]
    if given.get('converge'):
        body['converge'] = True
    if given.get('clear_parameters'):
        body['clear_parameters'] = list(given['clear_parameters'])
    return {name: value for name, value in body.items() if value not in ({}, [])}


@contextlib.contextmanager
def naming_template(template: str | None) -> Iterator[None]:
    """Name the template file in the errors that the server reports."""
    try:
        yield
    except BadTemplate as error:
        raise (error.about(template) if template else error) from None


def _bundle(template: str | None, environments: tuple[str, ...]) -> Bundle:
    try:
        bundle = load(template or '/dev/null', environments, Limits())
    except OSError as error:
        raise UsageMistake(f'{error.filename or template} cannot be read: {error.strerror}') from None
    except StackValidationFailed as error:
        raise _unreadable(error.problems, template) from None
    if bundle.problems:
        raise _unreadable(bundle.problems, template)
    return bundle


def _warn(bundle: Bundle) -> None:
    """Print warnings. The server reports errors only."""
    try:
        warnings = analyse(
            bundle.text, identity=StackIdentity('', '', ''), files=bundle.files, require_parameters=Require.NONE
        ).warnings
    except ConvergenceError:
        return
    if not warnings:
        return
    from convergence.cli.problems import print_problem

    console = Console(stderr=True, highlight=False)
    for warning in warnings:
        place = warning.place and replace(warning.place, source=bundle.name)
        print_problem(console, replace(warning, place=place), 'warning', 'bold yellow', bundle.name)


def _ask_about(outside: tuple[str, ...]) -> None:
    """Ask for confirmation before files are sent that the author of the template has chosen.

    :raises Refused: there is no terminal to ask.
    """
    named = '\n'.join(f'  {escaped(each)}' for each in outside)
    click.echo(f'The template names files outside its directory:\n{named}', err=True)
    if not sys.stdin.isatty():
        raise Refused(
            'These files are not sent to the server. Use --allow-files-outside to send them, or '
            'copy them into the directory of the template.'
        )
    click.confirm('Send them to the server?', abort=True, err=True)


def _unreadable(problems: Any, template: str | None) -> UnreadableFiles:
    found: list[Problem] = list(problems)
    named = BadTemplate('files cannot be read', found).about(template or 'template').problems
    return UnreadableFiles('files cannot be read', named)


def pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Return the values of options of the form NAME=VALUE.

    :raises UsageMistake: an option has another form.
    """
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition('=')
        if not equals or not name:
            # The rest of the text may be a secret.
            raise UsageMistake(f'{option}: "{name[:20]}" must have the form NAME=VALUE.')
        found[name] = value
    return found


def _contents(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, path in pairs('--parameter-file', given).items():
        try:
            found[name] = Path(path).read_text(encoding='utf-8')
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, 'strerror', None) or 'it is not UTF-8 text'
            raise UsageMistake(f'--parameter-file {name}: {path} cannot be read: {reason}') from None
    return found
