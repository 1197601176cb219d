"""``convergence webhook``: URLs that receive the events of stacks."""

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
    """Manage webhooks: URLs that receive the events of stacks."""


@webhook.command('list', epilog=EPILOG)
@click.option('--stack', metavar='STACK', help='Stack whose webhooks to list.')
@printing
@connected
def list_webhooks(api: Api, output: ResultPrinter, stack: str | None) -> None:
    """List the webhooks of the project."""
    output.listing(COLUMNS, api.get('webhooks', stack=stack)['webhooks'])


@webhook.command('create', epilog=EPILOG)
@click.argument('url', metavar='URL')
@click.option(
    '--stack',
    metavar='STACK',
    help='Stack whose events to send, nested stacks included.  [default: all stacks of the project]',
)
@click.option('--name', metavar='NAME', help='Name of the webhook.')
@printing
@connected
def create_webhook(api: Api, output: ResultPrinter, url: str, stack: str | None, name: str | None) -> None:
    """Send the events of the project's stacks to URL.

    Prints the key that signs the events. The key cannot be shown again.
    """
    output.record(api.send('POST', 'webhooks', {'url': url, 'stack': stack, 'name': name})['webhook'])


@webhook.command('show', epilog=EPILOG)
@WEBHOOK
@printing
@connected
def show_webhook(api: Api, output: ResultPrinter, webhook_id: str) -> None:
    """Show the webhook with the id WEBHOOK and the state of its deliveries."""
    output.record(api.get(f'webhooks/{webhook_id}')['webhook'])


@webhook.command('delete', epilog=EPILOG)
@WEBHOOK
@connected
def delete_webhook(api: Api, webhook_id: str) -> None:
    """Delete the webhook with the id WEBHOOK. Undelivered events are discarded."""
    api.send('DELETE', f'webhooks/{webhook_id}')
    click.echo(f'Webhook {webhook_id} is deleted.', err=True)


@webhook.command('test', epilog=EPILOG)
@WEBHOOK
@printing
@connected
def test_webhook(api: Api, output: ResultPrinter, webhook_id: str) -> None:
    """Send a test event to the webhook with the id WEBHOOK, and show the result."""
    result = api.send('POST', f'webhooks/{webhook_id}/test')['result']
    output.record(result)
    if not result['delivered']:
        raise CommandFailed(f'Webhook {webhook_id} did not accept the test event: {result["error"]}')
