"""Claims as Python workers use them, against a real server on each database."""

import os
import pickle
import signal
import threading
from collections.abc import Iterator
from functools import partial

import pytest

import penstock
from penstock.client import ApiError, Claim, ClaimLost, Claims, Client, Unreachable
from penstock.client.worker import Worked
from penstock.errors import Conflict
from penstock.schema.catalog import EntityId
from tests.doors.serving import Running, running
from tests.doors.waiting import until

JOB = ("shop", "clean")
DECLARED = 1  # the version that a dataset has before any run wrote it


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    with running(database_url) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    """A client whose job has three lots to work on, and tries again at once."""
    with Client(server.server.url) as client:
        client.wire_job(*JOB, inputs=["raw"], outputs=["clean"], back_off_seconds=0)
        assert client.register_lots("shop", "raw", ["9", "10", "2"]) == 3
        yield client


def only(claims: Claims) -> Claim:
    return next(iter(claims))


def state(client: Client, lot: str) -> tuple[str, int]:
    work = client.job_lot(*JOB, lot)
    return work.state, work.attempts


def test_every_lot_is_claimed_once_and_completed(client: Client) -> None:
    claims = client.claims("shop/clean", owner="me")
    seen = []
    for claim in claims:
        with claim:
            assert client.run(claim.run_id).state == "RUNNING"
            seen.append((claim.lot, claim.attempt, claim.owner, claim.lost))
    assert seen == [("2", 1, "me", False), ("9", 1, "me", False), ("10", 1, "me", False)]
    assert state(client, "10") == ("DONE", 1)
    assert client.dataset("shop", "clean").current_version_number == DECLARED + 3
    assert claims.why_nothing is not None
    assert "nothing to do" in claims.why_nothing.summary


def test_a_claim_names_what_to_read_and_write(client: Client) -> None:
    with only(client.claims(*JOB)) as claim:
        source = client.lot("shop", "raw", "2")
        assert [(i.namespace, i.name, i.version) for i in claim.inputs] == [
            ("shop", "raw", source.version)
        ]
        assert list(claim.outputs) == [EntityId("shop", "clean")]
        assert (claim.namespace, claim.job, claim.id) == ("shop", "clean", claim.run_id)
        assert claim.attempts_max == 5
        assert claim.owner.endswith(f":{os.getpid()}")
        shown = client.claim(claim.id)
        assert (shown.state, shown.token, shown.lot) == ("RUNNING", claim.token, "2")


def test_the_newest_come_first_on_request(client: Client) -> None:
    lots = []
    for claim in client.claims(*JOB, newest=True, count=2):
        with claim:
            lots.append(claim.lot)
    assert lots == ["10", "9", "2"]


def test_a_loop_wires_its_job_first(server: Running) -> None:
    with Client(server.server.url) as client:
        ask = {"inputs": ["raw", ("s3://lake", "rates")], "outputs": "other/made"}
        claims = client.claims("shop/new", **ask)  # type: ignore[arg-type]
        assert list(claims) == []
        wiring = client.wiring("shop", "new")
        assert set(wiring.inputs) == {EntityId("shop", "raw"), EntityId("s3://lake", "rates")}
        assert wiring.outputs == [EntityId("other", "made")]


def test_an_error_fails_the_claim_with_its_text_and_passes(client: Client) -> None:
    with pytest.raises(ValueError, match="boom"), only(client.claims(*JOB)) as claim:
        raise ValueError("boom")
    assert client.run(claim.run_id).state == "FAILED"
    work = client.job_lot(*JOB, claim.lot)
    assert (work.attempts, work.error) == (1, "ValueError: boom")
    assert client.dataset("shop", "clean").current_version_number == DECLARED


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_gives_the_claim_back(client: Client, interrupt: type[BaseException]) -> None:
    with pytest.raises(interrupt), only(client.claims(*JOB)) as claim:
        raise interrupt
    assert client.run(claim.run_id).state == "ABORTED"
    assert state(client, claim.lot) == ("READY", 0)


def test_a_claim_can_be_ended_by_hand(client: Client) -> None:
    first, second, third = client.claims(*JOB, count=3)
    assert [(v.namespace, v.name) for v in first.complete()] == [("shop", "clean")]
    assert second.fail("x" * 9000).state == "READY"
    assert third.release().state == "READY"
    assert len(client.job_lot(*JOB, second.lot).error or "") == 2000
    assert state(client, third.lot) == ("READY", 0)
    with pytest.raises(Conflict, match="ended by this worker already"):
        first.complete()
    with first:
        assert not first.lost


def test_a_completion_whose_answer_was_lost_is_no_loss(client: Client) -> None:
    claim = only(client.claims(*JOB))
    done = client.complete_claim(claim.id, claim.token)
    assert list(claim.complete()) == list(done.versions)


