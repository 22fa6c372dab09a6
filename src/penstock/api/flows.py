"""Answers that go on for as long as there is something to say."""

import asyncio
import logging

from penstock.api.answers import NO_SNIFF, NO_STORE, Flow
from penstock.api.asgi import Receive, Send
from penstock.errors import PenstockError

_log = logging.getLogger(__name__)


async def pour(flow: Flow, method: str, receive: Receive, send: Send) -> None:
    """Send the answer piece by piece, until it ends or its reader is gone."""
    headers = [
        (b"content-type", flow.content_type.encode()),
        NO_SNIFF,
        NO_STORE,
        (b"x-accel-buffering", b"no"),  # a proxy must not collect the pieces
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if method == "HEAD" or await _ended_well(flow, receive, send):
        await send({"type": "http.response.body", "body": b""})


async def _ended_well(flow: Flow, receive: Receive, send: Send) -> bool:
    async def write(piece: bytes) -> None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    work = asyncio.ensure_future(flow.pour(write))
    leaving = asyncio.ensure_future(gone())
    try:
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        work.cancel()
        leaving.cancel()
        await asyncio.gather(work, leaving, return_exceptions=True)
    if work.cancelled():
        return False
    error = work.exception()
    if isinstance(error, PenstockError):
        _log.warning("an answer broke off: %s", error)
    elif error is not None:
        _log.error("an answer broke off", exc_info=error)
    return error is None
