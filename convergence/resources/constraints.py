"""What a property's value must satisfy beyond its type: the constraints that parameters of templates have, too.

`Length`, `Range`, `Modulo`, `AllowedValues`, `AllowedPattern` and `custom` are for the authors of resource types.
What they say about a property never repeats its value: it may be a secret.
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
"""The constraints that ask nobody: what satisfies one of them once always does."""


def custom(name: str, description: str = '') -> CustomConstraint:
    """A condition that an installed package offers by name, for example ``custom('net_cidr')``.

    It is looked up when a value is checked; if no package offers it by then, the value is refused with a text that
    says so.
    """
    return CustomConstraint(name, description, lambda value: installed_checks().check(name, value))
