"""An object store that is away costs no try: lots are released, and made when it is back."""

import logging
import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.arcs.commands import BeginParts, EndPart, PublishLot
from penstock.arcs.engine import outage as outages
from penstock.arcs.engine.outage import Outage
from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.spec import Parts
from penstock.errors import Away, Busy
from penstock.locks.commands.claims import RenewClaim
from penstock.locks.explain.why import explain_work
from penstock.locks.rows import RELEASE_PREFIX
from penstock.objects import Objects
from penstock.states import ArcState, WorkState
from penstock.store.write_queue import Command, WriteQueue
from tests.acceptance.arc_site import NS, ONCE, ArcSite, open_site
from tests.databases import sqlite_database
from tests.object_server import new_bucket
from tests.servers import PostgresServer
from tests.wire import Wire

T = TypeVar("T")
LOT = "20230227PT5M287"
DONE, HELD = WorkState.DONE, WorkState.HELD


@pytest.fixture
def site(
    wire: Wire, object_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ArcSite]:
    monkeypatch.setattr(outages, "REST_SECONDS", 1)
    url = sqlite_database(tmp_path / "penstock.db")
    with open_site(url, f"{new_bucket(object_server)}/site", tmp_path, monkeypatch) as site:
        yield site


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that the test may kill."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-pg-"))
    server = PostgresServer.start(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


def was_given_back(site: ArcSite) -> bool:
    return str(site.lot("shout", LOT).error).startswith(RELEASE_PREFIX)


def test_store_outage_costs_no_try(site: ArcSite, wire: Wire) -> None:
    site.arc("shout", "raw", "loud", retry=ONCE)
    site.feed("raw", LOT, {"a.txt": b"hello"})
    wire.cut()
    with site.engine():
        site.until(lambda: was_given_back(site))
        lot = site.lot("shout", LOT)
        assert (lot.work, lot.attempts) == (WorkState.RETRYABLE, 0)
        with site.catalog.read() as tx:
            told = explain_work(tx, NS, "shout", LOT, site.plane.clock())
        assert "could not continue with lot" in told.sentence
        assert "which cost no try" in told.sentence
        wire.mend()
        site.until_state("shout", LOT, ArcState.COMPLETE)
    assert site.content("shout", LOT) == {"a.txt": b"HELLO"}
    assert site.lot("shout", LOT).attempts == 1


@pytest.mark.parametrize("by_parts", [False, True])
def test_store_outage_during_a_workload_costs_no_try(
    site: ArcSite, wire: Wire, *, by_parts: bool
) -> None:
    """No data of the attempt is visible, and it is listed for cleaning afterwards."""
    parts = Parts(bytes_max=10) if by_parts else None
    site.arc("shout", "raw", "loud", retry=ONCE, parts=parts)
    site.order(LOT, "wait")
    site.order(LOT, "wait", part="00000")
    site.feed("raw", LOT, {"a.txt": b"hello"})
    with site.engine():
        site.until(site.ran)
        wire.cut()
        site.go()
        site.until(lambda: was_given_back(site))
        assert site.events()[1:] == []
        wire.mend()
        site.until_state("shout", LOT, ArcState.COMPLETE)
    assert site.content("shout", LOT) == {"a.txt": b"HELLO"}
    assert site.lot("shout", LOT).attempts == 1


def test_failing_workload_costs_a_try(site: ArcSite) -> None:
    site.arc("shout", "raw", "loud", retry=ONCE)
    site.order(LOT, "fail")
    site.feed("raw", LOT, {"a.txt": b"hello"})
    with site.engine():
        site.until_state("shout", LOT, ArcState.PARTIAL)
    assert site.lot("shout", LOT).work is WorkState.HELD


def test_no_lots_are_claimed_while_the_store_is_away(site: ArcSite, wire: Wire) -> None:
    """Each claim makes a run: a long outage must not make thousands."""
    site.arc("shout", "raw", "loud", retry=ONCE)
    for number in range(10):
        site.feed("raw", f"lot{number}", {"a.txt": b"hello"})
    wire.cut()
    with site.engine(concurrency=2) as engine:
        site.until(lambda: engine._outage._probe_at)
        site.until(lambda: engine.running == 0)
        assert engine.look() == 0
        wire.mend()
        for number in range(10):
            site.until_state("shout", f"lot{number}", ArcState.COMPLETE)


def test_outage_ends_when_the_store_answers(wire: Wire, object_server: str) -> None:
    objects = Objects.open(new_bucket(object_server))
    outage = Outage(objects.probe)
    assert outage.is_over()
    wire.cut()
    with pytest.raises(Away):
        objects.probe()
    assert outage.is_over(), "nobody has met it"
    outage.meet()
    assert not outage.is_over()
    wire.mend()
    outage._probe_at = 0.0
    assert outage.is_over()


@pytest.mark.parametrize("by_parts", [False, True])
def test_database_outage_during_a_workload_costs_no_try(
    own_postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    by_parts: bool,
) -> None:
    """The output is published in the same try, once the database is back."""
    url = own_postgres.create_database()
    with open_site(url, str(tmp_path / "objects"), tmp_path, monkeypatch) as site:
        parts = Parts(bytes_max=10) if by_parts else None
        site.arc("shout", "raw", "loud", retry=ONCE, parts=parts)
        site.order(LOT, "wait")
        site.order(LOT, "wait", part="00000")
        site.feed("raw", LOT, {"a.txt": b"hello"})
        with site.engine():
            site.until(site.ran)
            own_postgres.kill()
            site.go()
            site.until(lambda: f"lot {LOT} of shout waits: PostgreSQL" in caplog.text)
            own_postgres.restart()
            site.until_state("shout", LOT, ArcState.COMPLETE)
        assert site.content("shout", LOT) == {"a.txt": b"HELLO"}
        assert site.lot("shout", LOT).attempts == 1
        assert len(site.ran()) == 1


def test_commit_with_a_lost_answer_counts_as_published(
    local_arcs: ArcSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was committed but the answer was lost: the claim has ended, and is not lost."""
    caplog.set_level(logging.INFO)
    answered = WriteQueue.submit

    def unheard(catalog: WriteQueue, command: Command[T]) -> "Future[T]":
        future = answered(catalog, command)
        if type(command).__name__ != PublishLot.__name__:
            return future
        monkeypatch.setattr(WriteQueue, "submit", answered)
        future.result()
        unanswered: Future[T] = Future()
        unanswered.set_exception(Away("it went"))
        return unanswered

    local_arcs.arc("shout", "raw", "loud", retry=ONCE)
    local_arcs.feed("raw", LOT, {"a.txt": b"hello"})
    monkeypatch.setattr(WriteQueue, "submit", unheard)
    with local_arcs.engine():
        local_arcs.until_state("shout", LOT, ArcState.COMPLETE)
    assert f"lot {LOT} of shout waits: it went" in caplog.text
    assert f"lot {LOT} of shout is published: complete" in caplog.text
    assert local_arcs.lot("shout", LOT).attempts == 1


@pytest.mark.parametrize("command", [BeginParts, EndPart, PublishLot])
def test_a_full_queue_of_writes_costs_no_try(
    local_arcs: ArcSite, monkeypatch: pytest.MonkeyPatch, command: type
) -> None:
    monkeypatch.setattr(outages, "REST_SECONDS", 1)
    answered = WriteQueue.submit
    refused: list[object] = []

    def full(catalog: WriteQueue, asked: Command[T]) -> "Future[T]":
        if isinstance(asked, command) and not refused:
            refused.append(asked)
            raise Busy("64 writes are waiting already; send this again in a second")
        return answered(catalog, asked)

    local_arcs.arc("shout", "raw", "loud", retry=ONCE, parts=Parts(bytes_max=10))
    local_arcs.feed("raw", LOT, {"a.txt": b"hello"})
    monkeypatch.setattr(WriteQueue, "submit", full)
    with local_arcs.engine():
        local_arcs.until(lambda: local_arcs.lot("shout", LOT).work in (DONE, HELD))
    assert refused != []
    assert local_arcs.state("shout", LOT) == ArcState.COMPLETE
    assert len(local_arcs.ran()) == 1


def test_lease_is_renewed_after_an_unknown_error(
    local_arcs: ArcSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = WriteQueue.submit
    beats: list[object] = []

    def odd(catalog: WriteQueue, asked: Command[T]) -> "Future[T]":
        if type(asked).__name__ == RenewClaim.__name__:
            beats.append(asked)
            if len(beats) == 1:
                raise RuntimeError("can't start new thread")
        return answered(catalog, asked)

    local_arcs.arc("shout", "raw", "loud", retry=ONCE)
    local_arcs.order(LOT, "wait")
    local_arcs.feed("raw", LOT, {"a.txt": b"hello"})
    monkeypatch.setattr(Engine, "_beat_seconds", lambda engine: 0.01)
    monkeypatch.setattr(WriteQueue, "submit", odd)
    with local_arcs.engine():
        local_arcs.until(lambda: len(beats) > 2)
        local_arcs.go()
        local_arcs.until_state("shout", LOT, ArcState.COMPLETE)


def test_slow_store_blocks_no_database_connection(
    local_arcs: ArcSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many lots wait for manifests as the database has read connections."""
    get = Objects.get
    waiting: list[str] = []
    answers = threading.Event()

    def slow(objects: Objects, key: str) -> bytes:
        waiting.append(key)
        answers.wait()
        return get(objects, key)

    lots = [f"20230227PT5M{number}" for number in range(100, 108)]
    local_arcs.arc("shout", "raw", "loud", running_max=len(lots))
    for lot in lots:
        local_arcs.feed("raw", lot, {"a.txt": b"hello"})
    monkeypatch.setattr(Objects, "get", slow)
    with local_arcs.engine(concurrency=len(lots)):
        try:
            local_arcs.until(lambda: len(waiting) == len(lots))
            assert local_arcs.state("shout", lots[0]) == ArcState.RUNNING
        finally:
            answers.set()
        for lot in lots:
            local_arcs.until_state("shout", lot, ArcState.COMPLETE)
