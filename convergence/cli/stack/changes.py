"""``convergence stack create``, ``update`` and ``delete``, and ``convergence apply``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
from rich.console import Console

from convergence.cli.arguments import STACK, CommandT, complete_resources
from convergence.cli.connection.client import Api, StackClient
from convergence.cli.exits import CommandFailed, ExitCode, Refused, UsageMistake
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import Format, ResultPrinter, printable, say
from convergence.cli.stack import plan as plans
from convergence.cli.stack import plan_report
from convergence.cli.stack.plan import Plan, PlannedOperation, Saved
from convergence.cli.submission import naming_template, request_body, template_options
from convergence.cli.watch.feed import Feed
from convergence.cli.watch.following import DELETED, before, operation_of
from convergence.cli.watch.operations import Follow, follow_creation, start_operation
from convergence.cli.watch.progress import Scene
from convergence.cli.watch.waiting import print_result, stack_summary, waitable, watch
from convergence.documents import Document
from convergence.escaping import escaped

_TEMPLATE_HELP = 'Template file. "-": standard input.'
_PLANNING = (
    click.option('--dry-run', is_flag=True, help='Show the plan, and change nothing.'),
    click.option(
        '--plan',
        'plan_file',
        type=click.Path(dir_okay=False, path_type=Path),
        metavar='FILE',
        help='Like --dry-run, and save the plan for "convergence apply FILE". The file holds the values of parameters.',
    ),
    click.option('--show-nested', is_flag=True, help='With --dry-run or --plan, include nested stacks.'),
)


def planned(command: CommandT) -> CommandT:
    """Give a command ``--dry-run``, ``--plan`` and ``--show-nested``."""
    for option in reversed(_PLANNING):
        command = option(command)
    return command


# --- create, update, delete -----------------------------------------------------------------------------------


@click.command(epilog=EPILOG)
@STACK
@click.option('-t', '--template', 'template', metavar='FILE', required=True, help=_TEMPLATE_HELP)
@template_options
@planned
@waitable
@printing
@connected
def create(api: Api, output: ResultPrinter, name: str, template: str, **given: Any) -> int:
    """Create a stack.

    Sends the files that the template names in get_file, in the types of resources and in the resource_registry of an
    environment. Paths are relative to the file that names them.
    """
    body = {'stack_name': name, **request_body(template, given)}
    with naming_template(template):
        if given['dry_run'] or given['plan_file']:
            whole = api.send('POST', 'stacks/preview?show_nested=true', body)['stack']['resources']
            plan = plans.of_creation(name, [each for each in whole if given['show_nested'] or '/' not in each['path']])
            saved = Saved(plan.operation, api.target.url, name, '', '', 'POST', body, plan.summary)
            return _show_plan(plan, saved, given['plan_file'], output)
        stack = api.create(body)
    return _created(stack, Follow.of(given), output)


@click.command(epilog=EPILOG)
@STACK
@click.option(
    '-t', '--template', 'template', metavar='FILE', help=f'{_TEMPLATE_HELP}  [default: the template of the stack]'
)
@click.option(
    '--existing', is_flag=True, help='Keep the parameters and environment of the stack, and add the given ones.'
)
@click.option(
    '--clear-parameter', 'clear_parameters', multiple=True, metavar='NAME', help='Parameter to reset to its default.'
)
@click.option('--converge', is_flag=True, help='Compare every object with the template, and repair differences.')
@template_options
@planned
@waitable
@printing
@connected
def update(api: Api, output: ResultPrinter, name: str, template: str | None, existing: bool, **given: Any) -> int:
    """Update a stack to a new template or new parameters.

    With --existing and without --template, the template stays the same.
    """
    keep = existing or template is None
    if given['clear_parameters'] and not keep:
        raise UsageMistake('--clear-parameter needs --existing. Without --existing no parameter is kept.')
    body = request_body(template, given)
    method = 'PATCH' if keep else 'PUT'
    stack = api.stack(name)
    with naming_template(template):
        if given['dry_run'] or given['plan_file']:
            _, base = stack.show_with_tag()
            lists = api.send(
                method, f'{stack.at("preview")}{"?show_nested=true" if given["show_nested"] else ""}', body
            )['resource_changes']
            plan = plans.of_update(stack.name, lists, base)
            saved = Saved(plan.operation, api.target.url, stack.name, stack.id, base, method, body, plan.summary)
            return _show_plan(plan, saved, given['plan_file'], output)
        return _updated(stack, method, body, Follow.of(given), output)


@click.command(epilog=EPILOG)
@STACK
@click.option('-y', '--yes', is_flag=True, help='Skip the confirmation.')
@click.option(
    '--leave',
    multiple=True,
    shell_complete=complete_resources,
    metavar='RESOURCE',
    help='Resource whose object to keep without further management. May be repeated.',
)
@planned
@waitable
@printing
@connected
def delete(api: Api, output: ResultPrinter, name: str, yes: bool, leave: tuple[str, ...], **given: Any) -> int:
    """Delete a stack and all its objects. On a terminal, the command needs confirmation.

    --leave skips an object that cannot be deleted, for example because its service is gone. The events and the status
    reason of the stack then name the object: type, physical id and token.
    """
    stack = api.stack(name)
    _, base = stack.show_with_tag()
    if given['dry_run'] or given['plan_file']:
        going = stack.every_resource() if given['show_nested'] else stack.resources()
        plan = plans.of_deletion(stack.name, going, base, leave)
        saved = Saved(
            plan.operation, api.target.url, stack.name, stack.id, base, 'DELETE', {'leave': list(leave)}, plan.summary
        )
        return _show_plan(plan, saved, given['plan_file'], output)
    if not yes and sys.stdin.isatty():
        api.announce()
        count = len(stack.resources())
        plural = '' if count == 1 else 's'
        kept = f', and keep the objects of {", ".join(leave)}' if leave else ''
        click.confirm(f'Delete stack {stack.name} with {count} resource{plural}{kept}?', abort=True, err=True)
    return _deleted(stack, '', Follow.of(given), output, leave)


@click.command(epilog=EPILOG)
@click.argument('file', type=click.Path(dir_okay=False, path_type=Path))
@waitable
@printing
@connected
def apply(api: Api, output: ResultPrinter, file: Path, **given: Any) -> int:
    """Apply a plan that --plan has saved to FILE.

    Refused if the stack has changed since the plan was made.
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
            f'The stack {saved.stack_name} has changed since the plan was made. '
            'The plan was not applied. Make a new plan.',
            error.kind,
        ) from None


