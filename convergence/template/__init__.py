"""The template language: text in, definitions out, and every error with line and column. Pure: no I/O.

`compile` reads a template. Values that depend on other resources stay encoded in the definitions. `resolve` evaluates
them when those resources exist, `preview` evaluates them before as far as possible, and `references` returns the
resources on which they depend.
"""

from __future__ import annotations

from convergence.template.assignment import Require
from convergence.template.compiler import Compiled, analyse, compile
from convergence.template.evaluation import UNKNOWN, Previewed, has_unknown, preview, references, resolve
from convergence.template.functions.base import EvaluationFailed, UnresolvedReference
from convergence.template.installation import BARE, Installation
from convergence.template.limits import Limits
from convergence.template.outputs import OutputDefinition
from convergence.template.parameters import Parameter, StackIdentity

__all__ = [
    'BARE',
    'UNKNOWN',
    'Compiled',
    'EvaluationFailed',
    'Installation',
    'Limits',
    'OutputDefinition',
    'Parameter',
    'Previewed',
    'Require',
    'StackIdentity',
    'UnresolvedReference',
    'analyse',
    'compile',
    'has_unknown',
    'preview',
    'references',
    'resolve',
]
