"""A cluster of three RabbitMQ nodes of the run's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.cluster_servers import free_ports
from tests.chaos.servers import START_S, CannotStart, Unavailable, _Owned

COUNT = 3


class RabbitNode(_Owned):
    """One node.

    :param home: of all nodes: there the secret lies by which they know each other.
    :param ports: of clients, and of other nodes, for each node in turn.
    """

    name = 'rabbit'

    def __init__(self, directory: Path, number: int, home: Path, ports: list[int]) -> None:
        super().__init__(directory, 'rabbitmq')
        path = f'{os.environ["PATH"]}:/usr/sbin'
        server, control = shutil.which('rabbitmq-server', path=path), shutil.which('rabbitmqctl', path=path)
        if server is None or control is None:
            raise Unavailable('RabbitMQ (rabbitmq-server, rabbitmqctl) is not installed')
        # The scripts in /usr/sbin change to an account of their own, and forget this environment on the way.
        real = Path('/usr/lib/rabbitmq/bin')
        if (real / 'rabbitmq-server').exists():
            server, control = str(real / 'rabbitmq-server'), str(real / 'rabbitmqctl')
        self._server, self._control = server, control
        self.port, distribution = ports[2 * number : 2 * number + 2]
        self.node = f'convergence_chaos_{os.getpid()}_{self.port}@localhost'
        configuration = directory / 'rabbitmq.conf'
        configuration.write_text('cluster_partition_handling = pause_minority\n')
        self._environment = {
            'HOME': str(home),
            'RABBITMQ_NODENAME': self.node,
            'RABBITMQ_NODE_PORT': str(self.port),
            'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
            'RABBITMQ_DIST_PORT': str(distribution),
            'RABBITMQ_MNESIA_BASE': str(directory / 'mnesia'),
            'RABBITMQ_LOG_BASE': str(directory / 'logs'),
            'RABBITMQ_ENABLED_PLUGINS_FILE': str(directory / 'plugins'),
            'RABBITMQ_CONFIG_FILE': str(configuration),
            'RABBITMQ_CONF_ENV_FILE': '/nonexistent',
            'RABBITMQ_PID_FILE': str(directory / 'pid'),
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': '+S 1:1',
        }

    def start(self) -> None:
        """Start it; a node that was a member comes back to the others. Returns when it serves.

        :raises CannotStart: it does not.
        """
        self.begin(self._server, **self._environment)
        self.control('await_startup')

    def control(self, *command: str) -> None:
        """Have ``rabbitmqctl`` do something to this node."""
        self.run(self._control, *command, **self._environment)

    def join(self, other: RabbitNode) -> None:
        """Become a member of the other's cluster."""
        self.control('stop_app')
        self.control('join_cluster', other.node)
        self.control('start_app')

    def stall(self, seconds: float) -> None:
        """Stand still for so long."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.killpg(self._process.pid, signal.SIGCONT)


class Rabbits:
    """Three nodes. A client is given all of them.

    :raises Unavailable: a program is missing.
    """

    def __init__(self, directory: Path) -> None:
        home = directory / 'home'
        home.mkdir(parents=True)
        ports = free_ports(2 * COUNT)
        self.nodes = [RabbitNode(directory / f'r{number}', number, home, ports) for number in range(COUNT)]
        if self.nodes[0]._account is not None:
            shutil.chown(home, self.nodes[0]._account, self.nodes[0]._account)

    @property
    def url(self) -> str:
        """Names each of them."""
        return 'rabbit://' + ','.join(f'guest:guest@127.0.0.1:{node.port}' for node in self.nodes) + '/'

    def start(self) -> None:
        """One after the other."""
        for node in self.nodes:
            node.start()
            if node is not self.nodes[0]:
                node.join(self.nodes[0])

    def await_all(self) -> None:
        """Wait until each node serves again.

        :raises CannotStart: one does not.
        """
        ends = time.monotonic() + START_S
        for node in self.nodes:
            while True:
                try:
                    node.control('await_startup')
                    break
                except CannotStart:
                    if time.monotonic() > ends:
                        raise
                    time.sleep(1.0)

    def stop(self) -> None:
        """End all of them."""
        for node in reversed(self.nodes):
            node.end(signal.SIGKILL)


@contextlib.contextmanager
def rabbits(directory: Path) -> Iterator[Rabbits]:
    """A RabbitMQ cluster, for the length of a block.

    :raises Unavailable: a program is missing.
    :raises CannotStart: they are all there, and it does not start.
    """
    directory.mkdir(parents=True)
    cluster = Rabbits(directory)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
