"""How the object of a resource differs from what was applied to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from convergence.core.model import Json
from convergence.resources.schema import PropertySchema, exact_text
from convergence.resources.values import named

if TYPE_CHECKING:
    from convergence.resources.contract import ResourceType


def differing(
    kind: ResourceType[Any], applied: Any, live: Mapping[str, Json], data: Mapping[str, Json]
) -> tuple[str, ...]:
    """Names of the properties whose live values mean something else than the applied ones, sorted.

    What the template leaves open, what the service sets by itself and what nobody could read does not differ.

    :param applied: an instance of the type's dataclass of properties.
    :param live: as in `convergence.resources.contract.Observed`.
    :param data: private data of the resource.
    """
    wanted = named(applied)
    told = {
        name: value for name, value in live.items() if wanted.get(name) is not None and name not in kind.set_by_service
    }
    schema = PropertySchema.of(type(applied))
    before, after = (kind.canonical(schema.canonical(each), data) for each in (wanted, {**wanted, **told}))
    return tuple(sorted(name for name in told if exact_text(before.get(name)) != exact_text(after.get(name))))
