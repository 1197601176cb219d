"""Accepts drift on request: live values become the desired ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convergence import errors
from convergence.core.acceptance import AcceptanceOutcome, accept, withdraw
from convergence.core.observation import Observation, ObservationSource, ObservedState
from convergence.core.rows import Resource, Stack
from convergence.db.ports import ObservationsPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.db.scopes import HeldResource
from convergence.db.transaction import Transactions
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.operations.stacks import Stacks
from convergence.resources.schema import PropertySchema
from convergence.resources.secrets import made_from, secret_places
from convergence.template.secrets import PROPERTIES, within


class DriftAcceptance:
    """Accepts live values. An accepted value is in the database before a method returns."""

    def __init__(self, store: Transactions, stacks: Stacks, rows: ObservationsPort, new_id: Callable[[], str]) -> None:
        self._store = store
        self._stacks = stacks
        self._rows = rows
        self._new_id = new_id

    def accept_drift(
        self,
        context: Caller,
        stack_identity: Document,
        resource_name: str,
        properties: Sequence[str] | None = None,
    ) -> Document:
        """Accept live values of a resource as desired, until its template gives other values than now.

        :param properties: names of the properties; None: all that differ.
        :returns: ``{'resource_name': …, 'accepted': [name, …]}``.
        :raises ResourceNotFound: there is no such resource.
        :raises NotSupported: there is no drift to accept, or it cannot be accepted.
        :raises Invalid: a property does not differ.
        :raises StackValidationFailed: the type does not allow the live values; carries the problems.
        :raises ActionInProgress: an action of the resource is in progress.
        """
        stack = self._stacks.find(context, stack_identity)
        row = self._row(stack, resource_name)
        seen = self._differing(stack, row)
        names = self._chosen(stack, row, seen, properties)
        self._check(row, seen, names)
        committed = self._store.transact(HeldResource(row.id), lambda view: accept(view, seen, names, self._new_id))
        self._require_done(stack, row, committed.verdict if committed is not None else AcceptanceOutcome.ABSENT)
        self._rows.request([stack.id], ObservationSource.REQUEST, [row.id])
        return {'resource_name': row.name, 'accepted': names}

    def withdraw_acceptance(self, context: Caller, stack_identity: Document, resource_name: str) -> Document:
        """Withdraw the accepted values of a resource: the values of its template are desired again, and the object
        differs.

        :returns: ``{'resource_name': …, 'withdrawn': [name, …]}``.
        :raises ResourceNotFound: there is no such resource.
        :raises NotSupported: no value was accepted.
        :raises ActionInProgress: an action of the resource is in progress.
        """
        stack = self._stacks.find(context, stack_identity)
        row = self._row(stack, resource_name)
        if row.accepted is None:
            raise errors.NotSupported(f'Nothing of resource {row.name} of stack {stack.name} was accepted.')
        committed = self._store.transact(HeldResource(row.id), lambda view: withdraw(view, self._new_id))
        self._require_done(stack, row, committed.verdict if committed is not None else AcceptanceOutcome.ABSENT)
        self._rows.request([stack.id], ObservationSource.REQUEST, [row.id])
        return {'resource_name': row.name, 'withdrawn': sorted(row.accepted.live)}

    def _row(self, stack: Stack, name: str) -> Resource:
        found = in_service(self._stacks.reader.resources_named(stack.id, [name]), stack.template_id).get(name)
        if found is None:
            raise errors.ResourceNotFound(f'The Resource ({name}) could not be found in Stack {stack.name}.')
        return found

    @staticmethod
    def _require_done(stack: Stack, row: Resource, outcome: AcceptanceOutcome) -> None:
        where = f'Resource {row.name} of stack {stack.name}'
        if outcome is AcceptanceOutcome.BUSY:
            raise errors.ActionInProgress(f'{where} has an action ({row.action}) in progress; wait for its end.')
        if outcome is not AcceptanceOutcome.DONE:
            raise errors.ActionInProgress(
                f'{where} has changed since its observation; request a new one (convergence stack drift --refresh).'
            )

    def _differing(self, stack: Stack, row: Resource) -> Observation:
        """The observation of an object whose properties differ.

        :raises NotSupported: no difference is known.
        """
        seen = self._rows.of_row(row)
        if seen is not None and seen.found is ObservedState.DIFFERS:
            return seen
        where = f'Resource {row.name} of stack {stack.name}'
        if seen is None or not seen.found.is_drift:
            raise errors.NotSupported(
                f'{where} has no known drift; request an observation first (convergence stack drift --refresh).'
            )
        raise errors.NotSupported(
            f'{where} has no live values that could be accepted: its object is {seen.found}. Have it repaired, or '
            'take it out of the template.'
        )

    def _chosen(self, stack: Stack, row: Resource, seen: Observation, asked: Sequence[str] | None) -> list[str]:
        """The properties that are accepted, sorted."""
        where = f'resource {row.name} of stack {stack.name}'
        names = sorted(seen.names if asked is None else set(asked))
        for name in names:
            if name not in seen.names:
                raise errors.Invalid(f'{name} of {where} does not differ; these properties do: {", ".join(seen.names)}')
            if name not in seen.live:
                raise errors.NotSupported(
                    f'The live value of {name} of {where} is larger than the maximum stored size.'
                )
            if any(place[:1] == (name,) and len(place) > 1 for place in self._hidden(row)):
                raise errors.NotSupported(
                    f'A part of {name} of {where} is hidden, so its live value cannot be compared; put it into '
                    'the template.'
                )
        return names

    def _hidden(self, row: Resource) -> list[tuple[str | int, ...]]:
        types = self._stacks.compiler.types
        masked_paths = [place for each in made_from(row) for place in within(each.masked_paths, PROPERTIES)]
        return [*masked_paths, *secret_places(types, row.type, row.properties)]

    def _check(self, row: Resource, seen: Observation, names: Sequence[str]) -> None:
        """Check that the type accepts the live values in a template, because the next update applies them."""
        schema = PropertySchema.of(self._stacks.compiler.types.get(row.type).Properties)
        live = {**row.properties, **{name: seen.live[name] for name in names}}
        problems = schema.check(live, lambda *path: None, self._hidden(row))
        if problems:
            raise errors.StackValidationFailed(problems)
