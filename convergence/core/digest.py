"""The digest of what a success was made from.

Two digests are equal when a resource would be made from the same definition, on top of the same rows, given the same
values: then there is nothing to do for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from convergence.core.model import Definition, Json, Output

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(',', ':'))


def digest(definition: Definition, inputs: Mapping[str, Output]) -> str:
    """Digest of a definition together with the outputs that it uses.

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
    """The definition as canonical JSON. It is kept with it: that of a goal is asked for with each update."""
    text: str = getattr(definition, 'canonical', '')
    if not text:
        document = definition.document()
        # What must not be shown of a value, or who says that something is required, does not make it another resource.
        for name in ('secrets', 'harmless', 'implied'):
            document.pop(name, None)
        text = _CANONICAL.encode(document)
        object.__setattr__(definition, 'canonical', text)
    return text


def repeatable(resource_id: str, before: str | None, template_id: str | None, inputs: Mapping[str, Output]) -> str:
    """The token of a creation that has the same one whenever it is begun anew from the same row for the same goal.

    Only what everybody may see goes into it, for everybody may see it.

    :param before: the token of the row's creation before, if there was one.
    :param inputs: output of each requirement, by name. Built on other objects it is another creation.
    :returns: a UUID.
    """
    used: Json = {name: [output.resource_id, output.reference] for name, output in inputs.items()}
    text = _CANONICAL.encode([resource_id, before, template_id, used])
    made = hashlib.sha256(text.encode()).hexdigest()
    return '-'.join((made[:8], made[8:12], made[12:16], made[16:20], made[20:32]))
