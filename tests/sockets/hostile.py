"""Sockets that keep a server waiting, in every way that holds a thread of a simple one.

They run in one thread of their own, on an event loop, and open a socket again as soon as the server has closed it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

KINDS = ('headers', 'idle', 'bodies', 'chunked', 'readers')
PAUSE_S = 2.0
"""Seconds between two bytes: less than what any server calls silence."""
OPENINGS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Target:
    """What is attacked.

    :param url: of the server, without a path.
    :param post: path of a route that reads a body.
    :param get: path whose answer is long.
    :param source: address from which the sockets come; empty: whatever the system chooses.
    """

    url: str
    post: str = '/v1/p/validate'
    get: str = '/openapi.json'
    source: str = ''


class Hostile:
    """`count` sockets of one kind, while the block goes on.

    :ivar opened: sockets opened so far.
    :ivar closed: sockets that the server has closed so far.
    """

    def __init__(self, target: Target, kind: str, count: int, *, pause_s: float = PAUSE_S) -> None:
        self._target, self._kind, self._count, self._pause_s = target, kind, count, pause_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f'hostile-{kind}', daemon=True)
        self._stopping = asyncio.Event()
        self._limit = asyncio.Semaphore(OPENINGS_AT_ONCE)
        self._began = threading.Event()
        self.opened = self.closed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(30)

    def wait_until_all_have_begun(self, timeout_s: float) -> bool:
        """Whether each socket has been opened once within `timeout_s` seconds."""
        return self._began.wait(timeout_s)

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._all())

    async def _all(self) -> None:
        sockets = [asyncio.ensure_future(self._again_and_again()) for _ in range(self._count)]
        await self._stopping.wait()
        for each in sockets:
            each.cancel()
        await asyncio.gather(*sockets, return_exceptions=True)

    async def _again_and_again(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                async with self._open() as (reader, writer):
                    self.opened += 1
                    if self.opened >= self._count:
                        self._began.set()
                    await self._hold(reader, writer)
                self.closed += 1
            await asyncio.sleep(0.05)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        parts = urlsplit(self._target.url)
        context = ssl._create_unverified_context() if parts.scheme == 'https' else None
        local = (self._target.source, 0) if self._target.source else None
        async with self._limit:
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port, ssl=context, local_addr=local, limit=4096
            )
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep the server waiting until it closes the socket."""
        first, byte = self._words()
        writer.write(first)
        if self._kind == 'readers':
            # Long answers are asked for, and next to nothing of them is read.
            while await reader.read(1):
                await asyncio.sleep(self._pause_s)
            return
        gone = asyncio.ensure_future(reader.read())
        try:
            while not gone.done():
                await asyncio.wait([gone], timeout=self._pause_s)
                writer.write(byte())
                await writer.drain()
        finally:
            gone.cancel()

    def _words(self) -> tuple[bytes, Callable[[], bytes]]:
        """What is said at first, and what again and again."""
        host = urlsplit(self._target.url).netloc
        post = f'POST {self._target.post} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n'.encode()
        get = f'GET {self._target.get} HTTP/1.1\r\nHost: {host}\r\n'.encode()
        words: dict[str, tuple[bytes, Callable[[], bytes]]] = {
            'headers': (get + b'X-Slow: ', lambda: b'x'),
            'idle': (b'', lambda: b''),
            'bodies': (post + b'Content-Length: 100000\r\n\r\n{', lambda: b' '),
            'chunked': (post + b'Transfer-Encoding: chunked\r\n\r\n', lambda: b'1\r\n \r\n'),
            'readers': (get + b'\r\n', lambda: b''),
        }
        return words[self._kind]
