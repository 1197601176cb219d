"""Custom constraints about names in the domain name system."""

from __future__ import annotations

import re

from convergence.core.model import Json

LONGEST = 255
"""Characters of a whole name."""

_LABEL = re.compile('[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?', re.IGNORECASE | re.ASCII)
_TOP = re.compile('(?=.*[a-z])[a-z0-9-]{2,63}', re.IGNORECASE | re.ASCII)


def check_dns_name(value: Json) -> str | None:
    """``dns_name``: a name, relative or fully qualified. Empty is fine."""
    if not value:
        return None
    return _wrong(value)


def check_relative_dns_name(value: Json) -> str | None:
    """``rel_dns_name``: a name that a domain will be added to. Empty is fine."""
    if not value:
        return None
    if isinstance(value, str) and value.endswith('.'):
        return 'it must be a relative name: one without a trailing dot'
    return _wrong(value)


def check_dns_domain(value: Json) -> str | None:
    """``dns_domain``: the name of a domain, fully qualified: it ends with a dot. Empty is fine."""
    if not value:
        return None
    wrong = _wrong(value)
    if wrong is not None:
        return wrong
    if not str(value).endswith('.'):
        return 'it must be a fully qualified name: one that ends with a dot'
    return None if str(value).count('.') > 1 else 'it must have at least two labels'


def _wrong(value: Json) -> str | None:
    if not isinstance(value, str):
        return 'it must be a text'
    if len(value) > LONGEST:
        return f'it is longer than {LONGEST} characters'
    name = value.removesuffix('.')
    labels = name.split('.')
    if not all(_LABEL.fullmatch(label) for label in labels):
        return 'each label must have 1 to 63 letters, digits or hyphens, and no hyphen at its ends'
    if value.endswith('.') and not _TOP.fullmatch(labels[-1]):
        return 'the top level domain must have at least two characters, and not digits only'
    return None
