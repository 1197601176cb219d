"""Parameters: what a template declares, what is given, and what comes of it."""

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
"""Shown instead of a hidden value."""

OF_ALL = frozenset({'OS::project_id', 'AWS::Region'})
"""The pseudo parameters that are the same for all stacks of a project."""

CLOUD_REGION = 'ap-southeast-1'
"""What templates of CloudFormation get to know as their region; the field has always had this one."""


class Source(enum.Enum):
    """Where the value of a parameter came from."""

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
    :param default: typed; None where there is none.
    :param written_default: the default as the template writes it, for those who read the template.
    :param hidden: never show the value to anybody; `masked` takes care of it.
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
        """Is there a value at all?"""
        return self.source is not Source.MISSING

    @property
    def pseudo(self) -> bool:
        """Does the stack itself provide the value?"""
        return self.source is Source.STACK

    def satisfies(self, checks: ConstraintChecks) -> bool:
        """Whether the custom constraints hold now for the value and the default, as far as there are any.

        All that other constraints say depends on the template and the value alone.
        """
        values = [value for value in (self.default, self.value if self.has_value else None) if value is not None]
        return all(
            (check := checks.get(each.name)) is not None
            and all(replace(each, check_value=check).problem(value) is None for value in values)
            for each in self.constraints
            if isinstance(each, CustomConstraint)
        )

    def masked(self) -> Json:
        """The value as it may be shown: `******` if it is hidden."""
        return MASK if self.hidden and self.has_value else self.value


@dataclass(frozen=True, slots=True)
class StackIdentity:
    """Whose template it is; gives the pseudo parameters."""

    stack_id: str
    stack_name: str
    project_id: str

    @property
    def arn(self) -> str:
        """The stack in the form of a resource name, which clients may use wherever a stack is named."""
        return f'arn:openstack:heat::{self.project_id}:stacks/{self.stack_name}/{self.stack_id}'

    def of(self, names: Collection[str]) -> dict[str, Parameter]:
        """Those of the pseudo parameters, of all dialects, that have the names."""
        every = {**self.parameters(), **self.cloud_parameters()}
        return {name: every[name] for name in every if name in names}

    def parameters(self) -> dict[str, Parameter]:
        """The pseudo parameters, by name."""
        values = {
            'OS::stack_id': self.stack_id,
            'OS::stack_name': self.stack_name,
            'OS::project_id': self.project_id,
        }
        return {name: Parameter(name, value=value, source=Source.STACK) for name, value in values.items()}

    def cloud_parameters(self) -> dict[str, Parameter]:
        """The pseudo parameters of the dialect of CloudFormation, by name."""
        values = {'AWS::StackId': self.arn, 'AWS::StackName': self.stack_name, 'AWS::Region': CLOUD_REGION}
        return {name: Parameter(name, value=value, source=Source.STACK) for name, value in values.items()}
