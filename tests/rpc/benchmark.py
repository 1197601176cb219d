"""What a cast and a call cost on each transport. Run by hand: python -m tests.rpc.benchmark [rabbit-url]

Prints microseconds per message as the median of several rounds. A cast is counted until its handler has run; a call
is answered before the next one is sent.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable

import oslo_messaging
from oslo_config import cfg

from convergence.rpc.memory import MemoryDriver

ROUNDS = 5
_SLOW = {'fake': (2000, 5), 'kombu+memory': (500, 100)}
"""Casts and calls per round where the usual number would take too long."""


class Endpoint:
    """Counts what arrives."""

    def __init__(self) -> None:
        self.expected = 0
        self.all_here = threading.Event()
        self._lock = threading.Lock()

    def check(self, context: object, traversal_id: str, node: int) -> int:
        """Answer with the node."""
        with self._lock:
            self.expected -= 1
            if self.expected == 0:
                self.all_here.set()
        return node


def open_transport(url: str) -> object:
    """A transport; `memory` is made directly, so that this runs from a plain checkout."""
    if not url.startswith('memory:'):
        # Leave no queue behind in a broker that others use.
        url += '?amqp_auto_delete=true' if url.startswith('rabbit:') else ''
        return oslo_messaging.get_rpc_transport(cfg.CONF, url)
    parsed = oslo_messaging.TransportURL.parse(cfg.CONF, url)
    return oslo_messaging.transport.RPCTransport(MemoryDriver(cfg.CONF, parsed, 'benchmark'))


def median_us(count: int, once: Callable[[], object]) -> float:
    """Microseconds per message of `once`, which deals with `count` messages."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        once()
        rounds.append((time.perf_counter() - begin) / count * 1e6)
    return statistics.median(rounds)


def measure(url: str) -> tuple[float, float]:
    """Microseconds of a cast and of a call."""
    transport, endpoint = open_transport(url), Endpoint()
    target = oslo_messaging.Target(topic='benchmark', server='server')
    server = oslo_messaging.get_rpc_server(transport, target, [endpoint])
    server.start(override_pool_size=4)
    client = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(topic='benchmark'))
    casts, calls = _SLOW.get(url.partition(':')[0], (2000, 1000))

    def cast() -> None:
        endpoint.expected = casts
        endpoint.all_here.clear()
        for node in range(casts):
            client.cast({}, 'check', traversal_id='t' * 36, node=node)
        endpoint.all_here.wait()

    def call() -> None:
        for node in range(calls):
            client.call({}, 'check', traversal_id='t' * 36, node=node)

    client.call({}, 'check', traversal_id='warm up', node=0)
    figures = median_us(casts, cast), median_us(calls, call)
    server.stop()
    return figures


if __name__ == '__main__':
    for each in ('fake://', 'memory://', 'kombu+memory://', *sys.argv[1:]):
        cast_us, call_us = measure(each)
        print(f'{each.partition(":")[0]:14} cast {cast_us:9.0f}   call {call_us:9.0f}')
