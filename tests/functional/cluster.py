"""Real engines and workers, each a process of its own, on a real broker and a real database."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from convergence_simulator.real.launcher import QUICK, LaunchedProcess, Launcher, merged
from oslo_config import cfg
from oslo_context.context import RequestContext

from convergence.rpc.client import EngineClient
from convergence.rpc.transport import connect
from tests.functional.cloud import VARIABLE, Cloud, Line
from tests.functional.cloud_types import TYPES
from tests.preloaded import manage, program

ROOT = Path(__file__).parents[2]
LONG_S = 90.0
"""Longer than any of this takes, even on a machine that is busy with something else."""

DEFAULTS = {
    'executor': 'threading',
    'park_after_s': 60,
    'heartbeat_interval_s': 0.5,
    'lease_s': 4,
    'create_ambiguity_s': 60,
    'cancel_grace_s': 5,
    'threads': 8,
}
"""What `Cluster` uses where it is told nothing else. Times in seconds; `threads` are those of a worker."""


def eventually(look: Callable[[], Any], what: str, limit_s: float = LONG_S) -> Any:
    """What `look` gives as soon as that is true of anything."""
    ends = time.monotonic() + limit_s
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < ends, f'{what}: not within {limit_s} s'
        time.sleep(0.05)


def environment(directory: Path, cloud: Path) -> dict[str, str]:
    """The environment of the programs: the types of the tests look installed, and nothing of this user's is read."""
    installed = directory / 'installed' / 'test_cloud-1.dist-info'
    installed.mkdir(parents=True, exist_ok=True)
    (installed / 'METADATA').write_text('Metadata-Version: 2.1\nName: test-cloud\nVersion: 1\n')
    points = ''.join(f'{name} = {kind.__module__}:{kind.__name__}\n' for name, kind in TYPES.items())
    (installed / 'entry_points.txt').write_text(f'[convergence.resource_types]\n{points}')
    return {
        'PYTHONPATH': os.pathsep.join([str(installed.parent), str(ROOT)]),
        'HOME': str(directory),
        'XDG_CACHE_HOME': str(directory / 'cache'),
        VARIABLE: str(cloud),
    }


class ForkedProcess(LaunchedProcess):
    """A program that has been loaded before."""

    def _begin(self, module, arguments, directory, environment):
        return program(module).start(*arguments, directory=directory, environment=environment, log=self.log)


class Cluster(Launcher):
    """Engines and workers that share a database and a broker. On system threads they have been loaded before.

    :param options: `database_url`, `rabbit_url`, `exchange`; optionally what stands in
        `DEFAULTS`, `special` as for `Launcher`, `from_scratch`: whether
        programs are started as an operator does it, and `call_timeout_s`: for how long a client waits for an answer.
    """

    def __init__(self, directory: Path, **options: Any) -> None:
        self.cloud = Cloud(directory / 'cloud')
        given = {**DEFAULTS, **options}
        sections = {
            'DEFAULT': {'executor': given['executor'], 'control_exchange': given['exchange'], 'host': 'functional'},
            'database': {'connection': given['database_url']},
            'transport': {'url': given['rabbit_url']},
            'api': {'port': 0},
            'engine': {name: given[name] for name in ('heartbeat_interval_s', 'lease_s', 'create_ambiguity_s')},
            'worker': {name: given[name] for name in ('threads', 'park_after_s', 'cancel_grace_s')}
            | {'drain_timeout_s': 20},
        }
        if given['executor'] == 'threading' and not options.get(
            'from_scratch'
        ):  # others are to be installed before anything is imported
            self.process = ForkedProcess
        super().__init__(
            directory,
            merged(QUICK, sections),
            environment(directory, self.cloud.root),
            special=options.get('special', ''),
        )
        limit_s = options.get('call_timeout_s', 60.0)
        self._transport = connect(cfg.CONF, options['rabbit_url'], prefix=options['exchange'], call_timeout_s=limit_s)
        self.client = EngineClient(self._transport)

    def context(self) -> RequestContext:
        """Who asks."""
        return RequestContext(user_id='alice', project_id='functional', overwrite=False)

    def worker(self, pid: int) -> LaunchedProcess:
        """The worker with a process id."""
        return next(each for each in self.workers if each.pid == pid)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        given = ['--config-file', str(self.configuration), *arguments]
        return manage().run(*given, directory=self.directory, environment=self.environment)

    def close(self) -> list[tuple[str, int]]:
        """End everything in good order; program and exit code of each process that ran until now."""
        ended = self.stop()
        self._transport.close()
        return ended

    # --- stacks -----------------------------------------------------------------------------------------------

    def create(self, name: str, template: str, **args: Any) -> Stack:
        """Ask for a stack."""
        return Stack(self, self.client.create_stack(self.context(), name, template, args=args))

    def called(self, stack: str, name: str, what: str) -> Line:
        """The first such line in the journal of the cloud, as soon as there is one."""
        return next(iter(eventually(lambda: self.cloud.journal(stack, name, what), f'{what} of {stack}/{name}')))

    def creators(self, name: str) -> set[str]:
        """The ids of the workers that created something of a stack, by what they logged."""
        return set(
            re.findall(rf'stack={name} .*worker=([0-9a-f-]+)\] Ended CREATE of .*: result Succeeded', self.logs())
        )


class Stack:
    """A stack of a cluster."""

    def __init__(self, cluster: Cluster, identity: dict[str, Any]) -> None:
        self._cluster = cluster
        self.identity = identity
        self.name = identity['stack_name']

    def show(self) -> dict[str, Any]:
        """Everything about it."""
        shown: dict[str, Any] = self._cluster.client.show_stack(self._cluster.context(), self.identity)[0]
        return shown

    def state(self) -> str:
        """Action and status."""
        shown = self.show()
        return f'{shown["stack_action"]}_{shown["stack_status"]}'

    def ended(self, limit_s: float = LONG_S) -> str:
        """Action and status, once it is not in progress any more."""
        ends = time.monotonic() + limit_s
        while (state := self.state()).endswith('IN_PROGRESS'):
            if time.monotonic() > ends:
                explained = self._cluster.client.stack_explain(self._cluster.context(), self.identity)
                raise AssertionError(f'{self.name} is still {state}: {json.dumps(explained, indent=1)}')
            time.sleep(0.05)
        return state

    def update(self, template: str, **args: Any) -> None:
        """Ask for something else."""
        self._cluster.client.update_stack(self._cluster.context(), self.identity, template, args=args)

    def delete(self) -> None:
        """Ask for its end."""
        self._cluster.client.delete_stack(self._cluster.context(), self.identity)

    def cancel(self, *, rollback: bool) -> None:
        """Ask for the operation in progress to be stopped."""
        self._cluster.client.stack_cancel_update(self._cluster.context(), self.identity, rollback, now=True)

    def template(self) -> dict[str, Any]:
        """Its present goal."""
        return self._cluster.client.get_template(self._cluster.context(), self.identity)

    def resources(self) -> dict[str, dict[str, Any]]:
        """Its resources by name."""
        rows = self._cluster.client.list_stack_resources(self._cluster.context(), self.identity)
        return {row['resource_name']: row for row in rows}
