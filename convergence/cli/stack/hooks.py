"""``convergence stack hook``: breakpoints of operations."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from urllib.parse import unquote

import click

from convergence.cli.arguments import NESTED_DEPTH, RESOURCES, STACK
from convergence.cli.connection.client import Api, StackClient
from convergence.cli.exits import NotFound
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter
from convergence.cli.watch.waiting import waiting_in
from convergence.core.model import Hook
from convergence.documents import Document

COLUMNS = ('resource_name', 'hook', 'resource_type', 'resource_status', 'age_s')


@click.group(epilog=EPILOG)
def hook() -> None:
    """List and clear the hooks at which an operation is paused.

    An environment sets hooks on resources. An operation waits at each hook until a user clears it.
    """


@hook.command('list', epilog=EPILOG)
@STACK
@NESTED_DEPTH
@printing
@connected
def list_(api: Api, output: ResultPrinter, name: str, nested_depth: int | None) -> None:
    """List the resources of STACK that wait at a hook."""
    output.listing(COLUMNS, _paused(replace(api.stack(name), nested_depth=nested_depth)))


@hook.command(epilog=EPILOG)
@STACK
@RESOURCES
@click.option(
    '--hook',
    'hook_name',
    type=click.Choice([each.value for each in Hook]),
    help='Hook to clear.  [default: the hook at which the resource waits]',
)
@connected
def clear(api: Api, name: str, resources: tuple[str, ...], hook_name: str | None) -> None:
    """Clear the hooks of resources, so that the operation continues.

    Name a resource of a nested stack by its path, for example group/0/server. "*" matches any part of a name.
    """
    stack = api.stack(name)
    for each in _waiting(stack, resources, hook_name):
        # An entry of a nested stack has the id of that stack.
        of = StackClient(api, _stack_name(each), str(each['stack_id'])) if 'stack_id' in each else stack
        path = str(each['resource_name'])
        api.send('POST', of.at('resources', path.rpartition('/')[2], 'signal'), {'unset_hook': each['hook']})
        click.echo(f'Hook {each["hook"]} of {path} is cleared.', err=True)


def _waiting(stack: StackClient, resources: tuple[str, ...], hook_name: str | None) -> list[Document]:
    """Return the selected resources, each with its hook.

    :param hook_name: the hook; None: the hook at which the resource waits.
    :raises NotFound: a resource waits at no hook. Nothing is cleared then.
    """
    depth = max(each.count('/') for each in resources)
    paused = _paused(replace(stack, nested_depth=depth or None))
    found: dict[str, Document] = {}
    idle: list[str] = []
    for pattern in resources:
        fitting = [each for each in paused if _fits(str(each['resource_name']), pattern)]
        if not fitting and hook_name and not depth:
            fitting = [{'resource_name': pattern}]  # The server reports the error.
        found |= {str(each['resource_name']): {**each, 'hook': hook_name or each.get('hook')} for each in fitting}
        idle += [] if fitting else [pattern]
    if idle:
        known = ', '.join(f'{each["resource_name"]} ({each["hook"]})' for each in paused) or 'none'
        raise NotFound(f'{", ".join(idle)} of stack {stack.name} waits at no hook. Waiting resources: {known}.')
    return list(found.values())


def _fits(path: str, pattern: str) -> bool:
    parts, patterns = path.split('/'), pattern.split('/')
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _stack_name(waiting: Document) -> str:
    return unquote(str(waiting['links'][0]['href']).rstrip('/').split('/')[-2])


def _paused(stack: StackClient) -> list[Document]:
    return [each for each in waiting_in(stack.explain()) if each.get('hook')]
