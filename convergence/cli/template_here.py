"""What this machine knows of the language: the installed resource types, constraints and functions."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from convergence import template as language
from convergence.core.model import Json
from convergence.expressions import evaluator
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.custom import installed_checks
from convergence.resources.registry import Registry


def local_installation(*, tolerant: bool = False) -> language.Installation:
    """How templates are read here: with the constraints that are installed.

    :param tolerant: those that need a service which is not there check nothing.
    """
    checks = installed_checks().tolerating() if tolerant else installed_checks()
    return language.Installation(checks=checks, yaql=evaluator())


def installed_types() -> Registry:
    """The types that are installed here, those of the local provider included: nothing is made, only looked at."""
    # A package that cannot be loaded is no business of somebody who checks a template; its types are then unknown.
    logger = logging.getLogger('convergence.resources')
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        return Registry.installed(local=LocalProvider(Path(tempfile.gettempdir())), for_checks=True)
    finally:
        logger.setLevel(level)


def unreadable(name: str, error: OSError) -> click.UsageError:
    """What to raise where a file cannot be read."""
    return click.UsageError(f'{name}: {error.strerror or error}')


def given(parameters: Sequence[str]) -> dict[str, Json]:
    """The values of ``--parameter``, each a text."""
    given: dict[str, Json] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition('=')
        if not equals or not name:
            raise click.BadParameter(f'"{parameter}" has not the form NAME=VALUE', param_hint="'--parameter'")
        given[name] = value
    return given
