"""The desired properties of a resource, resolved, and the step that leads to them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergence import logs, template
from convergence.core.claim import Desired, Undesirable
from convergence.core.model import Change, Definition, Json, Output
from convergence.core.rows import Resource, with_accepted
from convergence.core.views import NodeView
from convergence.errors import RequestLimitExceeded, StackValidationFailed
from convergence.expressions import evaluator
from convergence.resources.comparison import compare
from convergence.resources.contract import ResourceType
from convergence.resources.invocation import Subject, build_call
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.resources.secrets import masked_texts, secret_properties
from convergence.resources.storable import carried, text_of
from convergence.template.functions.base import NotYetKnown, Yaql
from convergence.template.limits import STANDARD, Budget
from convergence.template.secrets import METADATA, PROPERTIES, within
from convergence.values import replace

LIGHT = replace(STANDARD, max_expanded_bytes=262_144, max_steps=50_000)
"""Limit of an evaluation while the row is locked: some milliseconds."""


class Heavy(Exception):
    """Evaluating the properties of a node costs more than is allowed while its row is locked.

    :ivar view: with the values to evaluate.
    """

    def __init__(self, view: NodeView) -> None:
        super().__init__(view.node.name)
        self.view = view


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The evaluated definition of a node.

    :param failure: the error of the evaluation; None if it succeeded.
    """

    definition: Definition
    inputs: Mapping[str, Output]
    properties: Json = None
    metadata: Json = None
    failure: BaseException | None = None


class Assessor:
    """Assesses nodes with the resource types of this process.

    :param most_bytes: maximum size of each kind of a resource's values, in bytes of JSON.
    """

    def __init__(self, registry: Registry, most_bytes: int = STANDARD.max_stored_bytes) -> None:
        self._registry = registry
        self._yaql = evaluator()
        self._most_bytes = most_bytes

    def __call__(self, view: NodeView, evaluated: Evaluated | None = None) -> Desired | Undesirable:
        """Return the desired properties and the change from the applied ones, or the reason why there are none.

        :param evaluated: the answer of `evaluate`; it is used if its definition and inputs are those of the view.
        :raises Heavy: the evaluation costs too much while the row is locked; call `evaluate` after the transaction.
        """
        definition, resource = view.node.definition, view.resource
        assert definition is not None
        assert resource is not None
        with logs.masking(definition.secrets):
            if evaluated is None or (evaluated.definition, evaluated.inputs) != (definition, view.inputs):
                try:
                    evaluated = self._evaluated(view, Budget(LIGHT), None)
                except (RequestLimitExceeded, NotYetKnown):
                    raise Heavy(view) from None
            return self._assess(view, evaluated, resource)

    def evaluate(self, view: NodeView) -> Evaluated:
        """Evaluate the desired properties of a node, within the limits of the language. Raises nothing."""
        assert view.node.definition is not None
        with logs.masking(view.node.definition.secrets):
            return self._evaluated(view, Budget(STANDARD), self._yaql)

    def _evaluated(self, view: NodeView, budget: Budget, yaql: Yaql | None) -> Evaluated:
        """Evaluate properties and metadata; without `yaql`, an evaluation that needs more raises.

        :raises RequestLimitExceeded: only without `yaql`: the evaluation exceeds the budget.
        :raises NotYetKnown: only without `yaql`: a value needs yaql.
        """
        assert view.node.definition is not None
        definition = view.node.definition

        def value(section: str, encoded: Json) -> Json:
            hidden = within(definition.masked_paths, section)
            return carried(
                template.resolve(encoded, view.inputs, yaql, budget, hidden=hidden), section, self._most_bytes
            )

        try:
            properties, metadata = value(PROPERTIES, definition.properties), value(METADATA, definition.metadata)
        except BaseException as error:
            if yaql is None and isinstance(error, RequestLimitExceeded | NotYetKnown):
                raise
            return Evaluated(definition, view.inputs, failure=error)
        return Evaluated(definition, view.inputs, properties, metadata)

    def _assess(self, view: NodeView, evaluated: Evaluated, resource: Resource) -> Desired | Undesirable:
        definition, properties = evaluated.definition, evaluated.properties
        try:
            if evaluated.failure is not None:
                return Undesirable(text_of(evaluated.failure))
            if not isinstance(properties, dict):
                return Undesirable(f'properties must be a map, not {type(properties).__name__}')
            logs.mask_also(secret_properties(self._registry, definition.type, properties))
            logs.mask_also(masked_texts(definition, properties))
            wanted, accepted = with_accepted(resource.accepted, properties)
            if accepted is not None:
                properties = dict(wanted)
                logs.mask_also(secret_properties(self._registry, definition.type, properties))
                logs.mask_also(masked_texts(definition, properties))
            # The template need not describe how an external object was made.
            change = Change.NONE if definition.external_id else self._change(view, resource, properties)
            renewed = self._registry.get(definition.type).renewed_by_updates
            return Desired(properties, change, evaluated.metadata, is_renewed=renewed, accepted=accepted)
        except BaseException as error:  # noqa: BLE001 - a type may raise anything; it must not end the worker
            return Undesirable(text_of(error))

    def _change(self, view: NodeView, resource: Resource, properties: dict[str, Json]) -> Change:
        definition = view.node.definition
        assert definition is not None
        kind = self._registry.get(definition.type)
        subject = Subject.of(view.stack, resource)
        check(kind, definition, properties)
        if resource.definition is None:
            return Change.IN_PLACE
        if resource.type != definition.type:
            return Change.REPLACE
        previous = resource.properties
        return compare(
            kind,
            previous,
            properties,
            lambda: build_call(kind, subject, properties, previous=previous),
            resource.data,
        )


def check(kind: ResourceType[Any], definition: Definition, properties: Mapping[str, Json]) -> None:
    """Check properties against the schema of their type.

    :raises StackValidationFailed: has all problems. A problem with a hidden value does not show the value.
    """
    hidden = within(definition.masked_paths, PROPERTIES)
    problems = PropertySchema.of(kind.Properties).check(properties, lambda *path: None, hidden)
    if problems:
        raise StackValidationFailed(problems)
