"""The differences between the object of a resource and the applied properties. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from convergence.core.model import Json
from convergence.core.observation import ObservationResult, ObservedState
from convergence.resources.schema import PropertySchema, exact_text
from convergence.resources.values import named

if TYPE_CHECKING:
    from convergence.resources.contract import Call, ResourceType


def differing(
    kind: ResourceType[Any], applied: Any, live: Mapping[str, Json], data: Mapping[str, Json]
) -> tuple[str, ...]:
    """Return the sorted names of the properties whose live values differ in meaning from the applied ones.

    A property that the template leaves open, that the service sets by itself, or that could not be read does not
    differ.

    :param applied: an instance of the type's dataclass of properties.
    :param live: as in `convergence.resources.contract.Observed`.
    :param data: private data of the resource.
    """
    wanted = named(applied)
    told = {
        name: value for name, value in live.items() if wanted.get(name) is not None and name not in kind.set_by_service
    }
    if all(exact_text(wanted[name]) == exact_text(value) for name, value in told.items()):
        return ()  # the usual case; the rest costs as much as the observation itself
    schema = PropertySchema.of(type(applied))
    before, after = (kind.canonical(schema.canonical(each), data) for each in (wanted, {**wanted, **told}))
    return tuple(sorted(name for name in told if exact_text(before.get(name)) != exact_text(after.get(name))))


def observe_object(kind: ResourceType[Any], call: Call[Any]) -> ObservationResult:
    """Observe an object and compare it with the applied properties. Checks and observers share this rule.

    :param call: with the properties that were applied last.
    :raises ObjectNotFound: the object does not exist. Any other error: the object could not be observed.
    """
    observed = kind.observe(call)
    if observed is None:
        return ObservationResult(ObservedState.UNKNOWN, reason=f'the type of {call.name} cannot observe it')
    if not observed.healthy:
        return ObservationResult(
            ObservedState.UNHEALTHY, reason=f'{call.name} ({call.physical_id}) is there, but of no use'
        )
    names = differing(kind, call.properties, observed.properties, call.data)
    if not names:
        return ObservationResult(ObservedState.HEALTHY)
    reason = f'{", ".join(names)} of {call.name} ({call.physical_id}) changed outside of the stack'
    return ObservationResult(ObservedState.DIFFERS, names, {name: observed.properties[name] for name in names}, reason)