def test_heartbeats_go_on_in_the_background(client: Client) -> None:
    claims = iter(client.claims(*JOB, count=3, lease_seconds=3))
    with next(claims) as first:
        for _ in range(2):
            until(partial(_all_later, client, _leases(client)))
        assert not first.lost
    assert [claim.lot for claim in claims] == ["9", "10"]


def _leases(client: Client) -> dict[str, str]:
    leases = {lock.claim: lock.lease_until for lock in client.locks().locks}
    assert len(leases) == 3
    return leases


def _all_later(client: Client, began: dict[str, str]) -> bool:
    now = _leases(client)
    return all(now[claim] > began[claim] for claim in began)


def test_a_heartbeat_by_hand_can_make_the_lease_longer(client: Client) -> None:
    claim = only(client.claims(*JOB))
    before = client.claim(claim.id).lease_until or ""
    claim.heartbeat(600)
    assert claim.lease_seconds == 600
    assert (client.claim(claim.id).lease_until or "") > before


def test_a_loop_that_is_left_gives_back_what_it_did_not_hand_out(client: Client) -> None:
    for claim in client.claims(*JOB, count=3):
        with claim:
            break
    assert state(client, "2") == ("DONE", 1)
    assert state(client, "9") == state(client, "10") == ("READY", 0)


def test_who_looks_ahead_claims_the_next_lot_by_the_call_that_completes_one(
    client: Client,
) -> None:
    seen = []
    for claim in client.claims(*JOB, ahead=True):
        with claim:
            assert [lock.claim for lock in client.locks().locks] == [claim.id]
            seen.append(claim.lot)
        held = [lock.lot for lock in client.locks().locks]
        assert held == {"2": ["9"], "9": ["10"], "10": []}[claim.lot]
    assert seen == ["2", "9", "10"]
    assert {run.state for run in client.job_runs(*JOB).runs} == {"COMPLETED"}


def test_who_looks_ahead_and_leaves_gives_the_next_lot_back(client: Client) -> None:
    for claim in client.claims(*JOB, ahead=True):
        with claim:
            pass
        assert state(client, "9") == ("RUNNING", 1)
        break
    assert state(client, "2") == ("DONE", 1)
    assert state(client, "9") == ("READY", 0)


def test_who_is_stopped_does_not_look_ahead(client: Client) -> None:
    claims = client.claims(*JOB, ahead=True)
    for claim in claims:
        with claim:
            claims.stop()
    assert [run.state for run in client.job_runs(*JOB).runs] == ["COMPLETED"]
    assert client.locks().locks == []


def test_who_looks_ahead_and_was_too_late_goes_on_with_the_next_lot(client: Client) -> None:
    claims = iter(client.claims(*JOB, ahead=True))
    late = next(claims)
    client.end_claim(*JOB, late.lot, "the worker hangs")
    with pytest.raises(ClaimLost, match="nothing was changed"):
        late.complete()
    with next(claims) as again:
        assert (again.lot, again.attempt) == (late.lot, 1)
    assert state(client, late.lot) == ("DONE", 1)


def test_who_looks_ahead_completes_also_where_nothing_can_be_claimed_any_more(
    client: Client,
) -> None:
    claim = only(client.claims(*JOB, ahead=True))
    client.delete_job(*JOB)
    with pytest.raises(ApiError, match="clean"):
        client.claim_lots(*JOB, owner="me")
    assert [version.name for version in claim.complete()] == ["clean"]
    assert client.run(claim.run_id).state == "COMPLETED"


def test_a_lost_lease_is_noticed_and_publishes_nothing(client: Client) -> None:
    claim = only(client.claims(*JOB, lease_seconds=3))
    claim.keep()
    claim.check()
    client.end_claim(*JOB, "2", "the worker hangs")
    until(lambda: claim.lost)
    with pytest.raises(ClaimLost, match="lot 2 of job shop/clean is lost") as lost, claim:
        pass
    assert "nothing was changed" in str(lost.value)
    assert state(client, "2") == ("READY", 0)
    assert client.dataset("shop", "clean").current_version_number == DECLARED


def test_a_stale_worker_learns_who_holds_the_lot_now(client: Client) -> None:
    stale = only(client.claims(*JOB, owner="old"))
    client.end_claim(*JOB, "2", "too slow")
    fresh = only(client.claims(*JOB, owner="new"))
    for act in (stale.heartbeat, stale.complete):
        with pytest.raises(ClaimLost, match="'new'"):
            act()
    assert stale.lost
    with fresh:
        assert fresh.token == stale.token + 1


def test_the_error_of_the_block_goes_before_a_lost_lease(client: Client) -> None:
    claim = only(client.claims(*JOB))
    client.end_claim(*JOB, "2", "too slow")
    with pytest.raises(KeyError) as raised, claim:
        raise KeyError("x")
    assert "is lost to this worker" in raised.value.__notes__[0]


