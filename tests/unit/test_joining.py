"""Responses that are sent in one piece."""

import asyncio
from collections.abc import Callable, Iterable

from penstock.server.responses import JoiningTransport

HEAD, BODY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"{}"


class RecordingWire(asyncio.Transport):
    """A transport that records every write that reaches the system."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.sent.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


def run_on_loop(use: Callable[[JoiningTransport, RecordingWire], None]) -> RecordingWire:
    """Use a transport, then let the event loop run once."""
    wire = RecordingWire()

    async def run() -> None:
        use(JoiningTransport(wire), wire)
        await asyncio.sleep(0)

    asyncio.run(run())
    return wire


def test_head_and_body_are_sent_together() -> None:
    def use(transport: JoiningTransport, wire: RecordingWire) -> None:
        for _ in range(2):
            transport.write(HEAD)
            transport.write(BODY)

    assert run_on_loop(use).sent == [HEAD + BODY] * 2


def test_a_head_without_a_body_is_sent_next_iteration() -> None:
    def use(transport: JoiningTransport, wire: RecordingWire) -> None:
        transport.write(HEAD)
        transport.write(b"")
        assert wire.sent == []

    assert run_on_loop(use).sent == [HEAD]


def test_closing_sends_buffered_bytes_first() -> None:
    def use(transport: JoiningTransport, wire: RecordingWire) -> None:
        transport.write(HEAD)
        transport.close()
        assert (wire.sent, wire.is_closed) == ([HEAD], True)

    assert run_on_loop(use).sent == [HEAD]


def test_nothing_is_written_to_a_closed_connection() -> None:
    def use(transport: JoiningTransport, wire: RecordingWire) -> None:
        transport.write(HEAD)
        wire.close()

    assert run_on_loop(use).sent == []


def test_three_pieces_keep_their_order() -> None:
    def use(transport: JoiningTransport, wire: RecordingWire) -> None:
        for piece in (HEAD, b"{", b"}"):
            transport.write(piece)

    assert b"".join(run_on_loop(use).sent) == HEAD + BODY
