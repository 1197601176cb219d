"""The parts that read templates and environments: no process, no database."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from convergence.errors import ConvergenceError
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from convergence.template import EvaluationFailed, Installation, Require, StackIdentity, analyse, compile, preview
from convergence.template.limits import STANDARD
from convergence.template.merging import merge_environments
from tests.fuzz import corpus
from tests.fuzz.findings import Target

IDENTITY = StackIdentity('stack-id', 'stack', 'project')
REGISTRY = Registry.builtin()


class Identical:
    """Evaluates expressions to their data: what YAQL itself does is tried in tests of its own."""

    def evaluate(self, expression: str, data: Any, budget: Any) -> Any:
        """Return the input."""
        return data


INSTALLATION = Installation(yaql=Identical())


def clear(error: ConvergenceError) -> None:
    """An error tells an author something, and nothing of the inside."""
    text = str(error)
    assert text.strip(), 'an error without a text'
    for word in ('Traceback', ' object at 0x', 'NoneType', 'object has no attribute', "<class '"):
        assert word not in text, f'an error that shows the inside: {text[:200]}'


def read_template(text: str) -> bool:
    """Look at a template, as a check of it does, and compile it, as a create does."""
    try:
        observed_at = analyse(text, identity=IDENTITY, installation=INSTALLATION, require_parameters=Require.NONE)
        validate(observed_at, REGISTRY, ignore_unknown_types=True)
    except ConvergenceError as error:
        clear(error)
    try:
        compiled = compile(text, identity=IDENTITY, installation=INSTALLATION)
        validate(compiled, REGISTRY)
    except ConvergenceError as error:
        clear(error)
        return False
    for definition in compiled.goal.definitions.values():
        json.dumps([definition.properties, definition.metadata], allow_nan=False).encode()
        try:
            preview(definition.properties, {})
        except EvaluationFailed as error:
            clear(error)
    return True


def read_environment(text: str) -> bool:
    """Compile a template with an environment: its text, and what it means."""
    taken = False
    documents: list[Any] = [text]
    with contextlib.suppress(ValueError, RecursionError):
        documents.append(json.loads(text))
    for document in documents:
        if not isinstance(document, str | dict):
            continue
        try:
            compiled = compile(corpus.TEMPLATE, identity=IDENTITY, environment=document, installation=INSTALLATION)
            validate(compiled, REGISTRY)
            json.dumps({name: parameter.masked() for name, parameter in compiled.parameters.items()}, allow_nan=False)
            taken = True
        except ConvergenceError as error:
            clear(error)
    return taken


def read_merge(text: str) -> bool:
    """Merge environment files over what a request says, and compile the template with what comes out."""
    *parts, given = text.split(corpus.SEPARATOR)
    files = {f'{number}.yaml': part for number, part in enumerate(parts)}
    try:
        sections = json.loads(given)
    except (ValueError, RecursionError):
        sections = {}
    declared = compile(corpus.TEMPLATE, identity=IDENTITY, installation=INSTALLATION).parameters
    try:
        merged = merge_environments(
            tuple(files), files, sections if isinstance(sections, dict) else {}, declared, STANDARD
        )
        compile(corpus.TEMPLATE, identity=IDENTITY, environment=merged, installation=INSTALLATION)
    except ConvergenceError as error:
        clear(error)
        return False
    return True


TARGETS = {
    'reader': Target('reader', corpus.templates(), read_template),
    'environment': Target('environment', corpus.environments(), read_environment),
    'merge': Target('merge', corpus.merges(), read_merge),
}
