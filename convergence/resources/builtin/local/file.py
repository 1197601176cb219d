"""``Convergence::Local::File``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.local.ownership import Owner, Ownership
from convergence.resources.builtin.local.path_watching import paths_watched
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.local.sandbox import Sandbox, checked
from convergence.resources.constraints import AllowedPattern
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    Item,
    ObjectNotFound,
    Observed,
    ResourceType,
    Tell,
    Watcher,
)
from convergence.resources.schema import prop


@dataclass(frozen=True)
class FileProperties:
    """See the descriptions of the fields."""

    path: str = prop(description='Path of the file in its directory.')
    directory: str | None = prop(
        None, description='Directory, as get_resource of a Convergence::Local::Directory gives it; default the root.'
    )
    content: str = prop('', update_allowed=True, description='Text of the file.')
    mode: str = prop(
        '0644',
        update_allowed=True,
        constraints=[AllowedPattern('0?[0-7]{3}')],
        description='Permissions, octal: "0600".',
    )

    def __post_init__(self) -> None:
        self.place()

    def place(self) -> str:
        """The path below the root directory.

        :raises ValueError: it would leave the root.
        """
        inner = checked(self.path)
        return f'{checked(self.directory)}/{inner}' if self.directory else inner


@dataclass(frozen=True)
class FileAttributes:
    """The attributes of a file."""

    path: str = attr('Absolute path.', of=('path', 'directory'))
    name: str = attr('Path below the root directory; what get_resource gives too.', of=('path', 'directory'))
    sha256: str = attr('Digest of the content, hexadecimal.', of=('content',))


class File(ResourceType[FileProperties]):
    """A file on this machine."""

    Properties = FileProperties
    Attributes = FileAttributes
    token_enforced = True  # A repeated create finds its own record at the path.
    create_ambiguity_s = 0.0  # Every effect ends with the worker.

    def __init__(self, provider: LocalProvider) -> None:
        self._root = provider.root
        self._sandbox = Sandbox(provider.root)
        self._ownership = Ownership(provider.root)

    @override
    def create(self, call: Call[FileProperties]) -> Answer:
        """Write the file; its directory must exist."""
        path = call.properties.place()
        with self._ownership.locked():
            self._ownership.claim(Owner.of(call, path, 'file'), occupied=self._sandbox.exists(path))
            try:
                self._write(path, call.properties)
            except ObjectNotFound as error:
                self._ownership.forget(path)
                raise FinalFailure(f'{error}; make it with a Convergence::Local::Directory first') from error
        return Done(path)

    @override
    def update(self, call: Call[FileProperties]) -> Answer:
        """Write the new content and permissions."""
        path = _path(call)
        with self._ownership.locked():
            if not self._ownership.owns(call, path):
                raise FinalFailure(f'{path} is no longer the file of {call.name}; it is not changed')
            self._write(path, call.properties)
        return Done()

    @override
    def delete(self, call: Call[FileProperties]) -> Answer:
        """Remove the file."""
        path = _path(call)
        with self._ownership.locked():
            if not self._ownership.owns(call, path):
                raise ObjectNotFound(f'{path} is not (or no longer) the file of {call.name}')
            try:
                self._sandbox.remove_file(path)
            finally:
                if not self._sandbox.exists(path):
                    self._ownership.forget(path)
        return Done()

    @override
    def find(self, call: Call[FileProperties]) -> Answer | None:
        """The file, if it was written."""
        path = call.properties.place()
        with self._ownership.locked():
            made = self._ownership.owns(call, path) and self._sandbox.exists(path)
        return Done(path) if made else None

    @override
    def inventory(self) -> Iterable[Item]:
        """The files that were written here and exist."""
        return self._ownership.inventory('file', self._sandbox.exists)

    @override
    def observe(self, call: Call[FileProperties]) -> Observed:
        """Content and permissions that the file has."""
        content, mode = self._sandbox.read(_path(call))
        return Observed(properties={'content': content.decode(errors='replace'), 'mode': f'{mode:04o}'})

    @override
    def watcher(self, tell: Tell) -> Watcher | None:
        """Return a watcher that reports changed, removed and moved files."""
        return paths_watched(self._root, tell)

    @override
    def canonical(self, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
        """ "644" is no other mode than "0644"."""
        return {**properties, 'mode': str(properties.get('mode', '')).zfill(4)}

    @override
    def attribute(self, call: Call[FileProperties], name: str) -> Json:
        """The path, absolute or below the root, or the digest of the content."""
        if name == 'sha256':
            return hashlib.sha256(call.properties.content.encode()).hexdigest()
        return self._sandbox.absolute(_path(call)) if name == 'path' else _path(call)

    def _write(self, path: str, properties: FileProperties) -> None:
        self._sandbox.write(path, properties.content.encode(), int(properties.mode, 8))


def _path(call: Call[FileProperties]) -> str:
    # A delete may come with properties that were never right, and then there is no file.
    try:
        return call.physical_id or call.properties.place()
    except ValueError as error:
        raise ObjectNotFound(f'{call.name} has no file') from error
