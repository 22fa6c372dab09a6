"""Answers of many lines, each a JSON document of its own, sent as soon as it is known."""

import asyncio
import threading
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from penstock.api.answers import Flow, Write

NDJSON = "application/x-ndjson"
HEARTBEAT_SECONDS = 10.0
_encode = msgspec.json.Encoder().encode


def lines(values: Iterator[Struct], stop: threading.Event) -> Flow:
    """Values that come slowly, worked out in a thread; `stop` is set when nobody reads on.

    While there is none an empty line comes now and then, so that nobody thinks it was broken off.
    """

    async def pour(write: Write) -> None:
        try:
            while True:
                work = asyncio.ensure_future(asyncio.to_thread(next, values, None))
                while not (await asyncio.wait({work}, timeout=HEARTBEAT_SECONDS))[0]:
                    await write(b"\n")
                if (value := work.result()) is None:
                    return
                await write(_encode(value) + b"\n")
        finally:
            stop.set()

    return Flow(NDJSON, pour)
