"""Arguments that many commands share. The shell completes them with names that it queries from the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import quote

import click

from convergence.cli.connection import targets
from convergence.cli.connection.client import Api
from convergence.cli.exits import CommandFailed
from convergence.documents import Document
from convergence.errors import ConvergenceError

CommandT = TypeVar('CommandT', bound=Callable[..., Any])

QUICK_S = 3.0
"""Seconds to wait for the server. A completion that takes longer disturbs typing."""
MOST_COMPLETIONS = 1000
"""Maximum number of stacks to query."""


def _completed(names: Callable[[Api, click.Context], Iterable[str]]) -> Callable[..., list[str]]:
    """Return a completion that queries the server named on the line so far. An error completes nothing."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        given = (str(ctx.params.get(name) or '') for name in ('endpoint', 'project', 'token', 'server', 'cloud'))
        try:
            api = Api(targets.from_process(targets.ServerArguments(*given)), answer_s=QUICK_S)
            return [name for name in names(api, ctx) if name.startswith(incomplete)]
        except (CommandFailed, ConvergenceError, KeyError, IndexError, TypeError):
            return []

    return complete


def _of_stack(part: str, key: str, *more: str) -> Callable[[Api, click.Context], Iterable[str]]:
    """Return a query for the names in one list of the stack that was typed before, such as its resources."""

    def names(api: Api, ctx: click.Context) -> Iterable[str]:
        # While the value of an option is completed, click has not assigned the arguments yet.
        stack = api.stack(str(ctx.params.get('name') or ctx.args[0]))
        found: list[Document] = api.get(stack.at(part), repeats=1)[part]
        return [str(each[name]) for each in found for name in (key, *more) if each.get(name)]

    return names


def _saved_by_servers(*path: str, key: str) -> Callable[[Api, click.Context], Iterable[str]]:
    def names(api: Api, ctx: click.Context) -> Iterable[str]:
        found = api.get('/'.join(quote(part, safe='') for part in path), repeats=1)[path[-1]]
        return [str(each[key]) for each in found]

    return names


def _stacks(api: Api, ctx: click.Context) -> Iterable[str]:
    return [str(each['stack_name']) for each in api.get('stacks', repeats=1, limit=MOST_COMPLETIONS)['stacks']]


def _argument(
    name: str, metavar: str, names: Callable[[Api, click.Context], Iterable[str]], **more: Any
) -> Callable[[CommandT], CommandT]:
    return click.argument(name, metavar=metavar, shell_complete=_completed(names), **more)


_RESOURCES = _of_stack('resources', 'resource_name')

STACK = _argument('name', 'STACK', _stacks)
RESOURCE = _argument('resource', 'RESOURCE', _RESOURCES)
RESOURCE_IF_ANY = _argument('resource', '[RESOURCE]', _RESOURCES, required=False)
RESOURCES = _argument('resources', 'RESOURCE...', _RESOURCES, nargs=-1, required=True)
OUTPUT_IF_ANY = _argument('key', '[KEY]', _of_stack('outputs', 'output_key'), required=False)
SNAPSHOT = _argument('snapshot_id', 'SNAPSHOT', _of_stack('snapshots', 'id'))
CONFIG = _argument('config_id', 'CONFIG', _saved_by_servers('software_configs', key='id'))
DEPLOYMENT = _argument('deployment_id', 'DEPLOYMENT', _saved_by_servers('software_deployments', key='id'))
WEBHOOK = _argument('webhook_id', 'WEBHOOK', _saved_by_servers('webhooks', key='id'))
NESTED_DEPTH = click.option(
    '--nested-depth', type=click.IntRange(min=0), metavar='N', help='Include nested stacks, N levels deep.'
)
complete_resources = _completed(_RESOURCES)
"""Completes options that name a resource of the stack."""
