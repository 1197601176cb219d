"""Prints errors and warnings of templates as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from convergence.errors import Problem
from convergence.template.authoring.check import Findings


def as_text(console: Console, findings: Sequence[Findings]) -> None:
    """Print each problem with its place and excerpt, then a summary for each template.

    The place has the form ``file:line:column``, which editors and terminals can open.
    """
    for each in findings:
        for problem in each.errors:
            print_problem(console, problem, 'error', 'bold red', each.name)
        for problem in each.warnings:
            print_problem(console, problem, 'warning', 'bold yellow', each.name)
        _summary(console, each)


def as_json(findings: Sequence[Findings]) -> str:
    """Return all findings as a JSON document with valid, files, errors and warnings."""
    document: dict[str, Any] = {
        'valid': not any(each.errors for each in findings),
        'files': [each.name for each in findings],
        'errors': [problem.document() for each in findings for problem in each.errors],
        'warnings': [problem.document() for each in findings for problem in each.warnings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def print_problem(console: Console, problem: Problem, severity: str, style: str, name: str) -> None:
    """Print one problem.

    :param severity: ``error`` or ``warning``.
    :param name: the document, for problems without a place.
    """
    place = problem.place
    line = Text()
    if place is None:
        line.append(f'{name}: ', 'bold')
    elif place.line:
        line.append(f'{place.source}:{place.line}:{place.column}: ', 'bold')
    else:
        line.append(f'{place.source}: ', 'bold')
    line.append(f'{severity}: ', style)
    line.append(_harmless(problem.message))
    if problem.hint:
        line.append(f' {_harmless(problem.hint)}', 'cyan')
    console.print(line, soft_wrap=True)
    for number, excerpt in enumerate(problem.excerpt.splitlines()):
        console.print(Text(f'    {excerpt}', style if number else ''), soft_wrap=True)
    if place is not None and place.path:
        console.print(Text(_harmless(f'    in {".".join(map(str, place.path))}'), 'dim'), soft_wrap=True)


def _summary(console: Console, findings: Findings) -> None:
    counted = [
        _count(len(problems), noun)
        for problems, noun in ((findings.errors, 'error'), (findings.warnings, 'warning'))
        if problems
    ]
    if findings.errors or findings.compiled is None:
        console.print(Text(f'{findings.name}: {", ".join(counted)}', 'bold red'), soft_wrap=True)
        return
    compiled = findings.compiled
    sizes = [
        _count(len(compiled.goal.definitions), 'resource'),
        _count(sum(not parameter.pseudo for parameter in compiled.parameters.values()), 'parameter'),
        _count(len(compiled.outputs), 'output'),
    ]
    text = Text(f'{findings.name}: ')
    text.append('valid', 'bold green')
    text.append(f' (version {compiled.version}; {", ".join(sizes)})')
    if counted:
        text.append(f', {", ".join(counted)}', 'yellow')
    console.print(text, soft_wrap=True)


def _count(number: int, noun: str) -> str:
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def _harmless(text: str) -> str:
    """Return the text without the characters that a terminal acts upon."""
    return ''.join(character if character.isprintable() else '\N{REPLACEMENT CHARACTER}' for character in text)
