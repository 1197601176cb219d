"""Compiles the templates of stacks: from a submission, or from a stored row, to a checked `template.Compiled`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from convergence import errors, logs, template
from convergence.core.rows import Stack, Template
from convergence.db.ports import ReaderPort
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.analyser import TemplateAnalyser, identity_of
from convergence.engine.compile.cache import MOST_BYTES, CompiledTemplates, LastUsed, made_from
from convergence.engine.compile.submission import Submission
from convergence.engine.compile.submission_reader import SubmissionReader
from convergence.engine.compile.validator import NO_GOAL, TemplateValidator
from convergence.resources.implied import ask_for_implied, with_implied
from convergence.resources.registry import Registry


@dataclass(frozen=True, slots=True)
class _Validated:
    """The conditions under which a template was validated.

    :param circumstances: key of everything but its text that the template was compiled from; see `made_from`.
    """

    permits: Permits
    circumstances: str


class TemplateCompiler:
    """Compiles templates for stacks, and caches the results.

    :param limits: what a template may hold.
    :param deepest: how many levels of nested stacks may stand above a nested stack.
    :param most_bytes: size of the cache.
    :cvar analyser_type: the class of `analyser`.
    :ivar cache: the compiled templates that were used last.
    :ivar submissions: reads the templates and environments that users send.
    """

    analyser_type: ClassVar[type[TemplateAnalyser]] = TemplateAnalyser

    def __init__(
        self,
        reader: ReaderPort,
        registry: Registry,
        limits: template.Limits,
        *,
        most_bytes: int = MOST_BYTES,
        deepest: int = 5,
    ) -> None:
        self._reader = reader
        self.types = registry
        self.analyser = self.analyser_type(registry, limits, deepest)
        self.validator = TemplateValidator(self.analyser, limits, deepest)
        self.submissions = SubmissionReader(limits, self.analyser.accepted, most_bytes // 16)
        self.cache = CompiledTemplates(limits, most_bytes)
        self._validated: LastUsed[_Validated] = LastUsed(most_bytes // 16)

    # --- new goals --------------------------------------------------------------------------------------------

    def compile(
        self, stack: Stack, submission: Submission, permits: Permits, *, trusting: bool = False
    ) -> template.Compiled:
        """Compile a submission for `stack`, and validate it against the resource types and the present stack.

        An equal submission is not read again; everything that depends on more than the submission is checked again.

        :param permits: resource types that the user may use.
        :param trusting: skip validation if the template passed it under the same permits: one request creates many
            equal stacks, such as the members of a group.
        :raises Forbidden: the user may not use the type of a resource.
        :raises StackValidationFailed: carries all problems.
        """
        key, identity = made_from(submission.content(), stack.project_id), identity_of(stack)
        compiled, project_id = self.cache.get(key, identity), stack.project_id
        found = self._validated.get(key)
        circumstances = made_from(submission.circumstances(), project_id) if found is None else found.circumstances
        is_trusted = trusting and found is not None and found.permits == permits
        if compiled is None or not (is_trusted or self._is_still_valid(key, compiled, submission, project_id, permits)):
            earlier = self._validated_before(self.cache.key_of(stack.template_id or ''), identity)
            goal = earlier[0].goal if earlier is not None else NO_GOAL
            is_alike = earlier is not None and bool(circumstances) and earlier[1].circumstances == circumstances
            compiled = self._read(stack, submission, earlier[0] if earlier is not None and is_alike else None)
            compiled = compiled.sharing(goal)
            self.validator.validate(compiled, submission, project_id, permits, valid=goal)
            compiled = self.cache.keep(key, identity, with_implied(compiled, submission.implied or {}))
        self._validated.keep(key, _Validated(permits, circumstances))
        logs.mask_also(compiled.secrets)
        self._refuse_changed(stack, compiled)
        said = submission.implied
        return compiled if said is not None else with_implied(compiled, ask_for_implied(compiled, self.types))

    def _read(
        self, stack: Stack, submission: Submission, earlier: template.Compiled | None = None
    ) -> template.Compiled:
        if earlier is None:
            self.cache.make_room_for(submission.template)
        return self.analyser.analyse(stack, submission, self.analyser.installation, earlier)

    def _validated_before(
        self, key: str, identity: template.StackIdentity
    ) -> tuple[template.Compiled, _Validated] | None:
        """A cached template that this engine itself has validated; None: it has not, or the cache has dropped it."""
        found = self._validated.get(key)
        compiled = self.cache.get(key, identity) if found is not None else None
        return None if compiled is None or found is None else (compiled, found)

    def _is_still_valid(
        self, key: str, compiled: template.Compiled, submission: Submission, project_id: str, permits: Permits
    ) -> bool:
        """Return True if a cached template passes validation now: permits, types and services may have changed."""
        logs.mask_also(compiled.secrets)
        valid = compiled.goal if self._validated.get(key) is not None else NO_GOAL
        try:
            self.validator.validate(compiled, submission, project_id, permits, valid=valid)
        except errors.ConvergenceError:
            return False  # the caller compiles it again, and that reports the problems with their places
        checks = self.analyser.installation.checks
        return checks is None or all(each.satisfies(checks) for each in compiled.parameters.values())

    def _refuse_changed(self, stack: Stack, compiled: template.Compiled) -> None:
        """Refuse new values of immutable parameters.

        :raises ImmutableParameterModified: names the parameters.
        """
        immutable = [parameter for parameter in compiled.parameters.values() if parameter.immutable]
        if stack.template_id is None or not immutable:
            return
        try:
            present = self.compiled(stack, stack.template_id).parameters
        except (errors.EntityNotFound, errors.StackValidationFailed, errors.GoalUnreadable):
            return  # The present goal is unreadable; an update is the way out of that.
        names = [
            parameter.name
            for parameter in immutable
            if parameter.name in present and present[parameter.name].value != parameter.value
        ]
        if names:
            raise errors.ImmutableParameterModified(
                f'The following parameters are immutable and may not be updated: {", ".join(names)}'
            )

    # --- stored goals -----------------------------------------------------------------------------------------

    def keep(self, stack: Stack, row: Template, compiled: template.Compiled) -> None:
        """Cache a compiled template under the row in which it was just stored."""
        key, submission = made_from(row.content, stack.project_id), Submission.from_content(row.content)
        plain = made_from(submission.itself().content(), stack.project_id) if submission.implied else ''
        if found := self._validated.get(plain):
            self._validated.keep(key, found)
        self.cache.keep(key, identity_of(stack), compiled)
        self.cache.note(row.id, key)

    def stored(self, stack: Stack, template_id: str) -> tuple[Template, template.Compiled]:
        """The row and the compiled template of an accepted goal of `stack`.

        :raises EntityNotFound: the row does not exist (any more).
        """
        row = self._reader.template(template_id)
        if row is None:
            raise errors.EntityNotFound('Template', template_id)
        identity = identity_of(stack)
        compiled = self.cache.of_row(template_id, identity)
        if compiled is None:
            key = made_from(row.content, stack.project_id)
            compiled = self.cache.get(key, identity)
            if compiled is None:
                submission = Submission.from_content(row.content)
                self.cache.make_room_for(submission.template)
                compiled = self.analyser.analyse(stack, submission, self.analyser.accepted)
                compiled.problems.raise_any()
                compiled = self.cache.keep(key, identity, with_implied(compiled, submission.implied or {}))
            self.cache.note(template_id, key)
        logs.mask_also(compiled.secrets)
        return row, compiled

    def compiled(self, stack: Stack, template_id: str) -> template.Compiled:
        """The compiled template of an accepted goal. Reads its row only if the cache does not hold it.

        :raises EntityNotFound: the row does not exist (any more).
        """
        kept = self.cache.of_row(template_id, identity_of(stack))
        if kept is None:
            return self.stored(stack, template_id)[1]
        logs.mask_also(kept.secrets)
        return kept
