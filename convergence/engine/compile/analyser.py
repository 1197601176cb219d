"""Reads templates: text to `template.Compiled`, with the content of nested stacks. Validates nothing."""

from __future__ import annotations

import logging

from convergence import logs, template
from convergence.core.model import Goal
from convergence.core.rows import Stack
from convergence.engine.compile.hiding import with_hidden
from convergence.engine.compile.nested_content import told_by_members, with_asked, with_nested
from convergence.engine.compile.nested_preview import NestedPreview
from convergence.engine.compile.submission import Submission
from convergence.expressions import evaluator
from convergence.resources.custom import installed_checks
from convergence.resources.registry import Registry
from convergence.resources.secrets import DeclaredSecrets
from convergence.values import replace

LOG = logging.getLogger(__name__)


class TemplateAnalyser:
    """Reads templates for stacks.

    :param limits: what a template may hold.
    :param deepest: how many levels of nested stacks may stand above a nested stack.
    :ivar installation: for new templates: with the checks of custom constraints.
    :ivar tolerant: as `installation`, but an unavailable service that a constraint queries is no error.
    :ivar accepted: for stored templates: without those checks, because a value that was valid once stays accepted.
    :ivar nested_preview: previews the stacks that resources of a template will create.
    """

    def __init__(self, registry: Registry, limits: template.Limits, deepest: int) -> None:
        self.types = registry
        self.secret_policy = DeclaredSecrets(registry)
        self.yaql = evaluator()
        self.installation = template.Installation(limits, installed_checks(), evaluator(), self.secret_policy)
        self.tolerant = replace(self.installation, checks=installed_checks().tolerating())
        self.accepted = template.Installation(limits, yaql=self.yaql, secret_policy=self.secret_policy)
        self.nested_preview = NestedPreview(
            registry, self.installation, most_bytes=limits.max_stored_bytes, deepest=deepest
        )

    def analyse(
        self,
        stack: Stack,
        submission: Submission,
        installation: template.Installation,
        earlier: template.Compiled | None = None,
    ) -> template.Compiled:
        """Read the template of a stack.

        :param installation: `installation` or `accepted`.
        :param earlier: an earlier version of the template; only the resources whose lines differ are read.
        """
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
            read = total if compiled.parse_state is None else compiled.parse_state.compiled_count
            LOG.debug('Read %d of %d resources of stack %s; the others are unchanged', read, total, stack.id)
        logs.mask_also(compiled.secrets)
        return self.with_nested(with_asked(compiled, submission), submission, stack.project_id)

    def with_nested(
        self, compiled: template.Compiled, submission: Submission, project_id: str | None = None
    ) -> template.Compiled:
        """Add the digests of nested stacks' content, and the properties that nested templates hide.

        :param project_id: None: leave the hidden properties out.
        """
        definitions, asked = compiled.goal.definitions, compiled.goal.asked
        nested = {
            name: with_nested(
                definition, submission, told_by_members(self.types.get(definition.type), asked.get(name, ()))
            )
            for name, definition in definitions.items()
            if self.types.nests(definition.type)
        }
        if not nested:
            return compiled
        whole = replace(compiled, goal=Goal({**definitions, **nested}, compiled.goal.asked))
        if project_id is None:
            return whole
        return with_hidden(whole, self.nested_preview.stacks(whole, submission, project_id), self.secret_policy)


def identity_of(stack: Stack) -> template.StackIdentity:
    """The identity that a template can refer to by its pseudo parameters."""
    return template.StackIdentity(stack.id, stack.name, stack.project_id)
