"""``convergence webhook``: addresses that are told what happens to stacks."""

from __future__ import annotations

import click

from convergence.cli.arguments import WEBHOOK
from convergence.cli.connection.client import Api
from convergence.cli.exits import CommandFailed
from convergence.cli.options import EPILOG, connected, printing
from convergence.cli.output import ResultPrinter

COLUMNS = ('id', 'name', 'url', 'stack_id', 'last_delivery_time', 'waiting', 'failed_attempts', 'given_up')


@click.group(epilog=EPILOG)
def webhook() -> None:
    """Have addresses told what happens to stacks."""


@webhook.command('list', epilog=EPILOG)
@click.option('--stack', metavar='STACK', help='Only those of this stack alone.')
@printing
@connected
def list_webhooks(api: Api, output: ResultPrinter, stack: str | None) -> None:
    """List the webhooks of the project."""
    output.listing(COLUMNS, api.get('webhooks', stack=stack)['webhooks'])


@webhook.command('create', epilog=EPILOG)
@click.argument('url', metavar='URL')
@click.option('--stack', metavar='STACK', help='Tell of this stack alone, with what is nested in it.')
@click.option('--name', metavar='NAME', help='To tell it from others.')
@printing
@connected
def create_webhook(api: Api, output: ResultPrinter, url: str, stack: str | None, name: str | None) -> None:
    """Have URL told what happens to the stacks of the project.

    Shows the key with which all that is sent there is signed. It is never shown again.
    """
    output.record(api.send('POST', 'webhooks', {'url': url, 'stack': stack, 'name': name})['webhook'])


@webhook.command('show', epilog=EPILOG)
@WEBHOOK
@printing
@connected
def show_webhook(api: Api, output: ResultPrinter, webhook_id: str) -> None:
    """Show WEBHOOK, an id, and how telling it goes."""
    output.record(api.get(f'webhooks/{webhook_id}')['webhook'])


@webhook.command('delete', epilog=EPILOG)
@WEBHOOK
@connected
def delete_webhook(api: Api, webhook_id: str) -> None:
    """Delete WEBHOOK, an id. What waits for it is told nobody."""
    api.send('DELETE', f'webhooks/{webhook_id}')
    click.echo(f'Webhook {webhook_id} is deleted.', err=True)


@webhook.command('test', epilog=EPILOG)
@WEBHOOK
@printing
@connected
def test_webhook(api: Api, output: ResultPrinter, webhook_id: str) -> None:
    """Tell WEBHOOK, an id, now that this is a test, and show how that went."""
    result = api.send('POST', f'webhooks/{webhook_id}/test')['result']
    output.record(result)
    if not result['delivered']:
        raise CommandFailed(f'Webhook {webhook_id} was not told: {result["error"]}')
