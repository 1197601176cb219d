"""Custom constraints of Heat that ask a service, as templates have them for parameters: ``nova.keypair``."""

from __future__ import annotations

from convergence.core.model import Json


def asked_later(value: Json) -> str | None:
    """Nothing is wrong with `value`, as far as can be told where no service is asked.

    Templates are read in transactions. The service is asked when the first resource that uses the value is validated,
    before anything of it is made: the properties of Heat's classes have the same constraints.
    """
    return None
