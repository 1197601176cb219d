"""The digest of the definition and inputs of the last success of a resource.

Two digests are equal if the definition, the required rows and the input values are the same: then the resource needs no
action.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from convergence.core.model import Definition, Json, Output

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(',', ':'))


def digest(definition: Definition, inputs: Mapping[str, Output]) -> str:
    """Return the digest of a definition together with the outputs that it uses.

    :param inputs: output of each requirement, by name.
    :returns: 64 hexadecimal digits.
    :raises KeyError: a requirement has no input.
    """
    used: dict[str, Json] = {}
    for name in definition.requires:
        output = inputs[name]
        values: dict[str, Json] = {}
        for attribute in definition.uses.get(name, ()):
            values[attribute] = [output.attributes.get(attribute), output.errors.get(attribute)]
        used[name] = [output.resource_id, output.reference, values]
    text = f'[{_text_of(definition)},{_CANONICAL.encode(used)}]'
    return hashlib.sha256(text.encode()).hexdigest()


def _text_of(definition: Definition) -> str:
    """Return the definition as canonical JSON. The definition caches it, because each update of a goal needs it."""
    text: str = getattr(definition, 'canonical', '')
    if not text:
        document = definition.document()
        # Masking of values and the origin of requirements do not change the resource.
        for name in ('secrets', 'harmless', 'implied'):
            document.pop(name, None)
        text = _CANONICAL.encode(document)
        object.__setattr__(definition, 'canonical', text)
    return text


def repeatable(resource_id: str, before: str | None, template_id: str | None, inputs: Mapping[str, Output]) -> str:
    """Return a token that is the same whenever the creation begins again from the same row for the same goal.

    The token is public, so it depends on public values only.

    :param before: the token of the row's earlier creation, if there was one.
    :param inputs: output of each requirement, by name. With other required objects it is another creation.
    :returns: a UUID.
    """
    used: Json = {name: [output.resource_id, output.reference] for name, output in inputs.items()}
    text = _CANONICAL.encode([resource_id, before, template_id, used])
    made = hashlib.sha256(text.encode()).hexdigest()
    return '-'.join((made[:8], made[8:12], made[12:16], made[16:20], made[20:32]))
