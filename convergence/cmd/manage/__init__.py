"""``convergence-manage``: one module for each group of commands."""

from convergence.cmd.manage.command import main

__all__ = ('main',)
