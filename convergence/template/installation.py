"""What a template finds where it is read: everything that does not depend on who sent it."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.template.constraints import ConstraintChecks
from convergence.template.functions.base import Yaql
from convergence.template.limits import STANDARD, Limits
from convergence.template.secrets import SecretPolicy


@dataclass(frozen=True, slots=True)
class Installation:
    """What the one who reads templates sets and has.

    :param limits: what a template may cost.
    :param checks: the custom constraints that there are. None accepts every name and value of a custom constraint:
        for what was accepted once is not questioned again.
    :param yaql: evaluates expressions. None leaves them to be evaluated later.
    :param discretion: what the attributes of resource types may tell of hidden properties. None: whatever there is.
    """

    limits: Limits = STANDARD
    checks: ConstraintChecks | None = None
    yaql: Yaql | None = None
    secret_policy: SecretPolicy | None = None


BARE = Installation()
"""Standard limits, and nothing else."""
