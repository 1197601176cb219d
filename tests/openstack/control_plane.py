"""The control plane as a whole: install, start, prove that it works, stop, remove."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any

import openstack.exceptions
import requests

from tests.openstack import configuration, contents, environment
from tests.openstack.layout import APIS, PASSWORD, Layout
from tests.openstack.processes import DoesNotStart, Processes, until
from tests.openstack.servers import Databases, VirtualHost

ANSWERS_S = 300.0
"""For how long services that were started are waited for, on a machine that is busy with other things."""

WORKS_S = 120.0

Say = Callable[[str], object]


class ControlPlane:
    """One control plane of this machine.

    Each start is from the saved databases, so whatever was done with the services before is gone.

    :param say: is told what goes on.
    """

    def __init__(self, layout: Layout, say: Say = print) -> None:
        self.layout = layout
        self.processes = Processes(layout)
        self._databases = Databases(layout)
        self._virtual_host = VirtualHost(layout)
        self._say = say

    def start(self) -> None:
        """Have it at work, with what `contents` describes and nothing else; install and prepare it where need be.

        :raises CannotInstall: the services could not be installed.
        :raises Refused: MariaDB or RabbitMQ did not do what they were asked for.
        :raises DoesNotStart: a service does not start, or does not work.
        """
        self.layout.directory.mkdir(parents=True, exist_ok=True)
        self.processes.stop()
        if self._timed('installed', lambda: environment.install(self.layout)):
            self.layout.dump.unlink(missing_ok=True)
        configuration.write(self.layout)
        self._virtual_host.make()
        if self.layout.dump.exists():
            self._timed('databases as they were saved', self._databases.restore)
        else:
            self._prepare()
        # The host of the pretended machines is a new one: its identity was in the databases that are gone.
        (self.layout.state / 'nova/compute_id').unlink(missing_ok=True)
        self.processes.start()
        self._timed('all answer', lambda: self.answering(*APIS))
        self._timed('it works', self._prove)

    def stop(self) -> None:
        """End it, and leave nothing in MariaDB and RabbitMQ."""
        self.processes.stop()
        self._databases.drop()
        self._virtual_host.drop()

    def remove(self) -> None:
        """Stop it, and remove what is installed and saved."""
        self.stop()
        shutil.rmtree(self.layout.directory, ignore_errors=True)

    def answering(self, *names: str) -> None:
        """Wait until APIs answer.

        :raises DoesNotStart: one does not.
        """
        for name in names:
            until(lambda name=name: self._answers(name), f'{name} answers', ANSWERS_S)

    def restart(self, name: str) -> None:
        """Start a service again that was stopped, and wait until it answers.

        :raises DoesNotStart: it does not.
        """
        self.processes.start(name)
        if name in APIS:
            self.answering(name)

    def is_at_work(self) -> bool:
        """Whether all processes run."""
        return set(self.processes.running()) == set(self.processes.names)

    # --- the first time -------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make the databases, fill them, and save them."""
        self._databases.make()
        for name in ('fernet', 'credential', 'images'):
            shutil.rmtree(self.layout.state / name)
            (self.layout.state / name).mkdir()
        for name, commands in self._migrations().items():
            self._timed(f'databases of {name}', lambda commands=commands: self._run_all(commands))
        self.processes.start('keystone')
        try:
            self.answering('keystone')
            contents.accounts(self.layout)
            self.processes.start('glance', 'placement', 'neutron', 'nova')
            self._timed('answers for the first time', lambda: self.answering('glance', 'placement', 'neutron', 'nova'))
            self._timed('contents', lambda: contents.things(self.layout))
        finally:
            self.processes.stop()
        self._databases.save()
        self._virtual_host.make()

    def _migrations(self) -> dict[str, list[list[str]]]:
        etc, auth_url = self.layout.configuration, self.layout.auth_url
        account = ['--keystone-user', str(os.getuid()), '--keystone-group', str(os.getgid())]

        def manage(program: str, file: str, *arguments: str) -> list[str]:
            return [self.layout.program(program), '--config-file', str(etc / file), *arguments]

        def keystone(*arguments: str) -> list[str]:
            return manage('keystone-manage', 'keystone.conf', *arguments)

        def nova(*arguments: str) -> list[str]:
            return manage('nova-manage', 'nova.conf', *arguments)

        urls = [part for kind in ('admin', 'internal', 'public') for part in (f'--bootstrap-{kind}-url', auth_url)]
        region = ['--bootstrap-region-id', configuration.REGION]
        return {
            'keystone': [
                keystone('db_sync'),
                keystone('fernet_setup', *account),
                keystone('credential_setup', *account),
                keystone('bootstrap', '--bootstrap-password', PASSWORD, *urls, *region),
            ],
            'glance': [manage('glance-manage', 'glance-api.conf', 'db_sync')],
            'placement': [manage('placement-manage', 'placement.conf', 'db', 'sync')],
            'neutron': [manage('neutron-db-manage', 'neutron.conf', 'upgrade', 'heads')],
            'nova': [
                nova('api_db', 'sync'),
                nova('cell_v2', 'map_cell0', '--database_connection', self.layout.database_url('nova_cell0')),
                nova('cell_v2', 'create_cell', '--name', 'cell1'),
                nova('db', 'sync'),
            ],
            'cinder': [manage('cinder-manage', 'cinder.conf', 'db', 'sync')],
        }

    def _run_all(self, commands: list[list[str]]) -> None:
        more = {'OS_PLACEMENT_CONFIG_DIR': str(self.layout.configuration), 'PYTHONWARNINGS': 'ignore'}
        for command in commands:
            done = subprocess.run(
                command, env=os.environ | more, cwd=self.layout.directory, capture_output=True, text=True, check=False
            )
            if done.returncode:
                said = (done.stderr + done.stdout).strip()[-2000:]
                raise DoesNotStart(f'{" ".join(command[:5])} …: {said}')

    # --- does it work? ----------------------------------------------------------------------------------------------

    def _answers(self, name: str) -> bool:
        if not self.processes.listens(name):
            return False
        with contextlib.suppress(requests.RequestException):
            return requests.get(self.layout.url(name), timeout=60).status_code < 500
        return False

    def _prove(self) -> None:
        """Have a server made and removed: that an API answers says nothing about what is behind it.

        One network first, and alone: Neutron reads its policies with its first request, and refuses what comes in the
        meantime.
        """
        cloud = contents.connection(self.layout)
        network = cloud.network.create_network(name='first')
        cloud.network.delete_network(network)
        volume = cloud.block_storage.create_volume(name='first', size=1)
        flavor, image = cloud.compute.find_flavor('m1.tiny'), cloud.image.find_image('cirros')
        wanted: dict[str, Any] = {'name': 'first', 'flavor_id': flavor.id, 'image_id': image.id, 'networks': 'none'}
        ends = time.monotonic() + WORKS_S
        while True:
            self.processes.require()
            server = cloud.compute.create_server(**wanted)
            try:
                cloud.compute.wait_for_server(server, interval=0.5, wait=WORKS_S)
            except openstack.exceptions.ResourceFailure as error:  # the scheduler does not know the machine yet
                if time.monotonic() > ends:
                    raise DoesNotStart(f'no server can be made: {error}') from error
            else:
                break
            finally:
                cloud.compute.delete_server(server)
                cloud.compute.wait_for_delete(server, interval=0.5, wait=WORKS_S)
            time.sleep(1)
        cloud.block_storage.wait_for_status(volume, 'available', interval=0.5, wait=WORKS_S)
        cloud.block_storage.delete_volume(volume)
        cloud.block_storage.wait_for_delete(volume, interval=0.5, wait=WORKS_S)

    def _timed(self, what: str, do: Callable[[], Any]) -> Any:
        began = time.monotonic()
        answer = do()
        self._say(f'{what}: {time.monotonic() - began:.1f} s')
        return answer