COMMANDS = (create, update, delete)


# --- parts ----------------------------------------------------------------------------------------------------


def _show_plan(plan: Plan, saved: Saved, path: Path | None, output: ResultPrinter) -> int:
    if output.form is Format.TABLE:
        plan_report.show(Console(highlight=False), plan)
    else:
        output.record(plan.document())
    if path is not None:
        plans.save(saved, path)
        click.echo(f'The plan is saved. Apply it with "convergence apply {path}".', err=True)
    return ExitCode.OK


def _created(stack: StackClient, follow: Follow, output: ResultPrinter) -> int:
    if not follow.wait:
        output.record(stack_summary(stack.show()))
        return ExitCode.OK
    return follow_creation(stack, 'CREATE_COMPLETE', follow, output)


def _updated(
    stack: StackClient, method: str, body: Mapping[str, Any], follow: Follow, output: ResultPrinter, *, base: str = ''
) -> int:
    headers = {'If-Match': base} if base else None
    return start_operation(
        stack, lambda: stack.api.begin(method, stack.at(), body, headers), 'UPDATE_COMPLETE', follow, output
    )


def _deleted(stack: StackClient, base: str, follow: Follow, output: ResultPrinter, leave: Sequence[str] = ()) -> int:
    start = before(stack) if follow.wait else None
    query = f'?{urlencode([("leave", name) for name in leave])}' if leave else ''
    headers = {'If-Match': base} if base else None
    accepted = stack.api.begin('DELETE', f'{stack.at()}{query}', None, headers)
    if start is None:
        click.echo(f'Stack {stack.name} is being deleted.', err=True)
        return ExitCode.OK
    scene = Scene(stack.name, stack.id, {}, start.scene.desired, start.scene.requires)
    ending = watch(stack, operation_of(stack, accepted.request_id), start, scene, follow.timeout_s)
    code = print_result(stack, ending, DELETED, output)
    if leave and ending is not None and ending.state == DELETED:
        click.echo(
            printable(ending.reason), err=True
        )  # The reason names the objects that are kept: type, physical id, token.
    return code


def tail(
    stack: StackClient, past: Sequence[Document], resource: str | None, output: ResultPrinter, columns: Sequence[str]
) -> None:
    """Print past events, then new ones as they occur. JSON: one document per line."""
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
