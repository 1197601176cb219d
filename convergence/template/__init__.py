"""The language: text in, definitions out; every error with line and column. Pure: no I/O.

`compile` reads a template. What depends on other resources stays encoded in the definitions; `resolve` evaluates it
when those resources are there, `preview` as far as possible before, and `references` tells what it depends on.
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
