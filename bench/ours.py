"""Penstock's claims: from an event loop beside its writer, and over HTTP.

Workers complete a lot by the call that claims the next one, as `penstock run --loop` does.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count as counting
from itertools import islice
from typing import cast

import msgspec
import uvloop
from msgspec import Struct

from bench.processes import Bench
from bench.server import System
from bench.turns import Turn, in_tasks
from penstock.catalog.commands import DatasetName
from penstock.config import Settings
from penstock.locks.commands import (
    ClaimedLot,
    ClaimLots,
    ClaimRef,
    ClaimResult,
    CompleteAndClaim,
    CompleteClaims,
    RegisterLots,
    WireJob,
)
from penstock.plane import Plane

NAMESPACE = "bench"
JOB = "refine"
LANDED = DatasetName(NAMESPACE, "landed")
REFINED = DatasetName(NAMESPACE, "refined")
WHO = "bench"
FIRST_LOT = 5_000_000  # after every lot of a long history
REGISTERED_AT_ONCE = 1000
_API = "/api/v1"
_END = b"\r\n\r\n"


def _lots() -> Iterator[str]:
    return (f"part-{number}" for number in counting(FIRST_LOT))


def _chunks(lots: Iterator[str], count: int) -> Iterator[tuple[str, ...]]:
    for at in range(0, count, REGISTERED_AT_ONCE):
        yield tuple(islice(lots, min(REGISTERED_AT_ONCE, count - at)))


class InProcess:
    """A plane, and workers that submit to it from one event loop, as requests do."""

    def __init__(self, url: str) -> None:
        self.plane = Plane.open(Settings(database=url))
        self._lots = _lots()
        self._submit = self.plane.catalog.submit
        self._submit(WireJob(NAMESPACE, JOB, (LANDED,), (REFINED,))).result()

    def fill(self, count: int) -> None:
        """Register new lots."""
        for lots in _chunks(self._lots, count):
            self._submit(RegisterLots(NAMESPACE, LANDED.name, lots, WHO)).result()

    def work(self, workers: int, at_once: int, seconds: float) -> Turn:
        """Claim and complete, each worker in its own task."""
        return uvloop.run(self._work(workers, at_once, seconds))

    async def _work(self, workers: int, at_once: int, seconds: float) -> Turn:
        submit, held = self.plane.catalog.submit_async, dict[str, tuple[ClaimRef, ...]]()

        async def go_on(owner: str) -> int:
            claim = ClaimLots(NAMESPACE, JOB, owner, count=at_once)
            taken = await submit(CompleteAndClaim(claim, held.get(owner, ())))
            held[owner] = _refs(taken.claimed)
            return _completed(taken.ended)

        async def step(owner: str) -> int:
            if not held.get(owner):
                await go_on(owner)
            return await go_on(owner) if held[owner] else 0

        async def last() -> int:
            refs = tuple(ref for refs in held.values() for ref in refs)
            return _completed(await submit(CompleteClaims(refs)))

        steps = [partial(step, f"worker-{number}") for number in range(workers)]
        return await in_tasks(steps, seconds, last)

    def cpu_seconds(self) -> float:
        """Return the CPU time of this process."""
        return time.process_time()

    def close(self) -> None:
        """Close the plane."""
        self.plane.close()


class InTwoCalls(InProcess):
    """The same, with separate calls to claim and to complete."""

    async def _work(self, workers: int, at_once: int, seconds: float) -> Turn:
        submit = self.plane.catalog.submit_async

        async def step(owner: str) -> int:
            taken = await submit(CompleteAndClaim(ClaimLots(NAMESPACE, JOB, owner, count=at_once)))
            refs = _refs(taken.claimed)
            return _completed(await submit(CompleteClaims(refs))) if refs else 0

        steps = [partial(step, f"worker-{number}") for number in range(workers)]
        return await in_tasks(steps, seconds)


def _refs(claims: Iterable[ClaimedLot]) -> tuple[ClaimRef, ...]:
    return tuple(ClaimRef(claim.id, claim.token) for claim in claims)


def _completed(ended: Sequence[ClaimResult]) -> int:
    """Return the number of completed claims; raise if any is missing."""
    for end in ended:
        if end.refused is not None:
            raise end.refused
    return len(ended)


class OverHttp:
    """A server in its own process, and workers on kept-alive connections."""

    def __init__(self, bench: Bench, url: str) -> None:
        self._stack = ExitStack()
        self._server = self._stack.enter_context(bench.server(System.OURS, url))
        self._lots = _lots()
        path = f"{_API}/namespaces/{NAMESPACE}/jobs/{JOB}/wiring"
        wiring = _encode({"inputs": [_name(LANDED)], "outputs": [_name(REFINED)]})
        uvloop.run(self._ask([("PUT", path, wiring)]))

    def fill(self, count: int) -> None:
        """Register new lots."""
        path = f"{_API}/namespaces/{NAMESPACE}/datasets/{LANDED.name}/lots"
        chunks = _chunks(self._lots, count)
        uvloop.run(self._ask([("POST", path, _encode({"lots": lots})) for lots in chunks]))

    async def _ask(self, requests: list[tuple[str, str, bytes]]) -> None:
        connection = await _connect(self._server.port)
        for method, path, body in requests:
            await connection.ask(method, path, body)
        connection.close()

    def work(self, workers: int, at_once: int, seconds: float) -> Turn:
        """Claim and complete, each worker on its own connection."""
        return uvloop.run(self._work(workers, at_once, seconds))

    async def _work(self, workers: int, at_once: int, seconds: float) -> Turn:
        workforce = [
            _HttpWorker(await _connect(self._server.port), f"worker-{number}", at_once)
            for number in range(workers)
        ]

        async def last() -> int:
            return sum([await worker.rest() for worker in workforce])

        turn = await in_tasks([worker.step for worker in workforce], seconds, last)
        for worker in workforce:
            worker.connection.close()
        return turn

    def cpu_seconds(self) -> float:
        """Return the CPU time of the server, without that of the workers."""
        return self._server.cpu_seconds()

    def close(self) -> None:
        """Stop the server."""
        self._stack.close()


class _Ref(Struct, frozen=True):
    id: str
    token: int


class _End(Struct, frozen=True):
    error: msgspec.Raw


class _Claims(Struct, frozen=True):
    claims: list[_Ref]
    ended: list[_End]


class _HttpWorker:
    """Completes its claims by the call that claims more."""

    def __init__(self, connection: "_Connection", owner: str, at_once: int) -> None:
        self.connection = connection
        self._asked = {"owner": owner, "count": at_once}
        self._held: list[_Ref] = []

    async def step(self) -> int:
        """Complete the current claims, and claim the next ones."""
        if not self._held:
            await self._claim(self._asked)
        return await self._claim(self._asked) if self._held else 0

    async def rest(self) -> int:
        """Complete the current claims."""
        asked = {"claims": self._held}
        answer = await self.connection.ask("POST", f"{_API}/claims/complete", _encode(asked))
        return _whole(_read_ended(answer).ended)

    async def _claim(self, asked: dict[str, object]) -> int:
        body = _encode({**asked, "complete": self._held})
        answer = _read_claims(await self.connection.ask("POST", _CLAIMS, body))
        self._held = answer.claims
        return _whole(answer.ended)


class _Ended(Struct, frozen=True):
    ended: list[_End]


_CLAIMS = f"{_API}/namespaces/{NAMESPACE}/jobs/{JOB}/claims"
_read_claims = msgspec.json.Decoder(_Claims).decode
_read_ended = msgspec.json.Decoder(_Ended).decode


def _whole(ended: Sequence[_End]) -> int:
    """Return the number of completed claims; raise if any is missing."""
    for end in ended:
        if bytes(end.error) != b"null":
            raise RuntimeError(f"a claim was not completed: {bytes(end.error).decode()}")
    return len(ended)


def _encode(body: object) -> bytes:
    return msgspec.json.encode(body)


def _name(dataset: DatasetName) -> dict[str, str]:
    return {"namespace": dataset.namespace, "name": dataset.name}


async def _connect(port: int) -> "_Connection":
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(_Connection, "127.0.0.1", port)
    return connection


class _Connection(asyncio.Protocol):
    """A kept-alive connection with at most one open request."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport
        self._held = b""
        self._answer: asyncio.Future[bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not declare asyncio's type.
        self._transport = cast(asyncio.WriteTransport, transport)

    async def ask(self, method: str, path: str, body: bytes) -> bytes:
        """Return the body of the answer; raise unless it succeeded."""
        self._held = b""
        self._answer = asyncio.get_running_loop().create_future()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._held = held = self._held + data if self._held else data
        end = held.find(_END)
        if end < 0:
            return
        head, body = held[:end].lower(), held[end + len(_END) :]
        if len(body) < int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        if head.startswith(b"http/1.1 2"):
            self._answer.set_result(body)
        else:
            self._answer.set_exception(RuntimeError(f"refused: {held.decode()}"))

    def connection_lost(self, error: Exception | None) -> None:
        if hasattr(self, "_answer") and not self._answer.done():
            self._answer.set_exception(RuntimeError(f"the server hung up: {error}"))

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()
