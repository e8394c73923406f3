"""A TCP proxy on this machine that can be cut, as a network is: with a word to both sides, or without any."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

from tailrace._process.ports import HOST

CHUNK = 64 * 1024


class TcpProxy:
    """Passes bytes between its own port and the target's, in a thread of its own.

    The port is there from the beginning, the target is named later: a broker must be told the proxy's port first.
    """

    def __init__(self) -> None:
        self.port = 0
        self.target_port: int | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._refusing = False
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> TcpProxy:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_failure: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break every connection and refuse new ones."""
        self._do(self._cut())

    def fall_silent(self) -> None:
        """Keep every connection, accept new ones, and pass nothing on."""
        self._do(self._fall_silent())

    def restore(self) -> None:
        self._do(self._restore())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connect, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        self._refusing = True
        self._break_connections()

    async def _fall_silent(self) -> None:
        self._flowing.clear()

    async def _restore(self) -> None:
        self._refusing = False
        self._flowing.set()

    async def _close(self) -> None:
        self._refusing = True
        self._flowing.set()
        self._server.close()
        self._break_connections()
        # Let the broken ones see it, so that no task is left behind.
        ours = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.wait(ours, timeout=2) if ours else None

    def _break_connections(self) -> None:
        for writer in self._connections:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        self._connections.add(writer)
        try:
            there, back = await asyncio.open_connection(HOST, self.target_port)
        except OSError:
            self._connections.discard(writer)
            writer.transport.abort()
            return
        self._connections.add(back)
        await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction, until either side ends."""
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        self._connections.discard(writer)
        writer.close()
