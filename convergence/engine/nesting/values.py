"""What nested stacks tell to the stacks that they are in."""

from __future__ import annotations

from typing import Any

from convergence import errors, template
from convergence.db.ports import ReaderPort
from convergence.db.queries.stacks import in_service
from convergence.engine.caller import Caller
from convergence.engine.operations.goals import Goals

Document = dict[str, Any]


class NestedReads:
    """Reads nested stacks for the workers that drive the resources whose objects they are."""

    def __init__(self, reader: ReaderPort, goals: Goals) -> None:
        self._reader = reader
        self._goals = goals

    def read_nested_stack(self, context: Caller, stack_id: str) -> Document:
        """What a nested stack tells to others: the fields of `NestedValues`.

        :raises EntityNotFound: it is gone.
        """
        stack = self._reader.stack(stack_id)
        if stack is None or stack.deleted_at is not None or stack.template_id is None:
            raise errors.EntityNotFound('Stack', stack_id)
        _, compiled = self._goals.stored(stack, stack.template_id)
        rows = in_service(self._reader.resources(stack.id), stack.template_id)
        inputs = {name: row.output for name, row in rows.items() if row.output is not None}
        values, failures = {}, {}
        for name, output in compiled.outputs.items():
            try:
                values[name] = template.resolve(output.value, inputs, self._goals.yaql)
            except errors.ConvergenceError as error:
                failures[name] = str(error)
        told = {
            name: {
                'reference': row.output.reference if row.output is not None else None,
                'physical_id': row.physical_id,
                'attributes': dict(row.output.attributes) if row.output is not None else {},
                'errors': dict(row.output.errors) if row.output is not None else {},
            }
            for name, row in rows.items()
        }
        return {'outputs': values, 'errors': failures, 'resources': told}
