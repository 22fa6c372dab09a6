"""Sessions in the database, when the clock is put back, or one was years ahead."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from penstock.clock import DAY, SECOND, Micros, system_clock
from penstock.config import Settings
from penstock.errors import Unavailable
from penstock.ingest.queue.sql.commands import EndSession
from penstock.ingest.queue.sql.store import SqlIngestStore
from penstock.plane import Plane
from penstock.states import IngestState
from penstock.store.write_queue import Command
from tests.ingest_stores import claim_job, processing_batch

LASTS_SECONDS = 10
TEN_YEARS = 3650 * DAY


class Machine:
    """A process with its own clock, and its session on the queue."""

    def __init__(self, url: str) -> None:
        self.ahead: Micros = 0
        self._plane = Plane.open(Settings(database=url), lambda: system_clock() + self.ahead)
        self.catalog = self._plane.catalog
        self.store = SqlIngestStore(self.catalog, "worker", session_seconds=LASTS_SECONDS)

    def close(self) -> None:
        self._plane.close()


@contextmanager
def machine(url: str, ahead: Micros = 0) -> Iterator[Machine]:
    """One that dies at the end of the block, without a word."""
    opened = Machine(url)
    opened.ahead = ahead
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize("ahead", [TEN_YEARS, 3 * LASTS_SECONDS * SECOND])
def test_a_dead_session_by_a_clock_that_was_ahead_keeps_nothing(
    database_url: str, ahead: Micros
) -> None:
    with machine(database_url, ahead) as one:
        processing_batch(one.store, 1)
        job = claim_job(one.store, IngestState.PENDING)
    with machine(database_url) as other:
        other.store.keep_alive()
        assert [each.id for each in other.store.claim_jobs(IngestState.PENDING, 1)] == [job.id]


def test_a_session_by_a_clock_that_is_a_little_ahead_keeps_its_locks(database_url: str) -> None:
    with machine(database_url, LASTS_SECONDS * SECOND // 2) as one, machine(database_url) as other:
        processing_batch(one.store, 1)
        claim_job(one.store, IngestState.PENDING)
        other.store.keep_alive()
        assert other.store.claim_jobs(IngestState.PENDING, 1) == []


def test_a_session_survives_a_clock_set_back(database_url: str) -> None:
    with machine(database_url, TEN_YEARS) as one, machine(database_url) as other:
        processing_batch(one.store, 1)
        job = claim_job(one.store, IngestState.PENDING)
        one.ahead = 0
        one.store.keep_alive()
        other.store.keep_alive()
        assert one.store.job(job.id).locked_by == job.locked_by


def test_a_restart_under_the_same_name_loses_old_locks(
    database_url: str,
) -> None:
    with machine(database_url) as one:
        processing_batch(one.store, 1)
        job = claim_job(one.store, IngestState.PENDING)
    with machine(database_url) as again:
        again.store.keep_alive()
        assert again.store.session != job.locked_by
        again.ahead = LASTS_SECONDS * SECOND
        again.store.keep_alive()
        assert [each.id for each in again.store.claim_jobs(IngestState.PENDING, 1)] == [job.id]


def test_a_worker_stops_well_although_its_session_cannot_be_ended(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine(database_url) as one:
        processing_batch(one.store, 1)
        claim_job(one.store, IngestState.PENDING)
        submit = one.catalog.submit

        def full(command: Command[object]) -> "Future[object]":
            if not isinstance(command, EndSession):
                return submit(command)
            future: Future[object] = Future()
            future.set_exception(Unavailable("there is no room left"))
            return future

        monkeypatch.setattr(one.catalog, "submit", full)
        one.store.close()
