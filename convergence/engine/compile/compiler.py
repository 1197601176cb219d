"""From what a user sends, or a row keeps, to a compiled template. Compiled templates are kept for a while."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from convergence import errors, logs, template
from convergence.core.model import Goal, Json
from convergence.core.rows import Resource, Stack, Template
from convergence.db.ports import ReaderPort
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.cache import MOST_BYTES, CompiledTemplates, LastUsed, made_from
from convergence.engine.compile.hiding import with_hidden
from convergence.engine.compile.member_checks import problems_below
from convergence.engine.compile.nested_content import told_by_members, with_asked, with_nested
from convergence.engine.compile.nested_preview import NestedPreview, defaults_of
from convergence.engine.compile.submission import Submission
from convergence.engine.compile.submission_reader import SubmissionReader
from convergence.expressions import evaluator
from convergence.resources.contract import ResourceType
from convergence.resources.custom import installed_checks
from convergence.resources.implied import ask_for_implied, with_implied
from convergence.resources.registry import Registry
from convergence.resources.secrets import DeclaredSecrets, known_secrets
from convergence.resources.validation import validate
from convergence.template.environment import ENCRYPTED, VALUES
from convergence.values import replace

LOG = logging.getLogger(__name__)

NOTHING = Goal()


@dataclass(frozen=True, slots=True)
class _FoundRight:
    """Under what a template was found to be right.

    :param circumstances: all that it was compiled from besides its text, as `made_from` tells it.
    """

    permits: Permits
    circumstances: str


class TemplateCompiler:
    """Compiles templates for stacks.

    :param limits: what a template may hold.
    :param deepest: how many stacks a stack may be in.
    :param most_bytes: what the compiled templates that are kept may hold.
    :ivar kept: what was compiled last. :ivar sent: understands what users send; `submission`, `environment` and
        `document` are its.
    """

    def __init__(
        self,
        reader: ReaderPort,
        registry: Registry,
        limits: template.Limits,
        *,
        most_bytes: int = MOST_BYTES,
        deepest: int = 5,
    ) -> None:
        self._deepest = deepest
        self._reader = reader
        self._registry = self.types = registry
        self._limits = limits
        self.secret_policy = secret_policy = DeclaredSecrets(registry)
        self._installation = template.Installation(limits, installed_checks(), evaluator(), secret_policy)
        self._tolerant = replace(self._installation, checks=installed_checks().tolerating())
        # What was accepted once is not questioned again: a moment in the future does not stay there.
        self.yaql = evaluator()
        self._accepted = template.Installation(limits, yaql=self.yaql, secret_policy=secret_policy)
        self.foresight = NestedPreview(
            registry, self._installation, most_bytes=limits.max_stored_bytes, deepest=deepest
        )
        self.kept = CompiledTemplates(limits, most_bytes)
        self.sent = SubmissionReader(limits, self._accepted, most_bytes // 16)
        self.submission, self.environment = self.sent.submission, self.sent.environment
        self.document = self.sent.document
        self._sound: LastUsed[_FoundRight] = LastUsed(most_bytes // 16)

    def compile(
        self, stack: Stack, submission: Submission, permits: Permits, *, trusting: bool = False
    ) -> template.Compiled:
        """Compile what a user sent for `stack`, and check it against the resource types and what the stack is now.

        What was compiled from the same before is used again; whatever depends on more than that is asked anew.

        :param permits: what types the user may have in it.
        :param trusting: what was found to be right under the same permits is not asked again: it is one of many stacks
            that are made for one request.
        :raises Forbidden: a resource is of a type that the user may not use.
        :raises StackValidationFailed: carries everything that is wrong with it.
        """
        key, identity = made_from(submission.content(), stack.project_id), identity_of(stack)
        compiled, project_id = self.kept.get(key, identity), stack.project_id
        found = self._sound.get(key)
        circumstances = made_from(submission.circumstances(), project_id) if found is None else found.circumstances
        is_trusted = trusting and found is not None and found.permits == permits
        if compiled is None or not (is_trusted or self._is_right(key, compiled, submission, project_id, permits)):
            before, earlier = self._found_right(self.kept.key_of(stack.template_id or ''), identity, circumstances)
            compiled = self._analyse(stack, submission, self._installation, earlier).sharing(before)
            self._check(compiled, submission, project_id, permits, sound=before)
            compiled = self.kept.keep(key, identity, with_implied(compiled, submission.implied or {}))
        self._sound.keep(key, _FoundRight(permits, circumstances))
        logs.mask_also(compiled.secrets)
        self.refuse_changed(stack, compiled)
        said = submission.implied
        return compiled if said is not None else with_implied(compiled, ask_for_implied(compiled, self._registry))

    def _found_right(
        self, key: str, identity: template.StackIdentity, circumstances: str
    ) -> tuple[Goal, template.Compiled | None]:
        """What has been found out about a template: its goal, if this engine itself has found it to be right.

        :param circumstances: of another template that is compiled now.
        :returns: an empty goal else; with it what it was compiled to, if that was under the same circumstances.
        """
        found = self._sound.get(key)
        compiled = self.kept.get(key, identity) if found is not None else None
        if compiled is None or found is None:
            return NOTHING, None
        return compiled.goal, compiled if circumstances and found.circumstances == circumstances else None

    def _is_right(
        self, key: str, compiled: template.Compiled, submission: Submission, project_id: str, permits: Permits
    ) -> bool:
        """Whether what was right once still is: by what the user may use, the types, and services that are asked."""
        logs.mask_also(compiled.secrets)
        sound = compiled.goal if self._sound.get(key) is not None else NOTHING
        try:
            self._check(compiled, submission, project_id, permits, sound=sound)
        except errors.ConvergenceError:
            return False  # who compiles it anew gets to know what is wrong, and where
        checks = self._installation.checks
        return checks is None or all(each.satisfies(checks) for each in compiled.parameters.values())

    def keep(self, stack: Stack, row: Template, compiled: template.Compiled) -> None:
        """Keep what a template that was just stored has been compiled to."""
        key, sent = made_from(row.content, stack.project_id), Submission.from_content(row.content)
        if sent.implied and (found := self._sound.get(made_from(sent.itself().content(), stack.project_id))):
            self._sound.keep(key, found)
        self.kept.keep(key, identity_of(stack), compiled)
        self.kept.note(row.id, key)

    def _check(
        self,
        compiled: template.Compiled,
        submission: Submission,
        project_id: str,
        permits: Permits,
        *,
        ignore_unknown_types: bool = False,
        depth: int = 0,
        sound: Goal = NOTHING,
    ) -> list[errors.Problem]:
        """What is asked of every template, be it to become a stack or only to be looked at; see `validate`.

        :param depth: how many templates it is nested in.
        :param sound: what this engine has found to be right before.
        """
        permits.require_all(compiled)
        nested = self.foresight.problems(
            compiled, submission, project_id, permits, lenient=ignore_unknown_types, depth=depth
        )
        warnings = validate(
            compiled,
            self._registry,
            ignore_unknown_types=ignore_unknown_types,
            most_bytes=self._limits.max_stored_bytes,
            defaults=defaults_of(submission),
            further=nested,
            sound=sound.definitions,
        )

        def check(nested: Submission) -> None:
            self.inspect(project_id, nested, permits, ignore_unknown_types=ignore_unknown_types, depth=depth + 1)

        def type_of(name: str) -> ResourceType[Any] | None:
            return self._registry.get(name) if name in self._registry else None

        if depth < self._deepest:
            problems = [*problems_below(compiled, submission, type_of, check)]
            if problems:
                raise errors.StackValidationFailed(problems)
        return warnings

    def refuse_changed(self, stack: Stack, compiled: template.Compiled) -> None:
        """Immutable parameters keep the values that the stack has.

        :raises ImmutableParameterModified: names those that would change.
        """
        immutable = [parameter for parameter in compiled.parameters.values() if parameter.immutable]
        if stack.template_id is None or not immutable:
            return
        try:
            present = self.compiled(stack, stack.template_id).parameters
        except (errors.EntityNotFound, errors.StackValidationFailed, errors.GoalUnreadable):
            return  # What the stack is now cannot be read any more; an update is the way out of that.
        names = [
            parameter.name
            for parameter in immutable
            if parameter.name in present and present[parameter.name].value != parameter.value
        ]
        if names:
            raise errors.ImmutableParameterModified(
                f'The following parameters are immutable and may not be updated: {", ".join(names)}'
            )

    def inspect(
        self,
        project_id: str,
        submission: Submission,
        permits: Permits,
        *,
        ignore_unknown_types: bool = False,
        depth: int = 0,
    ) -> tuple[template.Compiled, list[errors.Problem]]:
        """Compile a template of no stack, as far as that is possible without the values of some parameters.

        :param permits: what types the user may have in it.
        :param ignore_unknown_types: that a resource type is not there is no error, nor that the service is not there
            which a custom constraint would have to ask.
        :param depth: how many templates it is nested in.
        :returns: with it, what is probably not meant so or could not be checked.
        :raises StackValidationFailed: carries everything that is wrong with it.
        """
        compiled = template.analyse(
            submission.template,
            identity=template.StackIdentity('', '', project_id),
            environment=submission.environment,
            files=submission.files,
            facade=submission.facade,
            installation=self._tolerant if ignore_unknown_types else self._installation,
            require_parameters=template.Require.NONE,
        )
        tolerant = ignore_unknown_types
        return compiled, self._check(
            compiled, submission, project_id, permits, ignore_unknown_types=tolerant, depth=depth
        )

    def kept_hidden(self, stack: Stack, present: Mapping[str, Json], sent: Mapping[str, Json]) -> dict[str, list[Json]]:
        """The section of an environment that keeps hidden what a partial update takes over from the present goal.

        Whoever sends a template does not thereby get to see values that were given as secrets: a parameter that is
        hidden now stays so, whatever the new template says, until its value is given again.

        :param present: the environment of the stack.
        :param sent: that of the update.
        """
        kept = _names_of_values(present) - _names_of_values(sent)
        if stack.template_id is None or not kept:
            return {}
        try:
            parameters = self.stored(stack, stack.template_id)[1].parameters
        except (
            errors.EntityNotFound,
            errors.StackValidationFailed,
            errors.RequestLimitExceeded,
            errors.GoalUnreadable,
        ):
            return {ENCRYPTED: [*sorted(kept)]}  # nobody can tell any more
        return {ENCRYPTED: [name for name in sorted(kept) if name in parameters and parameters[name].hidden]}

    def secrets_of(self, row: Resource) -> frozenset[str]:
        """The values that must not be shown of a resource unless somebody asks for them by name, as texts."""
        return known_secrets(row, self._registry)

    def stored(self, stack: Stack, template_id: str) -> tuple[Template, template.Compiled]:
        """A template of `stack` that was accepted before.

        :raises EntityNotFound: there is none with that id (any more).
        """
        row = self._reader.template(template_id)
        if row is None:
            raise errors.EntityNotFound('Template', template_id)
        identity = identity_of(stack)
        compiled = self.kept.of_row(template_id, identity)
        if compiled is None:
            key = made_from(row.content, stack.project_id)
            compiled = self.kept.get(key, identity)
            if compiled is None:
                submission = Submission.from_content(row.content)
                compiled = self._analyse(stack, submission, self._accepted)
                compiled.problems.raise_any()
                compiled = self.kept.keep(key, identity, with_implied(compiled, submission.implied or {}))
            self.kept.note(template_id, key)
        logs.mask_also(compiled.secrets)
        return row, compiled

    def compiled(self, stack: Stack, template_id: str) -> template.Compiled:
        """The same without its row, which is read only where the compiled one is not at hand.

        :raises EntityNotFound: there is none with that id (any more).
        """
        kept = self.kept.of_row(template_id, identity_of(stack))
        if kept is None:
            return self.stored(stack, template_id)[1]
        logs.mask_also(kept.secrets)
        return kept

    def _analyse(
        self,
        stack: Stack,
        submission: Submission,
        installation: template.Installation,
        earlier: template.Compiled | None = None,
    ) -> template.Compiled:
        if earlier is None:
            self.kept.make_room_for(submission.template)
        compiled = template.analyse(
            submission.template,
            identity=identity_of(stack),
            environment=submission.environment,
            files=submission.files,
            facade=submission.facade,
            installation=installation,
            earlier=earlier,
        )
        if earlier is not None:
            total = len(compiled.goal.definitions)
            anew = total if compiled.as_read is None else compiled.as_read.anew
            LOG.debug('%d of %d resources of stack %s were read anew', anew, total, stack.id)
        logs.mask_also(compiled.secrets)
        return self.nesting(with_asked(compiled, submission), submission, stack.project_id)

    def nesting(
        self, compiled: template.Compiled, submission: Submission, project_id: str | None = None
    ) -> template.Compiled:
        """The same, with what nested stacks are made from besides their properties, and what their templates hide.

        :param project_id: None: what they hide is not looked for.
        """
        definitions, asked = compiled.goal.definitions, compiled.goal.asked
        nested = {
            name: with_nested(
                definition, submission, told_by_members(self._registry.get(definition.type), asked.get(name, ()))
            )
            for name, definition in definitions.items()
            if self._registry.nests(definition.type)
        }
        if not nested:
            return compiled
        whole = replace(compiled, goal=Goal({**definitions, **nested}, compiled.goal.asked))
        if project_id is None:
            return whole
        return with_hidden(whole, self.foresight.stacks(whole, submission, project_id), self.secret_policy)


def identity_of(stack: Stack) -> template.StackIdentity:
    """What a template gets to know of its stack."""
    return template.StackIdentity(stack.id, stack.name, stack.project_id)


def _names_of_values(environment: Mapping[str, Json]) -> set[str]:
    """The names of the parameters to which an environment gives values."""
    sections = [environment.get(name) for name in VALUES]
    return {name for section in sections if isinstance(section, dict) for name in section}
