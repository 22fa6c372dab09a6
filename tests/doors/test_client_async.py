"""The asynchronous client, against a real server on each database."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from penstock import AsyncClient, ClaimLost, Client
from penstock.client import ApiError
from penstock.errors import Conflict, Invalid
from penstock.schema.subscribers import LotEvent
from tests.doors.serving import Running, running

JOB = ("shop", "clean")
Story = Callable[[AsyncClient], Coroutine[Any, Any, None]]


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    with running(database_url) as server, Client(server.server.url) as client:
        client.wire_job(*JOB, inputs=["raw"], outputs=["clean"], back_off_seconds=0)
        client.register_lots("shop", "raw", ["9", "10", "2"])
        yield server


def told(server: Running, story: Story) -> None:
    async def tell() -> None:
        async with AsyncClient(server.server.url) as client:
            await story(client)

    asyncio.run(tell())


async def state(client: AsyncClient, lot: str) -> tuple[str, int]:
    work = await client.job_lot(*JOB, lot)
    return work.state, work.attempts


async def until(check: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    async with asyncio.timeout(60):
        while not await check():
            await asyncio.sleep(0.02)


def test_every_lot_is_claimed_once_and_completed(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        claims, seen = client.claims("shop/clean", owner="me"), []
        async for claim in claims:
            async with claim:
                seen.append((claim.lot, claim.attempt, claim.owner, claim.lost))
                assert (await client.run(claim.run_id)).state == "RUNNING"
        assert seen == [("2", 1, "me", False), ("9", 1, "me", False), ("10", 1, "me", False)]
        assert claims.why_nothing is not None
        assert await state(client, "10") == ("DONE", 1)

    told(server, story)


def test_workers_of_one_loop_share_the_lots(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        async def worker(name: str) -> list[str]:
            done = []
            async for claim in client.claims(*JOB, owner=name):
                async with claim:
                    await asyncio.sleep(0)
                    done.append(claim.lot)
            return done

        found = await asyncio.gather(*(worker(f"w{number}") for number in range(4)))
        assert sorted(lot for lots in found for lot in lots) == ["10", "2", "9"]

    told(server, story)


def test_an_error_fails_the_claim_and_a_cancelled_task_gives_it_back(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        claims = aiter(client.claims(*JOB))
        with pytest.raises(ValueError, match="boom"):
            async with await anext(claims) as failed:
                raise ValueError("boom")
        assert (await client.job_lot(*JOB, failed.lot)).error == "ValueError: boom"
        held = asyncio.Event()

        async def hang() -> None:
            async with await anext(claims):
                held.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await held.wait()
        (lock,) = (await client.locks()).locks
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = 1 if lock.lot == failed.lot else 0
        assert await state(client, lock.lot) == ("READY", before)

    told(server, story)


def test_who_looks_ahead_and_leaves_gives_the_next_lot_back(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        claims, seen = aiter(client.claims(*JOB, ahead=True)), []
        for _ in range(2):
            async with await anext(claims) as claim:
                seen.append(claim.lot)
        assert await state(client, "10") == ("RUNNING", 1)
        assert isinstance(claims, AsyncGenerator)
        await claims.aclose()
        assert seen == ["2", "9"]
        assert await state(client, "9") == ("DONE", 1)
        assert await state(client, "10") == ("READY", 0)

    told(server, story)


def test_heartbeats_go_on_and_a_lost_lease_is_noticed(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        claims = client.claims(*JOB, count=3, lease_seconds=3)
        async for claim in claims:
            claim.keep()
            began = (await client.claim(claim.id)).lease_until or ""

            async def is_later(known: str = claim.id, since: str = began) -> bool:
                return ((await client.claim(known)).lease_until or "") > since

            await until(is_later)
            await client.end_claim(*JOB, claim.lot, "the worker hangs")

            async def is_lost(lost: Callable[[], None] = claim.check) -> bool:
                try:
                    lost()
                except ClaimLost:
                    return True
                return False

            await until(is_lost)
            with pytest.raises(ClaimLost):
                await claim.complete()
            break

    told(server, story)


def test_a_claim_is_ended_once_by_hand(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        claim = await anext(aiter(client.claims(*JOB)))
        await claim.heartbeat(600)
        assert claim.lease_seconds == 600
        assert [version.name for version in await claim.complete()] == ["clean"]
        with pytest.raises(Conflict, match="ended by this worker already"):
            await claim.release()

    told(server, story)


def test_one_who_waits_gets_what_comes_later(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        claims, lots = client.claims(*JOB, wait=True), []
        async for claim in claims:
            async with claim:
                lots.append(claim.lot)
            if len(lots) == 3:
                await client.register_lots("shop", "raw", ["11"])
            if len(lots) == 4:
                claims.stop()
        assert lots == ["2", "9", "10", "11"]

    told(server, story)


def test_what_happens_to_lots_is_followed(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        async def first(count: int) -> list[LotEvent]:
            found: list[LotEvent] = []
            async for event in client.lot_events(after=0, namespace="shop", dataset="clean"):
                found.append(event)
                if len(found) == count:
                    break
            return found

        following = asyncio.create_task(first(3))
        async for claim in client.claims(*JOB):
            async with claim:
                pass
        assert [event.lot for event in await following] == ["2", "9", "10"]
        with pytest.raises(ApiError):
            await anext(aiter(client.lot_events(namespace="x\x00")))

    told(server, story)


def test_a_payload_is_uploaded_as_it_comes(server: Running) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(3):
            await asyncio.sleep(0)
            yield bytes([number]) * 1000

    async def story(client: AsyncClient) -> None:
        payload = await client.upload_payload("numbers.bin", pieces())
        content = b"".join(bytes([number]) * 1000 for number in range(3))
        digest = hashlib.sha256(content).hexdigest()
        assert (payload.size, payload.digests["sha-256"]) == (3000, digest)
        same = await client.upload_payload("numbers.bin", iter([content]))
        assert same.digests == payload.digests

    told(server, story)
    with Client(server.server.url) as client, pytest.raises(Invalid, match="AsyncClient"):
        client.upload_payload("numbers.bin", pieces())


def test_calls_go_out_side_by_side(server: Running) -> None:
    async def story(client: AsyncClient) -> None:
        names = [f"n{number}" for number in range(30)]
        await asyncio.gather(*(client.put_namespace(name, owner="me") for name in names))
        listed = {each.name for each in (await client.namespaces()).namespaces}
        assert set(names) <= listed

    told(server, story)
