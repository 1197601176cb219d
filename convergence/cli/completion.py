"""``convergence completion``: scripts for the completion of shells."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument('shell', type=click.Choice(['bash', 'zsh', 'fish']))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    For bash, in ~/.bashrc:              eval "$(convergence completion bash)"
    For zsh, in ~/.zshrc:                eval "$(convergence completion zsh)"
    For fish, in ~/.config/fish/config.fish:   convergence completion fish | source
    """
    root = ctx.find_root()
    name = root.info_name or 'convergence'
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root.command, {}, name, f'_{name.upper()}_COMPLETE').source())
