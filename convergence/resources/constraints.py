"""Constraints on the values of properties; parameters of templates have the same ones.

`Length`, `Range`, `Modulo`, `AllowedValues`, `AllowedPattern` and `custom` are for the authors of resource types.
Their messages never repeat the value of a property: it may be a secret.
"""

from __future__ import annotations

from convergence.resources.custom import installed_checks
from convergence.template.constraints import (
    AllowedPattern,
    AllowedValues,
    Constraint,
    CustomConstraint,
    Length,
    Modulo,
    Range,
)

__all__ = [
    'SELF_CONTAINED',
    'AllowedPattern',
    'AllowedValues',
    'Constraint',
    'CustomConstraint',
    'Length',
    'Modulo',
    'Range',
    'custom',
]

SELF_CONTAINED: frozenset[type[Constraint]] = frozenset({Length, Range, Modulo, AllowedValues, AllowedPattern})
"""The constraints that make no requests: a value that satisfies one of them always does."""


def custom(name: str, description: str = '') -> CustomConstraint:
    """A constraint that an installed package offers by name, for example ``custom('net_cidr')``.

    The name is resolved when a value is checked. If no package offers it then, the value is refused with a text that
    says so.
    """
    return CustomConstraint(name, description, lambda value: installed_checks().check(name, value))
