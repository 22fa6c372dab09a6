"""A server that answers every request without reading it: the limit of the load generator."""

import asyncio
import multiprocessing
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import uvloop

_ANSWER = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class _Answering(asyncio.Protocol):
    """Answers at each end of a request."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not declare asyncio's type.
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"}"):
            self._transport.write(_ANSWER)


def _serve(listener: socket.socket) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Answering, sock=listener)
        await server.serve_forever()

    uvloop.run(run())


@contextmanager
def answering_server() -> Iterator[int]:
    """Run the server, and yield its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    process = multiprocessing.get_context("fork").Process(
        target=_serve, args=(listener,), daemon=True
    )
    process.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        process.terminate()
        process.join()
        listener.close()
