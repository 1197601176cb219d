"""``Convergence::Local::Directory``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.local.ownership import Owner, Ownership
from convergence.resources.builtin.local.path_watching import paths_watched
from convergence.resources.builtin.local.provider import LocalProvider
from convergence.resources.builtin.local.sandbox import Sandbox, checked
from convergence.resources.builtin.waiting import physical_name
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
class DirectoryProperties:
    """See the descriptions of the fields."""

    path: str | None = prop(
        None, description='Path below the root directory; by default made from the names of stack and resource.'
    )
    force: bool = prop(False, update_allowed=True, description='Delete the directory with all its contents.')

    def __post_init__(self) -> None:
        if self.path is not None:
            checked(self.path)


@dataclass(frozen=True)
class DirectoryAttributes:
    """The attributes of a directory."""

    path: str = attr('Absolute path.')
    name: str = attr('Path below the root directory; what get_resource gives too.')


class Directory(ResourceType[DirectoryProperties]):
    """A directory on this machine."""

    Properties = DirectoryProperties
    Attributes = DirectoryAttributes
    token_enforced = True  # A repeated create finds its own record at the path.
    create_ambiguity_s = 0.0  # Every effect ends with the worker.

    def __init__(self, provider: LocalProvider) -> None:
        self._root = provider.root
        self._sandbox = Sandbox(provider.root)
        self._ownership = Ownership(provider.root)

    @override
    def create(self, call: Call[DirectoryProperties]) -> Answer:
        """Make the directory; its parent must exist."""
        path = _path(call)
        with self._ownership.locked():
            self._ownership.claim(Owner.of(call, path, 'directory'), occupied=self._sandbox.exists(path))
            try:
                self._sandbox.make_directory(path)
            except ObjectNotFound as error:
                self._ownership.forget(path)
                raise FinalFailure(f'{error}; make it with a Convergence::Local::Directory first') from error
        return Done(path)

    @override
    def delete(self, call: Call[DirectoryProperties]) -> Answer:
        """Remove the directory, with logs of processes that ran in it; nothing else must be left in it."""
        path = call.physical_id or _path(call)
        with self._ownership.locked():
            if not self._ownership.owns(call, path):
                raise ObjectNotFound(f'{path} is not (or no longer) the directory of {call.name}')
            if self._sandbox.is_directory(path):
                if call.properties.force:
                    self._sandbox.remove_tree(path)
                else:
                    self._remove_empty(path)
            self._ownership.forget(path)
        return Done()

    @override
    def find(self, call: Call[DirectoryProperties]) -> Answer | None:
        """The directory, if it was made."""
        path = _path(call)
        with self._ownership.locked():
            made = self._ownership.owns(call, path) and self._sandbox.is_directory(path)
        return Done(path) if made else None

    @override
    def inventory(self) -> Iterable[Item]:
        """The directories that were made here and exist."""
        return self._ownership.inventory('directory', self._sandbox.is_directory)

    @override
    def observe(self, call: Call[DirectoryProperties]) -> Observed:
        """Return a healthy observation if the directory exists."""
        path = call.physical_id or _path(call)
        if not self._sandbox.is_directory(path):
            raise ObjectNotFound(f'the directory {path} does not exist')
        return Observed()

    @override
    def watcher(self, tell: Tell) -> Watcher | None:
        """Return a watcher that reports removed and moved directories."""
        return paths_watched(self._root, tell)

    @override
    def attribute(self, call: Call[DirectoryProperties], name: str) -> Json:
        """The path, absolute or below the root."""
        path = call.physical_id or _path(call)
        return self._sandbox.absolute(path) if name == 'path' else path

    def _remove_empty(self, path: str) -> None:
        entries = self._sandbox.entries(path)
        owners = {entry: self._ownership.find(f'{path}/{entry}') for entry in entries}
        others = [entry for entry, owner in owners.items() if owner is None or owner.kind != 'log']
        if others:
            shown = ', '.join(others[:5]) + (' and more' if len(others) > 5 else '')
            raise FinalFailure(f'{path} is not empty: {shown}; remove that, or set force: true')
        for entry in entries:
            self._sandbox.remove_file(f'{path}/{entry}')
            self._ownership.forget(f'{path}/{entry}')
        self._sandbox.remove_directory(path)


def _path(call: Call[DirectoryProperties]) -> str:
    # A delete may come with properties that were never right, and then there is no directory.
    try:
        return checked(call.properties.path or physical_name(call))
    except ValueError as error:
        raise ObjectNotFound(f'{call.name} has no directory') from error
