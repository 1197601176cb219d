"""The base of all reading operations. They change nothing.

Every operation concerns the caller's own project: a stack of another project does not exist for the caller. Arguments
and answers are those of the field's RPC operations of the same names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from convergence import errors, template
from convergence.core.model import Definition, Json, Output
from convergence.core.rows import Resource, Stack, Template
from convergence.db.ports import ReaderPort
from convergence.db.repositories.reads.stacks import in_service
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.reads.nested_values import NestedReads, as_it_is, is_out_of_date
from convergence.resources.secrets import made_from
from convergence.template.secrets import IsAsked, tells_hidden

LOG = logging.getLogger(__name__)


ReaderT = TypeVar('ReaderT', bound=ReaderPort)


class Reading(Generic[ReaderT]):
    """The base of the operations that read stacks."""

    def __init__(self, reader: ReaderT, compiler: TemplateCompiler) -> None:
        self._reader = reader
        self._compiler = compiler

    def _stack(self, context: Caller, stack_identity: Mapping[str, Any]) -> Stack:
        """The stack that an identity means, deleted or not.

        :raises EntityNotFound: there is none in the caller's project.
        """
        stack_id, name = str(stack_identity.get('stack_id') or ''), str(stack_identity.get('stack_name') or '')
        stack = self._reader.stack(stack_id) if stack_id else None
        tenant = stack_identity.get('tenant')
        found = (
            stack is not None
            and stack.project_id == context.project_id
            and (tenant is None or tenant == stack.project_id)
            and (not name or name == stack.name)
        )
        if stack is None or not found:
            raise errors.EntityNotFound('Stack', name or stack_id)
        return stack

    def _template(self, stack: Stack) -> Template:
        """The stored goal of a stack.

        :raises EntityNotFound: it has none (any more).
        """
        row = self._reader.template(stack.template_id) if stack.template_id else None
        if row is None:
            raise errors.EntityNotFound(f'The template of the stack {stack.name} is not stored any more.')
        return row

    def _compiled(self, stack: Stack) -> template.Compiled | None:
        """The goal of a stack; None if it is unreadable, because the stack itself must still be shown."""
        if stack.template_id is None:
            return None
        try:
            return self._compiler.compiled(stack, stack.template_id)
        except (
            errors.EntityNotFound,
            errors.StackValidationFailed,
            errors.RequestLimitExceeded,
            errors.GoalUnreadable,
        ) as error:
            LOG.warning(
                'Showing stack %s without its template, which is unreadable: %s', stack.id, type(error).__name__
            )
            return None

    def _shown(self, stack: Stack, names: Iterable[str]) -> dict[str, Resource]:
        """The shown rows of some names."""
        rows = in_service(self._reader.resources_named(stack.id, list(names)), stack.template_id)
        return {name: self._up_to_date(stack, row) for name, row in rows.items()}

    def _up_to_date(self, stack: Stack, row: Resource) -> Resource:
        """A row with the present values of its nested stack, if they have changed since the row read them."""
        types = self._compiler.types
        if row.type not in types or not types.nests(row.type) or not is_out_of_date(row):
            return row
        try:
            told = NestedReads(self._reader, self._compiler).told(row.token or '')
            return as_it_is(stack, row, types.get(row.type), told)
        except errors.ConvergenceError as error:
            LOG.warning(
                'Showing the last known values of resource %s; its nested stack is unreadable: %s',
                row.id,
                type(error).__name__,
            )
            return row

    def _referred(self, stack: Stack, encoded: Iterable[Json]) -> dict[str, Resource]:
        """The rows of the resources that encoded values refer to."""
        names: set[str] = set()
        for value in encoded:
            references, attributes = template.references(value)
            names.update(references, attributes)
        return self._shown(stack, names) if names else {}

    def _hides(self, rows: Mapping[str, Resource], goal: Mapping[str, Definition]) -> IsAsked:
        """The attributes that may contain values computed from hidden parameters, by the goal or by the sources of the
        rows.

        :param rows: rows of the resources that are read.
        :param goal: their definitions in the goal.
        """

        def hides(name: str, attribute: str | None) -> bool:
            definitions = list(made_from(rows[name])) if name in rows else []
            definitions += [goal[name]] if name in goal else []
            return any(tells_hidden(each, attribute, self._compiler.analyser.secret_policy) for each in definitions)

        return hides

    def _outputs_of(self, stack: Stack, encoded: Iterable[Json]) -> dict[str, Output]:
        """The known values of the resources that encoded values refer to."""
        return outputs_of(self._referred(stack, encoded))


def outputs_of(rows: Mapping[str, Resource]) -> dict[str, Output]:
    """The outputs of rows, by name."""
    return {name: row.output for name, row in rows.items() if row.output is not None}
