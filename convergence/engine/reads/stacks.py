"""Reads whole stacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from convergence import errors, logs, template
from convergence.core.conditions import conditions
from convergence.core.rows import Stack
from convergence.db.null_ports import NOTHING_OBSERVED
from convergence.db.ports import KnownObjectsPort
from convergence.db.repositories.reads.stacks import StackFilter, StackReader
from convergence.documents import Document
from convergence.engine.callers.caller import Caller
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.shown_outputs import ShownOutputs
from convergence.engine.compile.submission import Submission
from convergence.engine.reads import formats
from convergence.engine.reads.damage import Damages
from convergence.engine.reads.filters import stack_query
from convergence.engine.reads.reading import Reading, outputs_of
from convergence.expressions import evaluator
from convergence.rpc.engine_api import StackQuery
from convergence.secrecy import masked, masked_at, without
from convergence.template.limits import STANDARD, Budget
from convergence.template.secrets import reading


class StackReads(Reading[StackReader]):
    """Reading operations on whole stacks.

    :param hidden_tags: stacks with one of these tags are listed only if the query includes hidden ones.
    :param objects: reads the observations of objects.
    """

    def __init__(
        self,
        reader: StackReader,
        compiler: TemplateCompiler,
        hidden_tags: Collection[str] = (),
        objects: KnownObjectsPort = NOTHING_OBSERVED,
    ) -> None:
        super().__init__(reader, compiler)
        self._hidden_tags = tuple(hidden_tags)
        self._objects = objects
        self._damages = Damages(reader)

    def identify_stack(self, context: Caller, stack_name: str) -> Document:
        """The identity of the living stack with that name, or of the stack, deleted or not, with that id.

        :raises EntityNotFound: there is none.
        """
        stack = self._reader.stack(stack_name)
        if stack is None or stack.project_id != context.project_id:
            stack = self._reader.stack_named(context.project_id, stack_name)
        if stack is None:
            raise errors.EntityNotFound('Stack', stack_name)
        return formats.identity(stack)

    def list_stacks(self, context: Caller, query: StackQuery | None = None) -> list[Document]:
        """Summaries of the stacks that a query selects, newest first unless it says otherwise.

        :raises Invalid: the query makes no sense; the text names the argument.
        """
        stored = self._filter(context, query)
        if stored.marker is not None:
            self._stack(context, {'stack_id': stored.marker})
        return [formats.stack_summary(stack) for stack in self._reader.stacks(stored)]

    def count_stacks(self, context: Caller, query: StackQuery | None = None) -> int:
        """The number of stacks that a query selects, regardless of its page.

        :raises Invalid: the query is invalid; the text names the argument.
        """
        return self._reader.count_stacks(self._filter(context, query))

    def show_stack(
        self,
        context: Caller,
        stack_identity: Mapping[str, Any],
        resolve_outputs: bool = True,
        with_unreadable: bool = False,
    ) -> list[Document]:
        """Everything about one stack, as a list of one. The outputs of a deleted stack are gone.

        :param resolve_outputs: include the values of outputs. Their cost depends on the resources that they refer to,
            not on the size of the stack.
        :param with_unreadable: include the unreadable values of the stack. Reads all of its rows.
        """
        stack = self._stack(context, stack_identity)
        summary = self._reader.summary(stack.template_id) if stack.template_id else None
        document = formats.stack_details(stack, summary)
        current = self._reader.traversal(stack.traversal_id) if stack.traversal_id else None
        drift = self._objects.summary(stack.id)
        document['conditions'] = [formats.condition(each) for each in conditions(stack, current, drift)]
        if resolve_outputs and stack.deleted_at is None:
            goal = self._outputs(stack, summary)
            document['outputs'] = self._resolved(stack, goal, goal.outputs.values())
        if with_unreadable and stack.deleted_at is None:
            told = self._damages.of(stack)
            document.update({'unreadable': list(told)} if told else {})
        return [document]

    def get_template(self, context: Caller, stack_identity: Mapping[str, Any]) -> Document:
        """The template of a stack, as a map."""
        row = self._template(self._stack(context, stack_identity))
        return self._compiler.submissions.document(Submission.from_content(row.content).template)

    def get_environment(self, context: Caller, stack_identity: Mapping[str, Any]) -> Document:
        """The environment of a stack, the values of hidden parameters masked."""
        stack = self._stack(context, stack_identity)
        submission = Submission.from_content(self._template(stack).content)
        compiled = self._compiled(stack)
        return formats.environment(submission.environment, compiled.parameters if compiled else None)

    def get_files(self, context: Caller, stack_identity: Mapping[str, Any]) -> dict[str, str]:
        """The files of a stack's template, by name; secrets in environment files are masked."""
        stack = self._stack(context, stack_identity)
        submission = Submission.from_content(self._template(stack).content)
        if not submission.environment_files:
            return dict(submission.files)
        compiled = self._compiled(stack)
        parameters = compiled.parameters if compiled else None
        shown = {
            name: formats.environment_file(text, self._compiler.submissions.environment(text), parameters)
            for name, text in submission.environment_files.items()
        }
        return {**submission.files, **shown}

    def list_outputs(self, context: Caller, stack_identity: Mapping[str, Any]) -> list[Document]:
        """The outputs of a stack without their values."""
        stack = self._stack(context, stack_identity)
        return [formats.output_key(output) for output in self._shown_outputs(stack).outputs.values()]

    def show_output(self, context: Caller, stack_identity: Mapping[str, Any], output_key: str) -> Document:
        """One output with its value, or with the reason why it has none.

        :raises EntityNotFound: the stack has no such output.
        """
        stack = self._stack(context, stack_identity)
        goal = self._shown_outputs(stack)
        output = goal.outputs.get(output_key)
        if output is None:
            raise errors.EntityNotFound(f'Specified output key {output_key} not found.')
        return self._resolved(stack, goal, [output])[0]

    def _filter(self, context: Caller, query: StackQuery | None) -> StackFilter:
        return stack_query(context.project_id, query or StackQuery(), self._hidden_tags)

    def _shown_outputs(self, stack: Stack) -> ShownOutputs:
        return self._outputs(stack, self._reader.summary(stack.template_id) if stack.template_id else None)

    def _outputs(self, stack: Stack, summary: Mapping[str, Any] | None) -> ShownOutputs:
        """The parts of the goal that its outputs need; for large ones, reads the goal. None if it is unreadable.

        :param summary: of the goal, if it is readable.
        """
        kept = (summary or {}).get('outputs')
        if kept is not None:
            goal = ShownOutputs.from_document(kept)
            logs.mask_also(goal.secrets)
            return goal
        compiled = self._compiled(stack)
        return ShownOutputs({}) if compiled is None else ShownOutputs.of(compiled)

    def _resolved(
        self, stack: Stack, goal: ShownOutputs, outputs: Collection[template.OutputDefinition]
    ) -> list[Document]:
        """Outputs with their values. An output that fails shows its error; it does not affect others.

        Values computed from hidden parameters are masked. Values that a resource type keeps secret are not: with an
        output, the template decides that its users may read them.
        """
        rows = self._referred(stack, [output.value for output in outputs])
        inputs, hides = outputs_of(rows), self._hides(rows, goal.definitions)
        budget = Budget(STANDARD)  # one limit for all outputs, because the caller waits for all of them
        documents: list[Document] = []
        for output in outputs:
            hidden = (*output.hidden, *reading(output.value, hides))
            try:
                value = template.resolve(output.value, inputs, evaluator(), budget, hidden)
                documents.append(formats.output_value(output, without(masked_at(value, hidden), goal.secrets), None))
            except errors.ConvergenceError as error:
                documents.append(formats.output_value(output, None, masked(str(error), goal.secrets)))
        return documents
