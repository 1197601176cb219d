"""Environments: values for parameters that travel with a template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Json
from convergence.errors import InvalidTemplateSection
from convergence.template.document import Document
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import read

NAME = 'environment'
_VALUES = ('parameters', 'parameter_defaults')
_NOT_OFFERED = ('resource_registry', 'encrypted_param_names', 'event_sinks', 'parameter_merge_strategies')


@dataclass(frozen=True, slots=True)
class Environment:
    """What an environment says.

    :param parameters: values, by name; each name must be declared.
    :param defaults: values for those that the template happens to declare.
    """

    document: Document
    parameters: Mapping[str, Json] = field(default_factory=dict)
    defaults: Mapping[str, Json] = field(default_factory=dict)


def read_environment(source: str | Mapping[str, Any] | None, limits: Limits, problems: Problems) -> Environment:
    """The environment. None and empty text are an empty one.

    :raises StackValidationFailed: nothing can be made of it. Lesser problems are added to `problems`.
    :raises RequestLimitExceeded: too large, too deep.
    """
    document = read(source or {}, NAME, limits, problems)
    root = document.root
    if root is None:
        return Environment(document)
    if not isinstance(root, dict):
        document.problem('The environment must be a map of sections.', ())
        return Environment(document)
    for section, content in root.items():
        _check_section(document, section, content)
    values = [content if isinstance(content := root.get(section), dict) else {} for section in _VALUES]
    return Environment(document, *values)


def _check_section(document: Document, section: str, content: Json) -> None:
    path = (section,)
    wrong = f'environment has wrong section "{section}"'
    if section not in _VALUES + _NOT_OFFERED:
        hint = document.problems.suggestion(section, _VALUES + _NOT_OFFERED)
        document.key_problem(wrong + hint, path, InvalidTemplateSection)
    elif content is None:
        document.key_problem(f'{wrong}: it is null; give it content or remove it', path, InvalidTemplateSection)
    elif section in _VALUES and not isinstance(content, dict):
        document.problem(f'The section {section} of the environment must be a map.', path)
    elif section in _NOT_OFFERED and content:
        document.key_problem(f'The section {section} is not offered by this installation; remove it.', path)
