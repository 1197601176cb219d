"""How many slow actions are under way at once: they wait in their rows, not in threads."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from convergence.concurrency import sleep
from convergence.errors import ConvergenceError
from tests.bench.installations import opened

LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Waited:
    """What was seen of a stack of slow resources.

    :param most: how many of them were in the middle of their creation at the same time.
    :param seconds: from the request to the end.
    """

    resources: int
    each_s: float
    most: int
    seconds: float


def wait(name: str, resources: int, each_s: float) -> Waited:
    """Create a stack of independent resources that take `each_s` seconds each, with two workers of 8 threads.

    :param name: of the installation.
    :raises ConvergenceError: the creation failed.
    """
    with opened(name) as installation:
        reader, begun, most = installation.reader, time.monotonic(), 0
        identity = installation.client.create_stack(installation.context, 'slow', _template(resources, each_s))
        while True:
            stack = reader.stack(identity['stack_id'])
            assert stack is not None
            if stack.status.value != 'IN_PROGRESS':
                break
            counts = reader.frontier_counts(stack.traversal_id or '')
            most = max(most, counts.claimed + counts.parked)
            sleep(LOOK_S)
        if stack.status.value != 'COMPLETE':
            raise ConvergenceError(f'The stack of slow resources has failed: {stack.status_reason}')
        return Waited(resources, each_s, most, time.monotonic() - begun)


def _template(resources: int, each_s: float) -> dict[str, Any]:
    slow = {'type': 'OS::Heat::Delay', 'properties': {'min_wait': each_s}}
    return {'heat_template_version': '2018-08-31', 'resources': {f'r{number}': slow for number in range(resources)}}
