"""Custom constraints of Heat that query a service, as templates have them for parameters: ``nova.keypair``."""

from __future__ import annotations

from convergence.core.model import Json


def asked_later(value: Json) -> str | None:
    """Accept every value: no service is queried here.

    Templates are read in transactions. The service is queried when the first resource that uses the value is
    validated, before anything of it is made: the properties of Heat's classes have the same constraints.
    """
    return None