def test_a_lease_that_cannot_be_confirmed_counts_as_lost(database_url: str) -> None:
    with running(database_url) as server:
        client = Client(server.server.url)
        client.wire_job(*JOB, inputs=["raw"])
        client.register_lots("shop", "raw", ["1"])
        claim = only(client.claims(*JOB, lease_seconds=1))
    with client, pytest.raises(Unreachable), claim:
        until(lambda: claim.lost)
    with pytest.raises(ClaimLost, match="no heartbeat got through for 1 s"):
        claim.check()


def test_one_who_waits_gets_what_comes_later(client: Client) -> None:
    claims = client.claims(*JOB, wait=True)
    lots = []
    for claim in claims:
        with claim:
            lots.append(claim.lot)
        if len(lots) == 3:
            register = threading.Thread(target=client.register_lots, args=("shop", "raw", ["11"]))
            register.start()
        if len(lots) == 4:
            claims.stop()
    register.join()
    assert lots == ["2", "9", "10", "11"]


def test_one_who_waits_tries_again_when_a_back_off_ends(client: Client) -> None:
    client.wire_job(*JOB, back_off_seconds=1)
    attempts = []
    claims = client.claims(*JOB, wait=True)
    for claim in claims:
        try:
            with claim:
                attempts.append((claim.lot, claim.attempt))
                if claim.lot == "9" and claim.attempt == 1:
                    raise ValueError("not yet")
        except ValueError:
            continue
        if ("9", 2) in attempts:
            claims.stop()
    assert attempts == [("2", 1), ("9", 1), ("10", 1), ("9", 2)]


def test_one_who_waits_outlives_the_server(database_url: str) -> None:
    with running(database_url) as server:
        url, port = server.server.url, int(server.server.url.rpartition(":")[2])
        with Client(url) as client:
            client.wire_job(*JOB, inputs=["raw"])
    found: list[str] = []
    with Client(url) as client, pytest.raises(Unreachable):
        list(client.claims(*JOB))
    with Client(url) as client:
        claims = client.claims(*JOB, wait=True)
        worker = threading.Thread(target=lambda: found.extend(claim.lot for claim in claims))
        worker.start()
        with running(database_url, port=port):
            client.register_lots("shop", "raw", ["1"])
            until(lambda: found == ["1"])
            claims.stop()
            worker.join()


def test_a_job_that_nobody_knows_is_refused(client: Client) -> None:
    with pytest.raises(ApiError, match="no job 'unknown'"):
        list(client.claims("shop", "unknown"))


@penstock.job(namespace="shop", inputs=["clean"], outputs=["warehouse/mart"], back_off_seconds=0)
def fill_mart(claim: Claim) -> str:
    """Fail the first time on lot 9."""
    if claim.lot == "9" and claim.attempt == 1:
        raise ValueError("first time")
    return claim.lot


HANDLED: list[str] = []


@penstock.job(namespace="shop", name="clean", inputs=["raw"], outputs=["clean"], newest=True)
def clean(lot: str) -> None:
    HANDLED.append(lot)


def test_a_function_becomes_a_worker_and_stays_a_function(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    HANDLED.clear()
    monkeypatch.setenv("PENSTOCK_URL", client.url)
    assert clean.work(count=2, owner="w") == Worked(completed=3)
    assert HANDLED == ["10", "9", "2"]
    clean("by hand")
    assert HANDLED[-1] == "by hand"
    assert (clean.__name__, clean.__doc__) == ("clean", None)
    assert pickle.loads(pickle.dumps(clean)) is clean


def test_a_worker_goes_on_after_a_failure(client: Client) -> None:
    for claim in client.claims(*JOB):
        claim.complete()
    assert fill_mart.work(client.url) == Worked(completed=3, failed=1)
    wiring = client.wiring("shop", "fill_mart")
    assert wiring.outputs == [EntityId("warehouse", "mart")]
    assert wiring.back_off_seconds == 0
    assert client.job_lot("shop", "fill_mart", "9").attempts == 2


def test_a_worker_that_is_told_to_stop_gives_its_claim_back(client: Client) -> None:
    @penstock.job(namespace="shop", name="clean", inputs=["raw"], outputs=["clean"])
    def stopped(lot: str) -> None:
        signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left:
        stopped.work(client.url, loop=True)
    assert left.value.code == 128 + signal.SIGTERM
    assert state(client, "2") == ("READY", 0)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_worker_that_lost_its_lease_says_so_and_goes_on(client: Client) -> None:
    @penstock.job(namespace="shop", name="clean", inputs=["raw"], outputs=["clean"])
    def robbed(claim: Claim) -> None:
        if claim.attempt == 1 and claim.lot == "2" and claim.token == 1:
            client.end_claim(*JOB, "2", "to see what happens")

    assert robbed.work(client.url) == Worked(completed=3, lost=1)
