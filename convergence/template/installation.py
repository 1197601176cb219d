"""The settings of the reading process that do not depend on the user."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.template.constraints import ConstraintChecks
from convergence.template.functions.base import Yaql
from convergence.template.limits import STANDARD, Limits
from convergence.template.secrets import SecretPolicy


@dataclass(frozen=True, slots=True)
class Installation:
    """The settings for reading templates.

    :param limits: the limits of a template.
    :param checks: the custom constraints. None accepts every name and value, because accepted templates are not
        checked again.
    :param yaql: evaluates expressions. None leaves them to be evaluated later.
    :param secret_policy: the attributes of resource types that may reveal hidden properties. None: all of them.
    """

    limits: Limits = STANDARD
    checks: ConstraintChecks | None = None
    yaql: Yaql | None = None
    secret_policy: SecretPolicy | None = None


BARE = Installation()
"""Standard limits, and nothing else."""
