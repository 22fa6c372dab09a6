"""Calls whose connection breaks before or after the server has committed, in both colours."""

import asyncio
import io
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from penstock import AsyncClient, Client, Unreachable
from penstock.client import ApiError
from penstock.client.request import Flow, Pause, Request, ask
from penstock.ids import new_id
from penstock.schema import locks as docs
from tests.doors.lossy import Line, lossy
from tests.doors.serving import run_event, running

JOB = ("shop", "clean")
Make = Callable[..., Any]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path: Path = tmp_path_factory.mktemp("served") / "penstock.db"
    with running(f"sqlite:///{path}") as server:
        yield server.server.url


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried again soon."""
    monkeypatch.setattr("penstock.client.request._FIRST_SECONDS", 0.005)


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """A client that nothing comes between."""
    with Client(url) as client:
        yield client


@pytest.fixture
def line(url: str) -> Iterator[Line]:
    with lossy(url) as line:
        yield line


@pytest.fixture(params=["blocking", "awaited"])
def make(request: pytest.FixtureRequest, line: Line) -> Make:
    """Makes a call, by its name, over a line that loses something."""

    def blocking(name: str, *args: Any, **more: Any) -> Any:
        with Client(line.url) as client:
            return getattr(client, name)(*args, **more)

    def awaited(name: str, *args: Any, **more: Any) -> Any:
        async def once() -> Any:
            async with AsyncClient(line.url) as client:
                answer: Awaitable[Any] = getattr(client, name)(*args, **more)
                return await answer

        return asyncio.run(once())

    return blocking if request.param == "blocking" else awaited


def claimed(client: Client) -> docs.Claim:
    """A claim on a lot of its own."""
    lot = new_id()
    client.wire_job(*JOB, inputs=["raw"], outputs=["clean"], back_off_seconds=0)
    client.register_lots("shop", "raw", [lot])
    (claim,) = client.claim_lots(*JOB, owner="me", lots=[lot]).claims
    return claim


def wired(client: Client) -> tuple[str, str]:
    """A job that finds three lots."""
    job = new_id()
    client.wire_job("shop", job, inputs=[job], outputs=[])
    client.register_lots("shop", job, ["1", "2", "3"])
    return "shop", job


@pytest.mark.parametrize("loss", ["before", "after", 502, 503, 504, 429])
def test_a_run_is_made_once(make: Make, client: Client, line: Line, loss: Any) -> None:
    job = new_id()
    client.put_namespace("shop", owner="me")
    client.put_job("shop", job)
    line.lose("/runs", loss, loss)
    run = make("create_run", "shop", job)
    assert len(line.seen) == 3
    assert [each.id for each in client.job_runs("shop", job).runs] == [run.id]
    line.lose("/complete", loss)
    assert make("complete_run", run.id).state == "COMPLETED"
    assert len(line.seen) == 2


def test_an_event_counts_once(make: Make, client: Client, line: Line) -> None:
    run, job = new_id(), {"namespace": "food", "name": new_id()}
    written = [{"namespace": "food", "name": job["name"]}]
    line.lose("/lineage", "after", "before")
    make("emit", run_event(run, job=job, outputs=written))
    line.lose("/batch", "after")
    ended = run_event(run, eventType="COMPLETE", job=job, outputs=written)
    assert make("emit_batch", [ended]).summary.successful == 1
    (kept,) = client.job_runs("food", job["name"]).runs
    assert (kept.id, kept.state) == (run, "COMPLETED")
    assert client.dataset_versions("food", job["name"]).total_count == 1


def test_a_claim_is_completed_once(make: Make, client: Client, line: Line) -> None:
    claim = claimed(client)
    before = client.dataset("shop", "clean").current_version_number or 0
    line.lose("/complete", "after", "before")
    done = make("complete_claim", claim.id, claim.token)
    assert done == client.published(claim.id)
    assert [version.name for version in done.versions] == ["clean"]
    assert client.dataset("shop", "clean").current_version_number == before + 1


@pytest.mark.parametrize(
    ("call", "word", "attempts"), [("fail_claim", "/fail", 1), ("release_claim", "/release", 0)]
)
def test_a_claim_is_given_up_once(
    make: Make, client: Client, line: Line, call: str, word: str, attempts: int
) -> None:
    claim = claimed(client)
    line.lose(word, "after")
    stopped = make(call, claim.id, claim.token)
    assert (stopped.id, stopped.state, len(line.seen)) == (claim.id, "READY", 2)
    assert client.job_lot(*JOB, claim.lot).attempts == attempts


def test_several_claims_end_once(make: Make, client: Client, line: Line) -> None:
    good, bad = claimed(client), claimed(client)
    line.lose("/complete", "after")
    (done,) = make("complete_claims", [(good.id, good.token)]).ended
    assert done.error is None
    assert len(done.versions) == 1
    line.lose("/fail", "after")
    failed = make("fail_claims", [(bad.id, bad.token), (good.id, good.token)], "late").ended
    assert [each.error is None for each in failed] == [True, False]
    assert client.job_lot(*JOB, bad.lot).attempts == 1


def test_a_stale_token_is_refused_also_after_a_loss(make: Make, client: Client, line: Line) -> None:
    claim = claimed(client)
    client.end_claim(*JOB, claim.lot, "to see what happens")
    line.lose("/complete", "after")
    with pytest.raises(ApiError) as refused:
        make("complete_claim", claim.id, claim.token)
    assert refused.value.code == 409
    assert "its answer was lost" in refused.value.__notes__[0]


@pytest.mark.parametrize("loss", ["before", "after", 502, 504])
def test_lots_are_not_claimed_twice(make: Make, client: Client, line: Line, loss: Any) -> None:
    job = wired(client)
    line.lose("/claims", 429, loss, "after")
    claims = make("claim_lots", *job, owner="me", count=2).claims
    assert len(line.seen) == 4
    assert [claim.lot for claim in claims] == ["1", "2"]
    held = client.locks(namespace="shop", job=job[1]).locks
    assert {(lock.claim, lock.token) for lock in held} == {(c.id, c.token) for c in claims}


def test_a_worker_gets_what_a_lost_answer_told_of(client: Client, line: Line) -> None:
    job, done = wired(client), []
    line.lose("/claims", "after", "after")
    with Client(line.url) as worker:
        for claim in worker.claims(*job):
            with claim:
                done.append((claim.lot, claim.attempt))
    assert done == [("1", 1), ("2", 1), ("3", 1)]


@pytest.mark.parametrize("loss", ["before", "after", 503])
def test_who_goes_on_completes_and_claims_once(client: Client, line: Line, loss: Any) -> None:
    job, done = wired(client), []
    line.lose("/claims", 429, loss, loss)
    with Client(line.url) as worker:
        for claim in worker.claims(*job, ahead=True):
            with claim:
                done.append((claim.lot, claim.attempt))
                line.lose("/claims", loss)
    assert done == [("1", 1), ("2", 1), ("3", 1)]
    assert {each.state for each in client.job_runs(*job).runs} == {"COMPLETED"}


def test_lots_are_completed_once_by_the_call_that_claims(
    make: Make, client: Client, line: Line
) -> None:
    job = wired(client)
    (first,) = client.claim_lots(*job, owner="me").claims
    line.lose("/claims", "after")
    answer = make("claim_lots", *job, owner="me", complete=[(first.id, first.token)])
    assert len([path for path in line.seen if path.endswith("/claims")]) == 2
    assert [each.error for each in answer.ended] == [None]
    assert [claim.lot for claim in answer.claims] == ["2"]
    assert client.job_runs(*job).total_count == 2


def test_what_was_claimed_while_a_completion_got_no_answer_is_found_again(
    client: Client, line: Line
) -> None:
    job = wired(client)
    with Client(line.url) as worker:
        claims = iter(worker.claims(*job, ahead=True))
        first = next(claims)
        first._good_until = 0.0  # it does not try for long
        line.lose("/claims", "after")
        with pytest.raises(Unreachable):
            first.complete()
        assert client.published(first.id) is not None
        second = next(claims)
        assert (second.lot, second.attempt) == ("2", 1)


def test_an_answer_that_was_lost_is_in_doubt_also_when_the_server_then_goes_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second pause is longer than the lease.
    monkeypatch.setattr("penstock.client.request._back_off", lambda tries, _: 3600.0 * tries)
    claims = client.claims(*wired(client), ahead=True)
    first = next(iter(claims))
    flow = claims._go_on(deque(), first)
    client._perform(ask(cast(Request[docs.Claims], next(flow))))
    assert isinstance(flow.throw(Unreachable("the answer was lost")), Pause)
    assert isinstance(next(flow), Request)
    with pytest.raises(Unreachable, match="refused"):
        flow.throw(Unreachable("refused", may_be_done=False))
    (second,) = client._perform(claims._take())
    assert (second.lot, second.attempt) == ("2", 1)


def test_a_worker_goes_on_where_what_a_lost_answer_told_of_is_over(client: Client) -> None:
    job = wired(client)
    flow = client.claims(*job)._take()
    (first,) = client._perform(ask(cast(Request[docs.Claims], next(flow)))).claims
    client.end_claim(*job, first.lot, "to see what happens")
    assert isinstance(flow.throw(Unreachable("gone")), Pause)

    def going_on() -> Flow[Sequence[docs.Claim]]:
        return (yield from flow)

    (second,) = client._perform(going_on())
    assert (second.lot, second.token) == (first.lot, first.token + 1)
    assert second.id != first.id


def test_a_batch_is_submitted_once(make: Make, client: Client, line: Line) -> None:
    name = new_id()
    client.put_collection(name, dataset="scans", namespace="lib")
    line.lose("/page.txt", "after")
    payload = make("upload_payload", "page.txt", io.BytesIO(b"some words"))
    assert (payload.size, len(line.seen)) == (10, 2)
    line.lose("/batches", "after", "before", 503)
    batch = make("submit_batch", name, payload.url)
    assert [each.id for each in client.batches(collection=name).batches] == [batch.id]
    with pytest.raises(ApiError, match="cannot become deleted"):
        make("delete_batch", batch.id)


def test_pieces_that_are_gone_are_not_sent_again(make: Make, line: Line) -> None:
    line.lose("/page.txt", "before")
    with pytest.raises(Unreachable):
        make("upload_payload", "page.txt", iter([b"some", b"words"]))
    assert len(line.seen) == 1


def test_what_is_deleted_already_was_deleted(make: Make, client: Client, line: Line) -> None:
    name = new_id()
    client.put_collection(name, dataset="scans", namespace="lib")
    line.lose(name, "after")
    assert make("delete_collection", name) is None
    assert len(line.seen) == 2
    line.lose(name)
    with pytest.raises(ApiError) as refused:
        make("delete_collection", name)
    assert refused.value.code == 404


def test_a_server_that_starts_late_is_waited_for(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/penstock.db"
    with running(database) as server:
        url, port = server.server.url, int(server.server.url.rpartition(":")[2])
    with Client(url, retry_seconds=0) as hasty, pytest.raises(Unreachable) as away:
        hasty.namespaces()
    assert not away.value.may_be_done

    async def both() -> str:
        async with AsyncClient(url, retry_seconds=60) as client:
            asking = asyncio.create_task(client.claim_lots("shop", "none", owner="me"))
            await asyncio.sleep(0)
            with running(database, port=port):
                try:
                    await asking
                except ApiError as refused:
                    return refused.message
        return ""

    assert "no job 'none'" in asyncio.run(both())
