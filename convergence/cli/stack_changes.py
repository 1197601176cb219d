"""The commands of ``convergence stack`` that change something, and ``convergence apply``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
from rich.console import Console

from convergence.cli import plan as plans
from convergence.cli import plan_report
from convergence.cli.client import Api, Document, StackClient
from convergence.cli.exits import CommandFailed, ExitCode, Refused, UsageMistake
from convergence.cli.feed import Feed
from convergence.cli.following import DELETED, OperationStart, before, scene_of
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import Format, ResultPrinter, harmless, say
from convergence.cli.plan import Plan, PlannedOperation, Saved
from convergence.cli.progress import Scene
from convergence.cli.submission import blaming, body_of, describing
from convergence.cli.waiting import conclude, short, waitable, watch
from convergence.escaping import escaped

_NAME = click.argument('name', metavar='STACK')
_TEMPLATE_HELP = 'The template; "-" for standard input.'
_PLANNING = (
    click.option('--dry-run', is_flag=True, help='Show what would be done, and do nothing.'),
    click.option(
        '--plan',
        'plan_file',
        type=click.Path(dir_okay=False, path_type=Path),
        metavar='FILE',
        help='Like --dry-run, and save it for "convergence apply FILE". It holds the values of parameters.',
    ),
)


def planned(command: Any) -> Any:
    """Give a command ``--dry-run`` and ``--plan``."""
    for option in reversed(_PLANNING):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Follow:
    """Whether and for how long to follow an operation."""

    wait: bool
    timeout_s: float | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Follow:
        """By the options of `waitable`."""
        return cls(bool(given['wait']) or given['wait_timeout'] is not None, given['wait_timeout'])


# --- create, update, delete -----------------------------------------------------------------------------------


@click.command(epilog=EPILOG)
@_NAME
@click.option('-t', '--template', 'template', metavar='FILE', required=True, help=_TEMPLATE_HELP)
@describing
@planned
@waitable
@printing
@connected
def create(api: Api, output: ResultPrinter, name: str, template: str, **given: Any) -> int:
    """Create a stack.

    Files that the template names (get_file, types that are templates, resource_registry of an environment) are read
    from where they lie, relative to the file that names them.
    """
    body = {'stack_name': name, **body_of(template, given)}
    with blaming(template):
        if given['dry_run'] or given['plan_file']:
            preview = api.send('POST', 'stacks/preview', body)['stack']
            plan = plans.of_creation(name, preview['resources'])
            saved = Saved(plan.operation, api.target.url, name, '', '', 'POST', body, plan.summary)
            return _show_plan(plan, saved, given['plan_file'], output)
        stack = api.create(body)
    return _created(stack, Follow.of(given), output)


@click.command(epilog=EPILOG)
@_NAME
@click.option('-t', '--template', 'template', metavar='FILE', help=f'{_TEMPLATE_HELP}  [default: what the stack has]')
@click.option('--existing', is_flag=True, help='Keep the parameters and environment that the stack has, and add these.')
@click.option('--clear-parameter', 'clear_parameters', multiple=True, metavar='NAME', help='Back to its default.')
@describing
@planned
@waitable
@printing
@connected
def update(api: Api, output: ResultPrinter, name: str, template: str | None, existing: bool, **given: Any) -> int:
    """Give a stack a new goal.

    Without --template and with --existing, what is not given stays as it is.
    """
    keep = existing or template is None
    if given['clear_parameters'] and not keep:
        raise UsageMistake('--clear-parameter goes with --existing: without it no parameter is kept anyway.')
    body = body_of(template, given)
    method = 'PATCH' if keep else 'PUT'
    stack = api.stack(name)
    with blaming(template):
        if given['dry_run'] or given['plan_file']:
            _, base = stack.show_with_tag()
            lists = api.send(method, stack.at('preview'), body)['resource_changes']
            plan = plans.of_update(stack.name, lists, base)
            saved = Saved(plan.operation, api.target.url, stack.name, stack.id, base, method, body, plan.summary)
            return _show_plan(plan, saved, given['plan_file'], output)
        return _updated(stack, method, body, Follow.of(given), output)


@click.command(epilog=EPILOG)
@_NAME
@click.option('-y', '--yes', is_flag=True, help='Do not ask.')
@click.option(
    '--leave',
    multiple=True,
    metavar='RESOURCE',
    help='Leave the object of this resource behind, whatever becomes of it; several times for several.',
)
@planned
@waitable
@printing
@connected
def delete(api: Api, output: ResultPrinter, name: str, yes: bool, leave: tuple[str, ...], **given: Any) -> int:
    """Delete a stack and all that it made. Asks before, if somebody is there to answer.

    Where an object cannot be deleted, because its service or its row does not answer, --leave lets go of it. The events
    and the reason of the stack then say what was left: type, physical id, token.
    """
    stack = api.stack(name)
    _, base = stack.show_with_tag()
    if given['dry_run'] or given['plan_file']:
        plan = plans.of_deletion(stack.name, stack.resources(), base, leave)
        saved = Saved(
            plan.operation, api.target.url, stack.name, stack.id, base, 'DELETE', {'leave': list(leave)}, plan.summary
        )
        return _show_plan(plan, saved, given['plan_file'], output)
    if not yes and sys.stdin.isatty():
        count = len(stack.resources())
        plural = '' if count == 1 else 's'
        kept = f', and leave the objects of {", ".join(leave)} behind' if leave else ''
        click.confirm(f'Delete stack {stack.name} with {count} resource{plural}{kept}?', abort=True, err=True)
    return _deleted(stack, '', Follow.of(given), output, leave)


@click.command(epilog=EPILOG)
@click.argument('file', type=click.Path(dir_okay=False, path_type=Path))
@waitable
@printing
@connected
def apply(api: Api, output: ResultPrinter, file: Path, **given: Any) -> int:
    """Carry out the plan in FILE, which --plan has saved.

    Refused if anything was done with the stack since: then the plan is not true any more.
    """
    saved = plans.load(file)
    if saved.url != api.target.url:
        raise UsageMistake(f'The plan {file} was made for {saved.url}, and this server is {api.target.url}.')
    follow = Follow.of(given)
    try:
        if saved.operation is PlannedOperation.CREATE:
            return _created(api.create(saved.body), follow, output)
        stack = StackClient(api, saved.stack_name, saved.stack_id)
        if saved.operation is PlannedOperation.DELETE:
            return _deleted(stack, saved.base, follow, output, saved.body.get('leave') or ())
        return _updated(stack, saved.method, saved.body, follow, output, base=saved.base)
    except Refused as error:
        if error.kind not in ('PreconditionFailed', 'HTTPPreconditionFailed'):
            raise
        raise Refused(
            f'Something was done with the stack {saved.stack_name} since the plan was made, so the plan is not true '
            'any more. Nothing was done now. Make a new plan.',
            error.kind,
        ) from None


# --- actions --------------------------------------------------------------------------------------------------


@click.command(epilog=EPILOG)
@_NAME
@waitable
@printing
@connected
def cancel(api: Api, output: ResultPrinter, name: str, **given: Any) -> int:
    """End the operation that is going on, and leave everything as it is then.

    Works for every operation, a delete and a rollback too. The stack becomes ..._FAILED; update or delete it next. What
    is running at the moment is stopped, or given up after a while.
    """
    return _acted(api.stack(name), 'cancel_without_rollback', '', Follow.of(given), output)


@click.command(epilog=EPILOG)
@_NAME
@waitable
@printing
@connected
def rollback(api: Api, output: ResultPrinter, name: str, **given: Any) -> int:
    """End the creation or update that is going on, and go back to what the stack was before.

    Any other operation that is going on only ends, as with "cancel".
    """
    return _acted(api.stack(name), 'cancel_update', 'ROLLBACK_COMPLETE', Follow.of(given), output)


COMMANDS = (create, update, delete, cancel, rollback)


# --- parts ----------------------------------------------------------------------------------------------------


def _show_plan(plan: Plan, saved: Saved, path: Path | None, output: ResultPrinter) -> int:
    if output.form is Format.TABLE:
        plan_report.show(Console(highlight=False), plan)
    else:
        output.record(plan.document())
    if path is not None:
        plans.save(saved, path)
        click.echo(f'Saved; "convergence apply {path}" carries it out.', err=True)
    return ExitCode.OK


def _created(stack: StackClient, follow: Follow, output: ResultPrinter) -> int:
    if not follow.wait:
        output.record(short(stack.show()))
        return ExitCode.OK
    return _follow(stack, OperationStart(Scene(stack.name, stack.id), None), 'CREATE_COMPLETE', follow, output)


def _updated(
    stack: StackClient, method: str, body: Mapping[str, Any], follow: Follow, output: ResultPrinter, *, base: str = ''
) -> int:
    start = before(stack) if follow.wait else None
    stack.api.send(method, stack.at(), body, {'If-Match': base} if base else None)
    if start is None:
        output.record(short(stack.show()))
        return ExitCode.OK
    return _follow(stack, start, 'UPDATE_COMPLETE', follow, output)


def _deleted(stack: StackClient, base: str, follow: Follow, output: ResultPrinter, leave: Sequence[str] = ()) -> int:
    start = before(stack) if follow.wait else None
    query = f'?{urlencode([("leave", name) for name in leave])}' if leave else ''
    stack.api.send('DELETE', f'{stack.at()}{query}', None, {'If-Match': base} if base else None)
    if start is None:
        click.echo(f'Stack {stack.name} is being deleted.', err=True)
        return ExitCode.OK
    scene = Scene(stack.name, stack.id, {}, start.scene.wanted, start.scene.requires)
    ending = watch(stack, start, scene, follow.timeout_s)
    code = conclude(stack, ending, DELETED, output)
    if leave and ending is not None and ending.state == DELETED:
        click.echo(harmless(ending.reason), err=True)  # it says what stays: type, physical id, token
    return code


def _acted(stack: StackClient, action: str, wanted: str, follow: Follow, output: ResultPrinter) -> int:
    start = before(stack) if follow.wait else None
    stack.act(action)
    if start is None:
        output.record(short(stack.show()))
        return ExitCode.OK
    ending = watch(stack, start, scene_of(stack, start.scene), follow.timeout_s)
    if not wanted and ending is not None:
        wanted = ending.state  # a cancelled operation is meant to end like that
    return conclude(stack, ending, wanted, output)


def _follow(stack: StackClient, start: OperationStart, wanted: str, follow: Follow, output: ResultPrinter) -> int:
    scene = scene_of(stack, start.scene)
    return conclude(stack, watch(stack, start, scene, follow.timeout_s), wanted, output)


def tail(
    stack: StackClient, past: Sequence[Document], resource: str | None, output: ResultPrinter, columns: Sequence[str]
) -> None:
    """Print events, and go on with those to come. JSON: one document per line."""
    marker = str(past[-1]['id']) if past else stack.last_event()
    chosen = output.columns or tuple(columns)

    def emit(event: Document) -> bool:
        shown = {column: event.get(column) for column in chosen}
        if output.form in (Format.JSON, Format.YAML):
            say(json.dumps(shown, ensure_ascii=False))
        else:
            say(
                ('\t' if output.form is Format.VALUE else '  ').join(
                    escaped(str(each or '')) for each in shown.values()
                )
            )
        is_own = event['physical_resource_id'] == stack.id and event['resource_name'] == stack.name
        return bool(is_own and event['resource_status'] == 'DELETE_COMPLETE')

    for event in past:
        if emit(event):
            return
    with Feed(stack, marker) as feed:
        while True:
            for event in feed.take(0.5):
                if (resource is None or event['resource_name'] == resource) and emit(event):
                    return
            if feed.lost:
                raise CommandFailed(feed.lost)
