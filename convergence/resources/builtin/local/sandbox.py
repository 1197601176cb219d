"""File operations that cannot leave one directory.

Every step from the root to the target is opened relative to the one before and without following symbolic links,
so neither ``..`` nor a link, not even one that appears while we work, leads outside.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from convergence.resources.contract import FinalFailure, ObjectNotFound

STATE = '.convergence'
"""Directory below the root in which the provider keeps its own records; closed to templates."""

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def checked(path: str) -> str:
    """`path` in its one normal spelling.

    :raises ValueError: it is empty, absolute, climbs with ``..``, or enters the provider's own records.
    """
    parts = PurePosixPath(path).parts
    if not parts or '\0' in path:
        raise ValueError('a path below the root directory is wanted')
    if PurePosixPath(path).is_absolute() or '..' in parts:
        raise ValueError('the path must be relative to the root directory and must not contain ..')
    if parts[0] == STATE:
        raise ValueError(f'{STATE} belongs to the local provider')
    return '/'.join(parts)


class Sandbox:
    """Files and directories below `root`. Paths are relative and `checked`.

    :raises FinalFailure: from every method, where a path leads through a symbolic link or something in the way.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def absolute(self, path: str) -> str:
        """The absolute path, for people and programs."""
        return str(self._root / path)

    def exists(self, path: str) -> bool:
        """Whether anything is there."""
        try:
            with self._parent(path) as (parent, name):
                os.stat(name, dir_fd=parent, follow_symlinks=False)
        except (FileNotFoundError, ObjectNotFound):
            return False
        return True

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""
        try:
            with self._parent(path) as (parent, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except (FileNotFoundError, ObjectNotFound):
            return False

    def make_directory(self, path: str) -> None:
        """Make a directory; one that is there already is fine. The parent must exist."""
        with self._parent(path) as (parent, name):
            try:
                os.mkdir(name, mode=0o755, dir_fd=parent)
            except FileExistsError:
                os.close(self._enter(parent, name, path))

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory.

        :raises OSError: it is not empty; FileNotFoundError: it is not there.
        """
        with self._parent(path) as (parent, name):
            os.rmdir(name, dir_fd=parent)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it; links are removed, not followed."""
        with self._parent(path) as (parent, name):
            shutil.rmtree(name, dir_fd=parent)

    def entries(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        with self._parent(path) as (parent, name):
            descriptor = self._enter(parent, name, path)
            try:
                return sorted(os.listdir(descriptor))
            finally:
                os.close(descriptor)

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Put a file there, all at once: a reader sees the old content or the new."""
        with self._parent(path) as (parent, name):
            if _is_directory(parent, name):
                raise FinalFailure(f'{path} is a directory; choose another path for the file')
            temporary = f'.{name}.{secrets.token_hex(4)}'
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, mode=0o600, dir_fd=parent)
            try:
                with os.fdopen(descriptor, 'wb') as file:
                    file.write(content)
                    file.flush()
                    os.fchmod(file.fileno(), mode)
                    os.fsync(file.fileno())
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                _remove_if_there(parent, temporary)
                raise

    def read(self, path: str) -> tuple[bytes, int]:
        """Content and permission bits of a file.

        :raises ObjectNotFound: it is not there.
        """
        with self._parent(path) as (parent, name):
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            except FileNotFoundError as error:
                raise ObjectNotFound(f'{path} does not exist') from error
            with os.fdopen(descriptor, 'rb') as file:
                return file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)

    def open_log(self, path: str) -> int:
        """A descriptor that appends to a file, which is made where needed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._parent(path) as (parent, name):
            return os.open(name, flags, mode=0o600, dir_fd=parent)

    def open_directory(self, path: str | None) -> int:
        """A descriptor of a directory; None is the root."""
        if path is None:
            return os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with self._parent(path) as (parent, name):
            return self._enter(parent, name, path)

    def remove_file(self, path: str) -> None:
        """Remove a file.

        :raises ObjectNotFound: it is not there.
        """
        with self._parent(path) as (parent, name):
            try:
                os.unlink(name, dir_fd=parent)
            except FileNotFoundError as error:
                raise ObjectNotFound(f'{path} does not exist') from error

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The opened directory that holds `path`, and the last name of it."""
        *parents, name = path.split('/')
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for parent in parents:
                entered = self._enter(descriptor, parent, path)
                os.close(descriptor)
                descriptor = entered
            yield descriptor, name
        finally:
            os.close(descriptor)

    def _enter(self, parent: int, name: str, path: str) -> int:
        try:
            return os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
        except FileNotFoundError as error:
            raise ObjectNotFound(f'{path}: the directory {name} does not exist') from error
        except OSError as error:
            raise FinalFailure(f'{path}: {name} is a symbolic link or no directory; it is not entered') from error


def _is_directory(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _remove_if_there(parent: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass
