"""From options of the command line to the body of a request that says what a stack should be."""

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
        help='An environment; may be repeated, later ones win.',
    ),
    click.option(
        '-P',
        '--parameter',
        'parameters',
        multiple=True,
        metavar='NAME=VALUE',
        help='The value of a parameter; may be repeated, and wins over environments.',
    ),
    click.option(
        '--parameter-file',
        'parameter_files',
        multiple=True,
        metavar='NAME=FILE',
        help='A parameter whose value is what FILE holds; keeps secrets off the command line.',
    ),
    click.option(
        '--allow-files-outside',
        is_flag=True,
        help='Send files that lie outside of the directories of the template and the environments, without asking.',
    ),
    click.option('--tags', metavar='TAG,...', help='Words by which the stack can be found.'),
    click.option(
        '--timeout',
        'timeout_mins',
        type=click.IntRange(min=1),
        metavar='MINUTES',
        help='How long the operation may take.',
    ),
    click.option(
        '--drift-policy',
        type=click.Choice(['ignore', 'report', 'repair']),
        help='What is done when an object is found changed outside of the stack.',
    ),
    click.option(
        '--disable-rollback/--enable-rollback',
        default=None,
        help='What happens after a failure: leave things as they are, or go back.',
    ),
)


class UnreadableFiles(BadTemplate):
    """Files that the template names cannot be read."""

    exit_code = ExitCode.USAGE


def describing(command: CommandT) -> CommandT:
    """Give a command the options that come beside a template."""
    wrapped: Any = command
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def body_of(template: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request.

    :param template: path; None: there is none, what the stack has is kept.
    :param given: values of the options of `describing`.
    :raises UsageMistake: a file cannot be read, or an option is wrong.
    :raises BadTemplate: a file that the template names cannot be read.
    :raises Refused: it lies outside of the template's directory, and nobody has said that it may be sent.
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
def blaming(template: str | None) -> Iterator[None]:
    """Let mistakes that the server finds be told with the name of the file."""
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
    """Say what is probably not meant so: the server, which says what is wrong, accepts it."""
    try:
        warnings = analyse(
            bundle.text, identity=StackIdentity('', '', ''), files=bundle.files, require_parameters=Require.NONE
        ).warnings
    except ConvergenceError:
        return
    if not warnings:
        return
    from convergence.cli.template.report import print_problem

    console = Console(stderr=True, highlight=False)
    for warning in warnings:
        place = warning.place and replace(warning.place, source=bundle.name)
        print_problem(console, replace(warning, place=place), 'warning', 'bold yellow', bundle.name)


def _ask_about(outside: tuple[Path, ...]) -> None:
    """Send no file that only the author of a template has chosen, unless the user agrees."""
    named = '\n'.join(f'  {escaped(str(each))}' for each in outside)
    click.echo(f'Files outside of the directory of the template are named in it:\n{named}', err=True)
    if not sys.stdin.isatty():
        raise Refused(
            'They are not sent to the server. Say --allow-files-outside if they may be sent, or '
            'copy them into its directory.'
        )
    click.confirm('Send them to the server?', abort=True, err=True)


def _unreadable(problems: Any, template: str | None) -> UnreadableFiles:
    found: list[Problem] = list(problems)
    named = BadTemplate('files cannot be read', found).about(template or 'template').problems
    return UnreadableFiles('files cannot be read', named)


def pairs(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """What several options of the form NAME=VALUE say.

    :raises UsageMistake: one has another form.
    """
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition('=')
        if not equals or not name:
            # Not the text itself: half of it may be a secret.
            raise UsageMistake(f'{option}: what is given for "{name[:20]}" has not the form NAME=VALUE.')
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
