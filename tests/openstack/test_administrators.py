"""Types whose objects only an administrator makes, or that the tests through the engine leave out: one by one."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pytest

from convergence.core.model import Action
from convergence.resources.contract import Call, InProgress
from convergence.resources.reading import Strictness
from convergence.resources.schema import PropertySchema
from tests.openstack import contents
from tests.openstack.layout import REGION, Layout
from tests.services import unique_name

pytestmark = pytest.mark.timeout(600)
FORMATS = {'disk_format': 'raw', 'container_format': 'bare'}


@dataclass
class Administrator:
    """Credentials of the user ``admin``."""

    layout: Layout
    project_id: str = 'admin'
    user_id: str = 'admin'
    region: str = REGION
    interface: str = 'public'

    def __post_init__(self) -> None:
        self._session = contents.connection(self.layout).session
        self.auth_url = self.layout.auth_url

    def session(self) -> Any:
        """The session."""
        return self._session


class Resource:
    """A resource as a worker has it, at real services."""

    def __init__(self, types: str, layout: Layout, type_name: str, /, **properties: Any) -> None:
        self.kind = import_module(f'convergence_{types}.library').load(type_name)
        credentials = Administrator(layout)
        self.call: Call[Any] = Call(
            self._read(properties), 'thing', 'stack', 'stack-id', 'admin', 'row', unique_name(),
            credentials=lambda: credentials, type_name=type_name, record=self._record,
        )  # fmt: skip

    def _read(self, properties: Any) -> Any:
        return PropertySchema.of(self.kind.Properties).parse(properties, Strictness.STRICT)

    def _record(self, physical_id: str | None = None, data: Any = None) -> None:
        self.call = replace(self.call, physical_id=physical_id or self.call.physical_id, data=data or self.call.data)

    def do(self, action: Action) -> Resource:
        """Do something until it is done."""
        answer = getattr(self.kind, action.value.lower())(self.call)
        while True:
            self._record(answer.physical_id, answer.data)
            if not isinstance(answer, InProgress):
                return self
            time.sleep(answer.poll_after_s or 0.0)
            answer = self.kind.poll(self.call, action, answer.progress)

    def update(self, **properties: Any) -> None:
        """Change it."""
        self.call = replace(self.call, previous=self.call.properties, properties=self._read(properties))
        self.do(Action.UPDATE)


@pytest.fixture
def types(request):
    """The package whose types are tried out."""
    return request.config.getoption('--types')


@pytest.fixture
def address() -> Iterator[str]:
    """From where an image can be fetched."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header('Content-Length', '4')
            self.end_headers()
            self.wfile.write(b'none')

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect(('192.0.2.1', 9))
        own = unsent.getsockname()[0]  # Glance fetches nothing from a loopback address
    server = http.server.ThreadingHTTPServer((own, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://{own}:{server.server_port}/image'
    server.shutdown()
    server.server_close()


def test_a_project_comes_is_changed_and_goes(control_plane, types):
    cloud, name = contents.connection(control_plane.layout), unique_name()
    thing = Resource(types, control_plane.layout, 'OS::Keystone::Project', name=name, description='of mine')
    thing.do(Action.CREATE)
    made = cloud.identity.get_project(thing.call.physical_id)
    assert (made.name, made.description, made.domain_id) == (name, 'of mine', 'default')
    thing.update(name=name, description='of yours', tags=['a'])
    made = cloud.identity.get_project(thing.call.physical_id)
    assert (made.description, made.tags) == ('of yours', ['a'])
    assert thing.kind.find(replace(thing.call, physical_id=None)) is None, 'the label is gone'
    thing.do(Action.DELETE)
    assert cloud.identity.find_project(name) is None


def test_an_image_is_fetched_changed_and_goes(control_plane, types, address):
    cloud, name = contents.connection(control_plane.layout), unique_name()
    said = {**FORMATS, 'name': name, 'location': address}
    thing = Resource(types, control_plane.layout, 'OS::Glance::WebImage', **said, extra_properties={'mine': '1'})
    thing.do(Action.CREATE)
    shown = thing.kind.attribute(thing.call, 'show')
    assert (shown['name'], shown['status'], shown['mine']) == (name, 'active', '1')
    thing.update(**said, extra_properties={'yours': '2'}, tags=['a'], active=False, os_distro='none')
    shown = thing.kind.attribute(thing.call, 'show')
    assert (shown['status'], shown['tags'], shown['yours'], shown.get('mine')) == ('deactivated', ['a'], '2', None)
    thing.do(Action.DELETE)
    assert cloud.image.find_image(name) is None
