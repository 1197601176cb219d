"""Drift of a stack: its goal, the properties last applied, and the live ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convergence import errors, template
from convergence.core.model import Definition, Json, Output
from convergence.core.observation import DriftSummary, KnownObject, ObservationSource, ObservedState
from convergence.core.rows import Resource, Stack, with_accepted
from convergence.db.ports import ObservationsPort, RosterPort
from convergence.db.repositories.reads.stacks import StackReader
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.reads import formats
from convergence.engine.reads.below import stacks_below
from convergence.engine.reads.reading import Reading
from convergence.expressions import evaluator
from convergence.resources.schema import PropertySchema
from convergence.resources.secrets import known_secrets, made_from, secret_places
from convergence.secrecy import MASK, masked_at, without
from convergence.template.secrets import PROPERTIES, within


class DriftReads(Reading[StackReader]):
    """Shows observations, and requests new ones.

    :param enrol: schedules observations for the objects of a stack.
    """

    def __init__(
        self,
        reader: StackReader,
        compiler: TemplateCompiler,
        objects: ObservationsPort,
        roster: RosterPort,
        schedule: Callable[[Stack], None],
    ) -> None:
        super().__init__(reader, compiler)
        self._objects = objects
        self._roster = roster
        self._enrol = schedule

    def stack_drift(
        self,
        context: Caller,
        stack_identity: Mapping[str, Any],
        nested_depth: int | None = None,
        with_healthy: bool = False,
    ) -> Document:
        """The drift of a stack.

        :param nested_depth: number of levels of nested stacks to include; None: none.
        :param with_healthy: also list objects without drift.
        :returns: `observed`: number of observed objects; `seen`: of those with an observation; `drifted`: of those with
            drift; `since`, and `looked_at`, the time of the latest observation; `waiting`: number of requested
            observations that are pending; `observers`: number of running observers; `resources`, each with its `path`,
            `resource_type`, `physical_resource_id`, `state`, `reason`, `since`, `looked_at`, the `source` of the
            observation, the `policy` that applies, the number of `repairs` in a row, `given_up`, the names of
            properties whose live values were `accepted`, and `properties`: of each that differs `name`, and the values
            `wanted`, `applied` and `live`.
        """
        stacks = self._tree(context, stack_identity, nested_depth)
        paths = {stack.id: path for path, stack in stacks.items()}
        known = self._objects.known(list(paths))
        shown = [each for each in known if with_healthy or each.observation.found is not ObservedState.HEALTHY]
        of: dict[str, list[KnownObject]] = defaultdict(list)
        for each in shown:
            of[each.row.stack_id].append(each)
        resources = [
            self._shown_object(path, each, goal)
            for path, stack in stacks.items()
            for each, goal in self._with_goals(stack, of[stack.id])
        ]
        return {
            **formats.drift_summary(DriftSummary.of(each.observation for each in known)),
            'waiting': self._objects.waiting(list(paths)),
            'observers': self._observers(),
            'resources': resources,
        }

    def observe_stack(
        self, context: Caller, stack_identity: Mapping[str, Any], nested_depth: int | None = None
    ) -> Document:
        """Request observations of the objects of a stack; returns before they are made.

        :param nested_depth: as for `stack_drift`.
        :returns: `waiting`: number of pending observations; `observers`: number of running observers.
        """
        stacks = list(self._tree(context, stack_identity, nested_depth).values())
        for stack in stacks:
            self._enrol(stack)
        keys = [stack.id for stack in stacks]
        self._objects.request(keys, ObservationSource.REQUEST)
        return {'waiting': self._objects.waiting(keys), 'observers': self._observers()}

    def _observers(self) -> int:
        return sum(each.kind == 'observer' and each.is_up for each in self._roster.services())

    def _tree(self, context: Caller, identity: Mapping[str, Any], depth: int | None) -> dict[str, Stack]:
        """The stack, and the stacks nested in it, by their paths."""
        stack = self._stack(context, identity)
        return {'': stack, **stacks_below(self._reader, stack, depth or 0)}

    def _with_goals(self, stack: Stack, known: Sequence[KnownObject]) -> list[tuple[KnownObject, Mapping[str, Json]]]:
        """Each object with the desired properties of its goal, as far as they are known, masked."""
        differing = [each for each in known if each.observation.names]
        compiled = self._compiled(stack) if differing else None
        wanted = compiled.goal.definitions if compiled is not None else {}
        definitions = {each.row.name: wanted[each.row.name] for each in differing if each.row.name in wanted}
        outputs = self._outputs_of(stack, [each.properties for each in definitions.values()])
        goals = {
            each.row.name: self._wanted(definitions[each.row.name], outputs, each.row)
            for each in differing
            if each.row.name in definitions
        }
        return [(each, goals.get(each.row.name, {})) for each in known]

    def _wanted(self, definition: Definition, outputs: Mapping[str, Output], row: Resource) -> Mapping[str, Json]:
        hidden = within(definition.masked_paths, PROPERTIES)
        try:
            resolved = template.resolve(definition.properties, outputs, evaluator(), None, hidden)
        except errors.ConvergenceError:
            return {}
        if not isinstance(resolved, dict):
            return {}
        resolved = self._with_defaults(row.type, with_accepted(row.accepted, resolved)[0])
        shown = masked_at(resolved, [*hidden, *secret_places(self._compiler.types, definition.type, resolved)])
        masked: Mapping[str, Json] = without(shown, definition.secrets)
        return masked

    def _with_defaults(self, type_name: str, properties: Mapping[str, Json]) -> dict[str, Json]:
        """Properties, with the type's defaults for those that the template leaves out."""
        try:
            kind = self._compiler.types.get(type_name)
        except errors.EntityNotFound:
            return dict(properties)
        return {**PropertySchema.of(kind.Properties).canonical({}), **properties}

    def _shown_object(self, path: str, each: KnownObject, goal: Mapping[str, Json]) -> Document:
        row, seen = each.row, each.observation
        secrets = known_secrets(row, self._compiler.types)
        hides, applied = self._hidden_names(row), self._with_defaults(row.type, row.properties)

        def shown(name: str, value: Json) -> Json:
            # A live value may have another shape than the applied one, so all of it is hidden with a part of that.
            return MASK if value is not None and (name in hides or None in hides) else without(value, secrets)

        return {
            'resource_name': row.name,
            'path': f'{path}/{row.name}' if path else row.name,
            'resource_type': row.shown_type,
            'physical_resource_id': row.physical_id or '',
            'state': seen.found.value,
            'reason': without(seen.reason, secrets),
            'since': formats.moment(seen.since) if seen.observed_at is not None else None,
            'looked_at': formats.moment(seen.observed_at),
            'policy': seen.policy.value,
            'repairs': seen.repairs,
            'given_up': seen.given_up,
            'source': seen.source.value if seen.observed_at is not None else None,
            'accepted': sorted(row.accepted.live) if row.accepted is not None else [],
            'properties': [
                {
                    'name': name,
                    'wanted': goal.get(name),
                    'applied': shown(name, applied.get(name)),
                    'live': shown(name, seen.live.get(name)),
                }
                for name in seen.names
            ],
        }

    def _hidden_names(self, row: Resource) -> set[Any]:
        """The properties with hidden parts; None among them means any property."""
        places = [
            place
            for definition in made_from(row)
            for place in (
                *within(definition.masked_paths, PROPERTIES),
                *secret_places(self._compiler.types, row.type, row.properties),
            )
        ]
        return {place[0] if place else None for place in places}
