"""Parameters with their declarations and values, and pseudo parameters."""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass, field

from convergence import secrecy
from convergence.core.model import Json
from convergence.template.constraints import Constraint, ConstraintChecks, CustomConstraint
from convergence.template.values import ParameterType
from convergence.values import replace

MASK = secrecy.MASK
"""The text shown instead of a hidden value."""

OF_ALL = frozenset({'OS::project_id', 'AWS::Region'})
"""The pseudo parameters that are the same for all stacks of a project."""

CLOUD_REGION = 'ap-southeast-1'
"""The region in templates of CloudFormation. Heat has always used this one."""


class Source(enum.Enum):
    """The source of a parameter's value."""

    REQUEST = 'request'
    ENVIRONMENT = 'environment'
    ENVIRONMENT_DEFAULT = 'environment parameter_defaults'
    TEMPLATE = 'template default'
    STACK = 'stack'
    MISSING = 'missing'


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, its declaration and its value. The representation shows neither value nor default.

    :param value: typed; None while the source is `MISSING`.
    :param default: typed; None without one.
    :param written_default: the default as the template writes it, for readers of the template.
    :param hidden: the value is secret; `masked` hides it.
    :param immutable: an update may not change the value.
    """

    name: str
    type: ParameterType = ParameterType.STRING
    value: Json = field(default=None, repr=False)
    source: Source = Source.MISSING
    default: Json = field(default=None, repr=False)
    written_default: Json = field(default=None, repr=False)
    description: str = ''
    label: str = ''
    hidden: bool = False
    immutable: bool = False
    tags: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    @property
    def has_value(self) -> bool:
        """True if there is a value."""
        return self.source is not Source.MISSING

    @property
    def pseudo(self) -> bool:
        """True if the stack itself provides the value."""
        return self.source is Source.STACK

    def satisfies(self, checks: ConstraintChecks) -> bool:
        """Return True if value and default satisfy the custom constraints now.

        Other constraints depend only on the template and the value.
        """
        values = [value for value in (self.default, self.value if self.has_value else None) if value is not None]
        return all(
            (check := checks.get(each.name)) is not None
            and all(replace(each, check_value=check).problem(value) is None for value in values)
            for each in self.constraints
            if isinstance(each, CustomConstraint)
        )

    def masked(self) -> Json:
        """Return the value for display: `******` if it is hidden."""
        return MASK if self.hidden and self.has_value else self.value


@dataclass(frozen=True, slots=True)
class StackIdentity:
    """The stack of a template. It provides the pseudo parameters."""

    stack_id: str
    stack_name: str
    project_id: str

    @property
    def arn(self) -> str:
        """Return the stack as an ARN. Clients may use it in place of a name."""
        return f'arn:openstack:heat::{self.project_id}:stacks/{self.stack_name}/{self.stack_id}'

    def of(self, names: Collection[str]) -> dict[str, Parameter]:
        """Return the pseudo parameters of all dialects with the given names."""
        every = {**self.parameters(), **self.cloud_parameters()}
        return {name: every[name] for name in every if name in names}

    def parameters(self) -> dict[str, Parameter]:
        """Return the pseudo parameters by name."""
        values = {
            'OS::stack_id': self.stack_id,
            'OS::stack_name': self.stack_name,
            'OS::project_id': self.project_id,
        }
        return {name: Parameter(name, value=value, source=Source.STACK) for name, value in values.items()}

    def cloud_parameters(self) -> dict[str, Parameter]:
        """Return the pseudo parameters of CloudFormation by name."""
        values = {'AWS::StackId': self.arn, 'AWS::StackName': self.stack_name, 'AWS::Region': CLOUD_REGION}
        return {name: Parameter(name, value=value, source=Source.STACK) for name, value in values.items()}
