"""The values that nested stacks provide to their parent stacks."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from typing_extensions import override

from convergence import errors, template
from convergence.core.model import Json, Status
from convergence.core.nesting import is_doubted
from convergence.core.rows import Resource, Stack
from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.resources.attributes import attribute_names, read_attribute
from convergence.resources.contract import PluginFailure, ResourceType
from convergence.resources.invocation import Subject, build_call
from convergence.resources.nesting import NestedValues, NoNestedStack
from convergence.resources.reading import Strictness
from convergence.values import replace


class NestedReads:
    """Reads nested stacks for the workers that drive the resources whose objects they are."""

    def __init__(self, reader: ReaderPort, compiler: TemplateCompiler) -> None:
        self._reader = reader
        self._compiler = compiler

    def read_nested_stack(self, context: Caller, stack_id: str) -> Document:
        """The values of a nested stack: the fields of `NestedValues`.

        :raises EntityNotFound: the stack is gone.
        """
        return self.told(stack_id)

    def told(self, stack_id: str) -> Document:
        """See `read_nested_stack`."""
        stack = self._reader.stack(stack_id)
        if stack is None or stack.deleted_at is not None or stack.template_id is None:
            raise errors.EntityNotFound('Stack', stack_id)
        compiled = self._compiler.compiled(stack, stack.template_id)
        rows = in_service(self._reader.resources(stack.id), stack.template_id)
        inputs = {name: row.output for name, row in rows.items() if row.output is not None}
        values, failures = {}, {}
        for name, output in compiled.outputs.items():
            try:
                values[name] = template.resolve(output.value, inputs, self._compiler.analyser.yaql)
            except errors.ConvergenceError as error:
                failures[name] = str(error)
        return {
            'outputs': values,
            'errors': failures,
            'resources': {name: _told(row) for name, row in rows.items()},
            'name': stack.name,
        }


def _told(row: Resource) -> Document:
    output = row.output
    told: dict[str, Json] = {}
    if output is not None:
        every = output.attributes.get('')
        told = {**output.shown, **(every if isinstance(every, dict) else {}), **output.attributes}
    return {
        'reference': output.reference if output is not None else None,
        'physical_id': row.physical_id,
        'attributes': {name: value for name, value in told.items() if name},
        'errors': dict(output.errors) if output is not None else {},
        'made_at': row.created_at,
        'failed': row.status is Status.FAILED,
    }


def is_out_of_date(row: Resource) -> bool:
    """Return True if a row's nested stack has another goal than when the row read its values."""
    return is_doubted(row) and row.output is not None and row.status is Status.COMPLETE and row.owner is None


def as_it_is(stack: Stack, row: Resource, kind: ResourceType[Any], told: Document) -> Resource:
    """A row that `is_out_of_date`, with the present values of its nested stack.

    :param stack: the stack that contains the row.
    :param told: the answer of `NestedReads.read_nested_stack`.
    """
    assert row.output is not None
    call = build_call(kind, Subject.of(stack, row), row.properties, strictness=Strictness.LENIENT)
    call = replace(call, nested=_ReadOnly(NestedValues(**told)))
    attributes: dict[str, Json] = {}
    failures: dict[str, str] = {}
    for name in row.output.attributes.keys() | row.output.errors.keys():
        try:
            read = {key: read_attribute(kind, call, key) for key in ((name,) if name else attribute_names(kind))}
            attributes[name] = read[name] if name else read
        except PluginFailure as error:
            failures[name] = str(error)
    shown = {}
    for name in row.output.shown:
        with suppress(PluginFailure):
            shown[name] = read_attribute(kind, call, name)
    return replace(row, output=replace(row.output, attributes=attributes, errors=failures, shown=shown))


class _ReadOnly(NoNestedStack):
    """The present values of a nested stack, for reading only."""

    def __init__(self, values: NestedValues) -> None:
        self._values = values

    @override
    def values(self) -> NestedValues:
        """The values."""
        return self._values
