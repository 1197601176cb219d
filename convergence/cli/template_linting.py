"""Lints one template with all that it names: what people are shown, and what their editor underlines."""

from __future__ import annotations

import dataclasses

from convergence import errors
from convergence.cli.template_check import BundleNames, TemplateChecker
from convergence.cli.template_files import Bundle
from convergence.cli.template_index import TemplateIndex
from convergence.cli.template_lint import PLAIN_SECRET, LintedTemplate, lint
from convergence.cli.template_lint_report import LintResult
from convergence.template.problems import Problems
from convergence.template.sources import read


def linted(checker: TemplateChecker, bundle: Bundle, ignored: frozenset[str] = frozenset()) -> LintResult:
    """What is wrong with a template, or with what its author may have meant."""
    findings = checker.check(bundle)
    found: list[errors.Problem] = []
    if findings.compiled is not None and not findings.errors:
        document = read(bundle.text, 'template', checker.installation.limits, Problems())
        subject = LintedTemplate(document, TemplateIndex(document), findings.compiled, checker.registry)
        named = [BundleNames(bundle).give(problem) for problem in lint(subject, ignored)]
        # What should not stand in the template need not stand in a log as well.
        found = [dataclasses.replace(each, excerpt='') if each.kind == PLAIN_SECRET else each for each in named]
    return LintResult(bundle.name, findings.errors, [*findings.warnings, *found])
