"""``convergence stack hook``: where an operation is paused, and how it goes on."""

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
    """Look at the hooks at which a stack is paused, and clear them.

    An environment sets hooks on resources; an operation waits at each until somebody clears it.
    """


@hook.command('list', epilog=EPILOG)
@STACK
@NESTED_DEPTH
@printing
@connected
def list_(api: Api, output: ResultPrinter, name: str, nested_depth: int | None) -> None:
    """List the resources of STACK that wait at a hook at this moment."""
    output.listing(COLUMNS, _paused(replace(api.stack(name), nested_depth=nested_depth)))


@hook.command(epilog=EPILOG)
@STACK
@RESOURCES
@click.option(
    '--hook',
    'wanted',
    type=click.Choice([each.value for each in Hook]),
    help='The hook.  [default: the one it waits at]',
)
@connected
def clear(api: Api, name: str, resources: tuple[str, ...], wanted: str | None) -> None:
    """Let each RESOURCE of STACK go on from its hook.

    One in a nested stack is named by its path, for example group/0/server; "*" stands for any part of a name.
    """
    stack = api.stack(name)
    for each in _waiting(stack, resources, wanted):
        # What waits in a nested stack says in which one.
        of = StackClient(api, _stack_name(each), str(each['stack_id'])) if 'stack_id' in each else stack
        path = str(each['resource_name'])
        api.send('POST', of.at('resources', path.rpartition('/')[2], 'signal'), {'unset_hook': each['hook']})
        click.echo(f'Hook {each["hook"]} of {path} is cleared.', err=True)


def _waiting(stack: StackClient, resources: tuple[str, ...], wanted: str | None) -> list[Document]:
    """The resources that are meant, each with its hook.

    :param wanted: the hook; None: the one at which it waits.
    :raises NotFound: one of them waits at none. Nothing is cleared then.
    """
    depth = max(each.count('/') for each in resources)
    paused = _paused(replace(stack, nested_depth=depth or None))
    found: dict[str, Document] = {}
    idle: list[str] = []
    for pattern in resources:
        fitting = [each for each in paused if _fits(str(each['resource_name']), pattern)]
        if not fitting and wanted and not depth:
            fitting = [{'resource_name': pattern}]  # the server says what is wrong with that
        found |= {str(each['resource_name']): {**each, 'hook': wanted or each.get('hook')} for each in fitting}
        idle += [] if fitting else [pattern]
    if idle:
        known = ', '.join(f'{each["resource_name"]} ({each["hook"]})' for each in paused) or 'none'
        raise NotFound(f'{", ".join(idle)} of stack {stack.name} waits at no hook now; those that do: {known}.')
    return list(found.values())


def _fits(path: str, pattern: str) -> bool:
    parts, patterns = path.split('/'), pattern.split('/')
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _stack_name(waiting: Document) -> str:
    return unquote(str(waiting['links'][0]['href']).rstrip('/').split('/')[-2])


def _paused(stack: StackClient) -> list[Document]:
    return [each for each in waiting_in(stack.explain()) if each.get('hook')]
