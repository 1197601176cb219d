"""Custom constraints about texts."""

from __future__ import annotations

from convergence.core.model import Json
from convergence.template.limits import STANDARD
from convergence.template.sources import parse_json


def check_json(value: Json) -> str | None:
    """``json_string``: text that is JSON."""
    if not isinstance(value, str):
        return 'it must be a text that is JSON'
    try:
        parse_json(value, STANDARD)
    except ValueError as error:
        return f'it is not JSON: {str(error).partition(":")[0]}'
    return None


def check_nothing(value: Json) -> str | None:
    """``test_constr``: any value. For trying out templates."""
    return None
