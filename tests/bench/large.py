"""What happens in one piece: reading, checking and planning a large template."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

from convergence import template
from convergence.core.model import Action, Status
from convergence.core.plan import plan
from convergence.core.request import Planner, Request
from convergence.core.rows import Stack, Template
from convergence.core.views import PlanView
from convergence.resources.registry import Registry
from convergence.resources.validation import validate
from tests.bench import shapes
from tests.bench.settings import TEMPLATE_LIMIT_BYTES


def accept(size: int) -> dict[str, float]:
    """Seconds that each part takes for a template of the shape `layers`, none of which touches a database."""
    source, registry = shapes.template('layers', size), Registry.builtin()
    seconds: dict[str, float] = {}
    identity = template.StackIdentity('stack', 'large', 'bench')
    limits = template.Limits(max_bytes=TEMPLATE_LIMIT_BYTES, max_resources=size)
    with _timed(seconds, 'compile (read YAML, resolve, order)'):
        compiled = template.compile(source, identity=identity, installation=template.Installation(limits))
    with _timed(seconds, 'validate against the resource types'):
        validate(compiled, registry)
    stack = Stack('stack', 'large', 'bench', Action.CREATE, Status.IN_PROGRESS, '', None, None, None, 60, True, 0.0)
    ids = (str(number) for number in itertools.count())
    request = Request(
        Action.CREATE, compiled.goal, template=Template('template', 'stack', {}), traversal_id='traversal'
    )
    with _timed(seconds, 'plan'):
        decision = plan(PlanView(0.0, None), stack, request, Planner(lambda: next(ids)))
    assert len(decision.verdict.row_ids) == size
    return seconds


@contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - begun
