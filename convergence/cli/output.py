"""Prints results: tables for people, JSON, YAML and plain values for programs.

Results go to standard output, all other messages to standard error. Columns keep their names and order; new columns
are added at the end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import click
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from convergence.cli.exits import UsageMistake
from convergence.documents import Document
from convergence.escaping import escaped, has_active

_STATE_STYLES = {'FAILED': 'bold red', 'COMPLETE': 'green', 'IN_PROGRESS': 'yellow', 'down': 'bold red', 'up': 'green'}
_UNLIMITED = 10_000


class Format(StrEnum):
    """The output formats."""

    TABLE = 'table'
    JSON = 'json'
    YAML = 'yaml'
    VALUE = 'value'


@dataclass(frozen=True, slots=True)
class ResultPrinter:
    """Prints results in one format.

    :param columns: keys to show; empty: all.
    """

    form: Format = Format.TABLE
    columns: tuple[str, ...] = ()

    @property
    def is_for_people(self) -> bool:
        """True if the output may have messages and colours."""
        return self.form is Format.TABLE

    def listing(self, columns: Sequence[str], documents: Iterable[Document]) -> None:
        """Print a list, one document per line.

        :param columns: the keys, in order.
        :raises UsageMistake: a column of ``--column`` does not exist.
        """
        chosen = self._chosen(columns)
        rows = [{column: document.get(column) for column in chosen} for document in documents]
        if self._dumped(rows):
            return
        if self.form is Format.VALUE:
            for row in rows:
                click.echo('\t'.join(escaped(_plain(value)) for value in row.values()))
            return
        table = _table()
        for column in chosen:
            table.add_column(column, overflow='fold', header_style='dim')
        for row in rows:
            table.add_row(*(_cell(value) for value in row.values()))
        _print(table)

    def record(self, document: Document) -> None:
        """Print one document, one line for each key."""
        chosen = {name: document[name] for name in self._chosen(list(document))}
        if self._dumped(chosen):
            return
        if self.form is Format.VALUE:
            # A single value, such as a key, may have several lines. Of several values each has one line.
            keep = '\n\t' if len(chosen) == 1 else ''
            for value in chosen.values():
                click.echo(escaped(_plain(value), keep))
            return
        table = _table(header=False)
        table.add_column(style='dim', no_wrap=True)
        table.add_column(overflow='fold')
        for name, value in chosen.items():
            table.add_row(Text(name), _cell(value))
        _print(table)

    def _dumped(self, document: Any) -> bool:
        if self.form is Format.JSON:
            say(json.dumps(document, indent=2, ensure_ascii=False))
        elif self.form is Format.YAML:
            say_yaml(document)
        else:
            return False
        return True

    def _chosen(self, columns: Sequence[str]) -> Sequence[str]:
        unknown = [name for name in self.columns if name not in columns]
        if unknown:
            raise UsageMistake(f'--column: unknown column {", ".join(unknown)}; there are {", ".join(columns)}.')
        return self.columns or columns


def say(text: str, *, nl: bool = True) -> None:
    """Print a text of several lines. Control characters are escaped as in JSON.

    :param nl: True to end with a line break.
    """
    click.echo(escaped(text, keep='\n\t'), nl=nl)


def say_yaml(document: Any) -> None:
    """Print a document as YAML."""
    say(yaml.dump(document, Dumper=_YamlDumper, sort_keys=False, allow_unicode=True), nl=False)


class _YamlDumper(yaml.SafeDumper):
    """Writes texts with control characters in quotes. YAML reads escapes only there."""


def _quoted_if_needed(dumper: _YamlDumper, text: str) -> yaml.ScalarNode:
    needs_quotes = has_active(text.replace('\n', ''))
    return dumper.represent_scalar('tag:yaml.org,2002:str', text, style='"' if needs_quotes else None)


_YamlDumper.add_representer(str, _quoted_if_needed)


def printable(text: str) -> str:
    """Return a text without the characters that a terminal acts upon."""
    return ''.join(each if each.isprintable() or each == '\n' else '\N{REPLACEMENT CHARACTER}' for each in text)


def state_style(state: str) -> str:
    """Return the style for a state such as ``CREATE_FAILED``."""
    return next(
        (style for ending, style in _STATE_STYLES.items() if state == ending or state.endswith(f'_{ending}')), ''
    )


def _print(table: Table) -> None:
    # A program that reads the output needs complete lines.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _UNLIMITED)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _table(*, header: bool = True) -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=header)


def _cell(value: Any) -> Text:
    text = _text(value, indent=2)
    return Text(printable(text), state_style(text) if isinstance(value, str) else '')


def _plain(value: Any) -> str:
    return _text(value, indent=None)


def _text(value: Any, indent: int | None) -> str:
    if value is None:
        return ''
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ', '.join(value)
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, indent=indent if isinstance(value, (dict, list)) else None, ensure_ascii=False)
    return str(value)
