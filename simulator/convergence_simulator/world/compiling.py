"""A cache of compiled scenario templates that all runs share.

Compiling gives the same result in each run, and it would take most of the time of a run.
"""

from __future__ import annotations

import json
from functools import lru_cache

from typing_extensions import override

from convergence import template
from convergence.core.rows import Stack
from convergence.engine.callers.permits import Permits
from convergence.engine.compile.analyser import TemplateAnalyser
from convergence.engine.compile.compiler import TemplateCompiler
from convergence.engine.compile.submission import Submission


@lru_cache(maxsize=1024)
def _compiled(source: str, environment: str) -> template.Compiled:
    identity = template.StackIdentity('stack', 'stack', 'simulated')
    return template.compile(json.loads(source), identity=identity, environment=json.loads(environment))


def _compile(submission: Submission) -> template.Compiled:
    return _compiled(json.dumps(submission.template), json.dumps(submission.environment))


class SimulatedAnalyser(TemplateAnalyser):
    """Reads templates that do not use the stack's identity."""

    @override
    def analyse(
        self,
        stack: Stack,
        submission: Submission,
        installation: template.Installation,
        earlier: template.Compiled | None = None,
    ) -> template.Compiled:
        """Return the compiled template from the cache that all runs share."""
        return self.with_nested(_compile(submission), submission)


class SimulatedCompiler(TemplateCompiler):
    """Compiles templates that do not use the stack's identity."""

    analyser_type = SimulatedAnalyser

    @override
    def compile(
        self, stack: Stack, submission: Submission, permits: Permits, *, trusting: bool = False
    ) -> template.Compiled:
        """Compile without the checks that templates of scenarios need not pass."""
        return self.analyser.with_nested(_compile(submission), submission)
