"""Prints lint findings as text, JSON or SARIF. Code hosts and editors show SARIF at the lines of a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from rich.console import Console

from convergence import __version__
from convergence.cli.problems import print_problem
from convergence.errors import Problem
from convergence.template.authoring.lint import RULES, LintResult

_SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'
_STYLES = {'error': 'bold red', 'warning': 'bold yellow'}


def as_text(console: Console, results: Sequence[LintResult]) -> None:
    """Print each finding with place, rule and excerpt, in the form of compilers."""
    for result in results:
        for severity, problem in result.problems():
            print_problem(console, problem, f'{severity} [{problem.kind}]', _STYLES[severity], result.name)


def as_json(results: Sequence[LintResult]) -> str:
    """Return a JSON list with an entry for each finding."""
    found = [
        {'severity': severity, 'rule': problem.kind, **_without_kind(problem), 'file': _file(result, problem)}
        for result in results
        for severity, problem in result.problems()
    ]
    return json.dumps(found, indent=2, ensure_ascii=False)


def as_sarif(results: Sequence[LintResult]) -> str:
    """Return the findings in the Static Analysis Results Interchange Format, version 2.1.0."""
    described = {rule.id: rule.meaning for rule in RULES}
    kinds = {problem.kind for result in results for _, problem in result.problems()}
    rules: list[dict[str, Any]] = [
        {'id': kind, 'shortDescription': {'text': described.get(kind, 'An error in the template.')}}
        for kind in sorted({*kinds, *described})
    ]
    found = [
        {
            'ruleId': problem.kind,
            'level': severity,
            'message': {'text': f'{problem.message} {problem.hint}'.strip()},
            'locations': [{'physicalLocation': _location(result, problem)}],
        }
        for result in results
        for severity, problem in result.problems()
    ]
    driver = {'name': 'convergence template lint', 'version': __version__, 'rules': rules}
    run = {'tool': {'driver': driver}, 'columnKind': 'unicodeCodePoints', 'results': found}
    return json.dumps({'$schema': _SCHEMA, 'version': '2.1.0', 'runs': [run]}, indent=2, ensure_ascii=False)


def _without_kind(problem: Problem) -> dict[str, Any]:
    return {name: value for name, value in problem.document().items() if name not in ('kind', 'type', 'file')}


def _file(result: LintResult, problem: Problem) -> str:
    return problem.place.source if problem.place else result.name


def _location(result: LintResult, problem: Problem) -> dict[str, Any]:
    location: dict[str, Any] = {'artifactLocation': {'uri': quote(_file(result, problem))}}
    if problem.place is not None and problem.place.line:
        location['region'] = {'startLine': problem.place.line, 'startColumn': problem.place.column}
    return location
