"""Makes the `Call` that a method of a resource type is given, from what the engine stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from convergence.core.model import Json
from convergence.core.rows import Pending, ReceivedSignal, Resource, Stack
from convergence.core.software import Holder, SoftwareRowsPort
from convergence.credentials.model import Credentials
from convergence.errors import StackValidationFailed
from convergence.resources.calls import never_cancelled, never_closed, no_signals
from convergence.resources.contract import Call, ResourceType, Signal, Signals
from convergence.resources.reading import Strictness
from convergence.resources.schema import PropertySchema
from convergence.resources.shapes import DeclaredProperties
from convergence.resources.software import ProjectSoftware
from convergence.values import quickly_made, replace


@quickly_made
@dataclass(frozen=True, slots=True)
class Subject:
    """The row of the engine that a call concerns. The fields are those of `Call`."""

    name: str
    stack_name: str
    stack_id: str
    project_id: str
    resource_id: str
    token: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    restored_from: Json = None
    revocation: str = ''
    type_name: str = ''

    @classmethod
    def of(cls, stack: Stack, row: Resource, pending: Pending | None = None) -> Self:
        """A row of a stack.

        :param pending: what the row is to become, for a call that makes it so.
        """
        return cls(
            name=row.name,
            stack_name=stack.name,
            stack_id=stack.id,
            project_id=stack.project_id,
            resource_id=row.id,
            token=row.token or '',
            physical_id=row.physical_id,
            data=row.data,
            metadata=pending.metadata if pending is not None else {},
            restored_from=pending.definition.restored_from if pending is not None else None,
            revocation=row.revocation,
            type_name=row.type,
        )


def build_call(
    kind: ResourceType[Any],
    subject: Subject,
    properties: Mapping[str, Json],
    *,
    previous: Mapping[str, Json] | None = None,
    strictness: Strictness = Strictness.STRICT,
    cancelled: Callable[[], bool] = never_cancelled,
    signals: Callable[[], Signals] = no_signals,
) -> Call[Any]:
    """Make the call for one method of `kind`.

    :param properties: the desired properties, all references resolved.
    :param previous: the properties as last applied, for `update` and `needs_replacement`. If they no longer fit the
        schema (the type's package was upgraded), they are read as far as possible.
    :param strictness: use `LENIENT` for a delete: wrong properties must not keep an object alive.
    :raises StackValidationFailed: the properties are wrong; carries all problems.
    """
    schema = PropertySchema.of(kind.Properties)
    return Call(
        properties=schema.parse(properties, strictness),
        name=subject.name,
        stack_name=subject.stack_name,
        stack_id=subject.stack_id,
        project_id=subject.project_id,
        resource_id=subject.resource_id,
        token=subject.token,
        physical_id=subject.physical_id,
        data=subject.data,
        metadata=subject.metadata,
        previous=None if previous is None else _as_well_as_possible(schema, previous),
        restored_from=subject.restored_from if isinstance(subject.restored_from, dict) else None,
        cancelled=cancelled,
        signals=signals,
        revocation=subject.revocation,
        type_name=subject.type_name,
    )


@dataclass(frozen=True, slots=True)
class CallAccess:
    """Data that a call can reach besides its object.

    :param signals: the signals of some rows, oldest first, each with the name of the resource.
    :param software: the store of software configurations and deployments; None: not reachable.
    :param credentials: gives the credentials with which the stack of an id acts for its user.
    """

    signals: Callable[[Sequence[str]], Iterable[tuple[str, ReceivedSignal]]]
    software: SoftwareRowsPort | None
    credentials: Callable[[str], Credentials]

    def given_to(
        self,
        call: Call[Any],
        row: Resource,
        pending: Pending | None = None,
        on_cancel: Callable[[Callable[[], object]], None] = never_closed,
    ) -> Call[Any]:
        """A call about a row, with these. What it writes there is refused when the row was claimed since."""
        return replace(
            call,
            signals=partial(heard_by, row, pending, self.signals),
            software=ProjectSoftware(self.software, call.project_id, Holder(row.id, row.fence)),
            credentials=partial(self.credentials, call.stack_id),
            on_cancel=on_cancel,
        )


def heard_by(
    resource: Resource, pending: Pending | None, read: Callable[[Sequence[str]], Iterable[tuple[str, ReceivedSignal]]]
) -> Signals:
    """Return the signals that an action of a row may read: its own, and those of the rows that it requires or will
    require.

    :param read: the signals of some rows, oldest first, each with the name of the resource.
    """
    rows = {resource.id, *resource.requires, *(pending.requires if pending is not None else ())}
    found: dict[str, list[Signal]] = {}
    for name, each in read(sorted(rows)):
        found.setdefault(name, []).append(Signal(each.details, each.at, each.resource_id))
    return {name: tuple(heard) for name, heard in found.items()}


def _as_well_as_possible(schema: PropertySchema, previous: Mapping[str, Json]) -> DeclaredProperties:
    try:
        return schema.parse(previous)
    except StackValidationFailed:
        return schema.parse(previous, Strictness.LENIENT)
