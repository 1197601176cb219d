"""What the template wants of a resource, resolved, and what it takes to get there. Pure."""

from __future__ import annotations

from convergence import logs, template
from convergence.core.claim import Unwantable, Wanted
from convergence.core.model import Change, Definition, Json
from convergence.core.rows import Resource
from convergence.core.views import NodeView
from convergence.expressions import evaluator
from convergence.resources.comparison import compare
from convergence.resources.invocation import Subject, build_call
from convergence.resources.registry import Registry
from convergence.resources.secrets import secret_properties
from convergence.worker.storable import text_of


class Assessor:
    """Assesses nodes with the resource types of this process."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._yaql = evaluator()

    def __call__(self, view: NodeView) -> Wanted | Unwantable:
        """The wanted properties, and the change from the row's, or why they cannot be had."""
        definition, resource = view.node.definition, view.resource
        assert definition is not None
        assert resource is not None
        with logs.concealing(definition.secrets):
            return self._assess(view, definition, resource)

    def _assess(self, view: NodeView, definition: Definition, resource: Resource) -> Wanted | Unwantable:
        try:
            properties = template.resolve(definition.properties, view.inputs, self._yaql)
            if not isinstance(properties, dict):
                return Unwantable(f'properties must be a map, not {type(properties).__name__}')
            logs.conceal(secret_properties(self._registry, definition.type, properties))
            metadata = template.resolve(definition.metadata, view.inputs, self._yaql)
            # Of an object that belongs to others the template need not say how it was made.
            change = Change.NONE if definition.external_id else self._change(view, resource, properties)
            if change is Change.NONE and _is_brought_back(view, resource):
                change = Change.IN_PLACE
            renewed = self._registry.get(definition.type).renewed_by_updates
            if renewed and change is Change.NONE and _is_of_another_template(view, resource):
                change = Change.REPLACE
            return Wanted(properties, change, metadata, is_renewed=renewed)
        except BaseException as error:  # noqa: BLE001 - a type's own code was asked; it must not end the worker
            return Unwantable(text_of(error))

    def _change(self, view: NodeView, resource: Resource, properties: dict[str, Json]) -> Change:
        definition = view.node.definition
        assert definition is not None
        kind = self._registry.get(definition.type)
        subject = subject_of(view, resource)
        build_call(kind, subject, properties)  # refuses values that the schema does not allow
        if resource.definition is None:
            return Change.IN_PLACE
        if resource.type != definition.type:
            return Change.REPLACE
        previous = resource.properties
        return compare(kind, previous, properties, lambda: build_call(kind, subject, properties, previous=previous))


def _is_of_another_template(view: NodeView, resource: Resource) -> bool:
    """Whether the row was made by another operation than the one that looks at it now."""
    return resource.definition is not None and resource.template_id != view.traversal.template_id


def _is_brought_back(view: NodeView, resource: Resource) -> bool:
    """Whether the type has to restore what it has kept for a snapshot, whatever the properties are."""
    kept = view.node.definition.restored_from if view.node.definition is not None else None
    before = resource.definition.restored_from if resource.definition is not None else None
    return kept is not None and kept != before


def subject_of(view: NodeView, resource: Resource) -> Subject:
    """The row that a call is about."""
    return Subject(
        name=resource.name,
        stack_name=view.stack.name,
        stack_id=view.stack.id,
        project_id=view.stack.project_id,
        resource_id=resource.id,
        token=resource.token or '',
        physical_id=resource.physical_id,
        data=resource.data,
    )
