"""Applies the mappings and settings of the environment to the definitions of resources."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.model import Definition
from convergence.template.document import ParsedDocument
from convergence.template.environment import Environment
from convergence.template.limits import Budget
from convergence.template.mappings import SECTION, is_template
from convergence.values import replace


def substitute(
    definitions: Mapping[str, Definition],
    template: ParsedDocument,
    environment: Environment,
    files: Mapping[str, str],
    budget: Budget,
) -> dict[str, Definition]:
    """Return the definitions with implementing types, hooks and restrictions.

    :param template: the document of the definitions; cycles of mappings go to its problems.
    :raises RequestLimitExceeded: the environment takes too many steps.
    """
    mappings = environment.mappings
    result: dict[str, Definition] = {}
    for name, definition in definitions.items():
        budget.spend_steps(mappings.cost(), f'the {SECTION}')
        type_ = mappings.implementation(name, definition.type, files)
        if type_ is None:
            message = f'The {SECTION} maps {definition.type} to other types in a cycle.'
            template.problem(message, ('resources', name, 'type'))
            type_ = definition.type
        elif is_template(type_) and type_ not in files:
            message = f'The template "{type_}" of the resource {name} is not among the files that were sent.'
            template.problem(message, ('resources', name, 'type'))
        written = '' if type_ == definition.type else definition.type
        hooks, restrictions = mappings.hooks(name), mappings.restrictions(name)
        if written or hooks or restrictions:
            result[name] = replace(definition, type=type_, written_type=written, hooks=hooks, restrictions=restrictions)
        else:
            result[name] = definition
    return result
