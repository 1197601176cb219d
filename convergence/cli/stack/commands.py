"""``convergence stack``: the group of commands, and the commands that read stacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from convergence.cli.arguments import NESTED_DEPTH, OUTPUT_IF_ANY, RESOURCE_IF_ANY, STACK, complete_resources
from convergence.cli.connection.client import Api
from convergence.cli.exits import NotFound
from convergence.cli.graph_text import graph_lines
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter, printable, say
from convergence.cli.stack import actions, changes, drift, hooks, parts, signals, snapshots, transfers
from convergence.cli.watch.following import OperationStart, console, operation_of, scene_of
from convergence.cli.watch.waiting import print_cause, print_result, waiting_in, watch

STACK_COLUMNS = ('id', 'stack_name', 'stack_status', 'creation_time', 'updated_time')
RESOURCE_COLUMNS = ('resource_name', 'resource_type', 'resource_status', 'physical_resource_id', 'updated_time')
EVENT_COLUMNS = ('event_time', 'resource_name', 'resource_status', 'resource_status_reason', 'id')
OUTPUT_COLUMNS = ('output_key', 'output_value', 'description')
HISTORY_COLUMNS = ('started_at', 'action', 'status', 'finished_at', 'reason', 'id')
FRONTIER_COLUMNS = ('resource_name', 'resource_type', 'state', 'age_s', 'attempts', 'owner_host', 'last_error')


def _located(columns: tuple[str, ...], nested_depth: int | None) -> tuple[str, ...]:
    """Return the columns of a list. Lists with nested stacks begin with the name of the stack."""
    return ('stack_name', *columns) if nested_depth else columns


@click.group(epilog=EPILOG)
def stack() -> None:
    """Manage stacks.

    STACK is the name or the id of a stack.
    """


for _commands in (changes, actions, drift, parts, signals, transfers):
    for _command in _commands.COMMANDS:
        stack.add_command(_command)
stack.add_command(hooks.hook)
stack.add_command(snapshots.snapshot)


@stack.command('list', epilog=EPILOG)
@click.option('--status', metavar='STATUS', help='Status of the stacks to list, for example FAILED.')
@click.option('--tags', metavar='TAG,...', help='Tags of the stacks to list. A stack must have all of them.')
@click.option('--deleted', is_flag=True, help='Include deleted stacks.')
@click.option('--nested', is_flag=True, help='Include nested stacks.')
@click.option('--hidden', is_flag=True, help='Include stacks that the installation hides by their tags.')
@click.option('--limit', type=click.IntRange(min=1), metavar='N', help='Maximum number of stacks, the newest first.')
@printing
@connected
def list_(
    api: Api, output: ResultPrinter, deleted: bool, nested: bool, hidden: bool, **selection: str | int | None
) -> None:
    """List the stacks of the project, the newest first."""
    flags = {'show_deleted': deleted, 'show_nested': nested, 'show_hidden': hidden}
    query: dict[str, Any] = {**selection, **{name: 'true' for name, is_set in flags.items() if is_set}}
    found = api.get('stacks', **query)
    output.listing(STACK_COLUMNS, found['stacks'])


@stack.command(epilog=EPILOG)
@STACK
@printing
@connected
def show(api: Api, output: ResultPrinter, name: str) -> None:
    """Show a stack. Values of hidden parameters are masked."""
    document = api.stack(name).show(outputs=True, unreadable=True)
    document.pop('links', None)
    for each in document.get('unreadable') or ():
        parts, resource = ', '.join(each['parts']), each['resource_name']
        what = f'resource {resource} ({parts})' if resource else f'{parts} of the stack'
        click.echo(f'convergence: {printable(what)} cannot be read. {printable(each["ways_out"])}', err=True)
    output.record(document)


@stack.command(epilog=EPILOG)
@STACK
@OUTPUT_IF_ANY
@printing
@connected
def outputs(api: Api, output: ResultPrinter, name: str, key: str | None) -> None:
    """List the outputs of a stack with their values, or show the output KEY.

    With --format value and KEY, only the value is printed.
    """
    found = api.stack(name).outputs()
    if key is None:
        output.listing(OUTPUT_COLUMNS, found)
        return
    chosen = next((each for each in found if each['output_key'] == key), None)
    if chosen is None:
        known = ', '.join(each['output_key'] for each in found) or 'none'
        raise NotFound(f'Stack {name} has no output {key}. Its outputs: {known}.')
    if chosen.get('output_error'):
        click.echo(f'convergence: no value: {chosen["output_error"]}', err=True)
    if output.form == 'value' and not output.columns:
        output = ResultPrinter(output.form, ('output_value',))
    output.record(chosen)


@stack.command(epilog=EPILOG)
@STACK
@RESOURCE_IF_ANY
@click.option(
    '--limit', type=click.IntRange(min=1), metavar='N', help='Maximum number of resources, in the order of their names.'
)
@click.option('--marker', metavar='NAME', help='Last resource of the previous page.')
@NESTED_DEPTH
@printing
@connected
def resources(
    api: Api,
    output: ResultPrinter,
    name: str,
    resource: str | None,
    limit: int | None,
    marker: str | None,
    nested_depth: int | None,
) -> None:
    """List the resources of a stack, or show RESOURCE."""
    found = replace(api.stack(name), nested_depth=nested_depth)
    if resource is None:
        output.listing(_located(RESOURCE_COLUMNS, nested_depth), found.resources(limit, marker))
        return
    document = dict(api.get(found.at('resources', resource))['resource'])
    document.pop('links', None)
    output.record(document)


@stack.command(epilog=EPILOG)
@STACK
@click.option('--follow', is_flag=True, help='Print new events as they occur, until Ctrl-C or the end of the stack.')
@click.option('--resource', metavar='NAME', shell_complete=complete_resources, help='Resource whose events to list.')
@click.option('--limit', type=click.IntRange(min=1), metavar='N', help='Maximum number of events, the newest ones.')
@NESTED_DEPTH
@printing
@connected
def events(
    api: Api,
    output: ResultPrinter,
    name: str,
    follow: bool,
    resource: str | None,
    limit: int | None,
    nested_depth: int | None,
) -> None:
    """List the events of a stack, the oldest first."""
    found = replace(api.stack(name), nested_depth=nested_depth)
    query: dict[str, Any] = {'resource_name': resource}
    if limit is not None:
        query |= {'limit': limit, 'sort_dir': 'desc'}
    past = found.events(**query)
    past = past[::-1] if limit is not None else past
    columns = _located(EVENT_COLUMNS, nested_depth)
    if not follow:
        output.listing(columns, past)
        return
    changes.tail(found, past, resource, output, columns)


@stack.command(epilog=EPILOG)
@STACK
@click.option('--limit', type=click.IntRange(min=1), metavar='N', help='Maximum number of operations.')
@NESTED_DEPTH
@printing
@connected
def history(api: Api, output: ResultPrinter, name: str, limit: int | None, nested_depth: int | None) -> None:
    """List the operations on a stack, the newest first."""
    found = api.get(api.stack(name).at('traversals'), limit=limit, nested_depth=nested_depth)['traversals']
    output.listing(('path', *HISTORY_COLUMNS) if nested_depth else HISTORY_COLUMNS, found)


@stack.command(epilog=EPILOG)
@STACK
@NESTED_DEPTH
@printing
@connected
def explain(api: Api, output: ResultPrinter, name: str, nested_depth: int | None) -> None:
    """Explain the state of a stack: the first failure, and the steps that it waits for."""
    found = replace(api.stack(name), nested_depth=nested_depth).explain()
    if not output.is_for_people or output.columns:
        found.pop('links', None)
        output.record(found)
        return
    click.echo(printable(found['summary']))
    print_cause(console(), found)
    for each in (found.get('drift') or {}).get('resources') or ():
        click.echo(printable(f'Changed outside of the stack since {each["since"]}: {each["reason"]}'))
    for each in found.get('nested') or ():
        click.echo(printable(f'{each["path"]}: {each["summary"]}'))
    frontier = waiting_in(found)
    if frontier:
        output.listing(FRONTIER_COLUMNS, frontier)


@stack.command(epilog=EPILOG)
@STACK
@click.option(
    '-f',
    '--format',
    'form',
    type=click.Choice(['ascii', 'mermaid', 'dot', 'svg', 'json']),
    default='ascii',
    show_default=True,
    help='Output format.',
)
@NESTED_DEPTH
@connected
def graph(api: Api, name: str, form: str, nested_depth: int | None) -> None:
    """Draw the dependency graph of a stack with the states of its resources."""
    found = replace(api.stack(name), nested_depth=nested_depth)
    if form == 'ascii':
        for line in graph_lines(found.graph()):
            say(line)
        return
    answer = api.ask('GET', found.at('graph'), query={'format': form, 'nested_depth': nested_depth})
    say(answer.text, nl=not answer.text.endswith('\n'))


@stack.command(epilog=EPILOG)
@STACK
@click.option(
    '--for',
    'expected',
    metavar='STATE',
    default='',
    help='Expected final state, such as UPDATE_COMPLETE. Another state gives exit code 1.',
)
@click.option(
    '--wait-timeout',
    type=click.FloatRange(min=0),
    metavar='SECONDS',
    help='Timeout in seconds. The operation continues after it.',
)
@printing
@connected
def wait(api: Api, output: ResultPrinter, name: str, expected: str, wait_timeout: float | None) -> int:
    """Wait until the running operation ends.

    Without --for, every state ..._COMPLETE except ROLLBACK_COMPLETE counts as success. The exit code is 7 if another
    operation supersedes the running one.
    """
    found = api.stack(name)
    followed = operation_of(found)
    past = found.events()
    begun = 0
    for number, event in enumerate(past):
        if event['physical_resource_id'] == found.id and event['resource_status'].endswith('_IN_PROGRESS'):
            begun = number
    since = str(past[begun - 1]['id']) if begun else None
    scene = scene_of(found)
    return print_result(
        found, watch(found, followed, OperationStart(scene, since), scene, wait_timeout), expected.upper(), output
    )
