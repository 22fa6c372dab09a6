"""Answers that are lost on the way, and work that is done while the store is away."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.config import Settings
from penstock.errors import Invalid, PenstockError, Unavailable
from penstock.ingest.context import (
    CollectionCache,
    IngestContext,
    OutboundClients,
    Postponed,
    Runtime,
    StorageRegistry,
)
from penstock.ingest.models import Identifiers, IngestJob, JobChange
from penstock.ingest.notifications.mail import Mailer
from penstock.ingest.queue.sql.locks import LOOKS
from penstock.ingest.queue.sql.store import SqlIngestStore
from penstock.ingest.stages import JobStage, provisioning
from penstock.ingest.transitions import move_job
from penstock.ingest.workers.daemon import JobDaemon
from penstock.plane import Plane
from penstock.states import BatchState, IngestState
from tests.ingest_stores import advance_to_stage, processing_batch

WAIT_SECONDS_MAX = 60.0


class Losing:
    """A store or a catalog of which some calls are answered by nobody, although they are made."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole
        self.lost = ""  # the method whose answers are lost
        self.is_made = True  # whether it is made all the same

    def __getattr__(self, name: str) -> Any:
        whole = getattr(self._whole, name)
        if name != self.lost:
            return whole

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_made:
                made = whole(*args, **kwargs)
                if name == "submit":
                    made.result()
            raise Unavailable("the database is away")

        return call


@pytest.fixture
def plane(database_url: str, tmp_path: Path) -> Iterator[Plane]:
    folder = str(tmp_path / "work")
    settings = Settings(database=database_url, ingest_folder=folder, space_free_mb=0)
    with Plane.open(settings) as plane:
        yield plane


def stores(plane: Plane) -> tuple[Losing, SqlIngestStore, SqlIngestStore]:
    """A catalog that can lose answers, a session on it, and another on the same database."""
    catalog: Any = Losing(plane.catalog)
    return catalog, SqlIngestStore(catalog, "one"), SqlIngestStore(plane.catalog, "two")


def test_locks_of_a_lost_claim_are_released_soon(plane: Plane) -> None:
    catalog, one, two = stores(plane)
    processing_batch(one, 2)
    [known] = one.claim_jobs(IngestState.PENDING, 1)
    catalog.lost = "submit"
    with pytest.raises(Unavailable):
        one.claim_jobs(IngestState.PENDING, 1)
    catalog.lost = ""
    assert two.claim_jobs(IngestState.PENDING, 2) == []
    for _ in range(2):
        one.keep_alive()
    [freed] = two.claim_jobs(IngestState.PENDING, 2)
    assert freed.id != known.id
    assert one.job(known.id).locked_by == known.locked_by


def test_a_release_during_an_outage_takes_effect_after_it(
    plane: Plane,
) -> None:
    catalog, one, two = stores(plane)
    batch = processing_batch(one, 1)
    [job] = one.claim_jobs(IngestState.PENDING, 1)
    catalog.lost, catalog.is_made = "submit", False
    one.release([job])
    catalog.lost = ""
    for _ in range(LOOKS + 2):
        one.keep_alive()
    assert one.job(job.id).locked_by == ""
    assert [again.id for again in two.claim_jobs(IngestState.PENDING, 1)] == [job.id]
    assert one.batch(batch.id).status is BatchState.PROCESSING


def test_a_late_release_keeps_newer_locks(plane: Plane) -> None:
    _, one, _ = stores(plane)
    processing_batch(one, 1)
    [first] = one.claim_jobs(IngestState.PENDING, 1)
    moved = move_job(first, IngestState.ESTIMATING, plane.clock())
    one.change_jobs([JobChange(first, moved)])
    [second] = one.claim_jobs(IngestState.ESTIMATING, 1)
    one.release([first])
    assert one.job(second.id).locked_by == second.locked_by != ""


class Bench:
    """A daemon of one stage that is sent round by hand."""

    def __init__(self, plane: Plane, stage: IngestState) -> None:
        self.store = SqlIngestStore(plane.catalog, "worker")
        self.losing: Any = Losing(self.store)
        self.context = IngestContext(
            plane.catalog,
            self.losing,
            CollectionCache(plane.catalog, plane.clock),
            StorageRegistry(plane.catalog, plane.settings),
            OutboundClients(plane.settings, Mailer.open(None), plane.secrets),
            Runtime(plane.settings, plane.clock),
        )
        self.worked: list[str] = []
        self.daemon = JobDaemon(
            JobStage(stage, self.work),
            self.context,
            concurrency=1,
            poll_seconds=WAIT_SECONDS_MAX,
        )

    def work(self, context: IngestContext, job: IngestJob) -> IngestJob:
        """Move it on."""
        self.worked.append(job.id)
        return move_job(job, IngestState.ESTIMATING, context.runtime.clock())

    def close(self) -> None:
        """Give up every lock."""
        self.store.close()


@pytest.mark.parametrize("is_made", [True, False])
def test_results_during_an_outage_are_written_after_it(plane: Plane, is_made: bool) -> None:
    with closing(Bench(plane, IngestState.PENDING)) as bench:
        processing_batch(bench.store, 1)
        bench.losing.lost, bench.losing.is_made = "change_jobs", is_made
        for _ in range(2):
            with pytest.raises(Unavailable):
                bench.daemon.go_round()
        bench.losing.lost = ""
        bench.daemon.go_round()
        [job] = bench.store.waiting(IngestState.ESTIMATING, 10)
        assert (job.locked_by, len(job.history)) == ("", 2)
        assert bench.worked == [job.id]


def test_a_job_that_fails_after_its_ark_was_noted_is_not_locked_for_ever(plane: Plane) -> None:
    with closing(Bench(plane, IngestState.PROCESSING)) as bench:

        def work(context: IngestContext, job: IngestJob) -> IngestJob:
            if job.identifiers.primary is None:
                named = replace(job, identifiers=Identifiers("ark:/99999/fk4test"))
                [outcome] = context.store.change_jobs([JobChange(job, named, keep_lock=True)])
                assert not isinstance(outcome, PenstockError)
            raise Invalid("the object store refuses it")

        daemon = JobDaemon(
            JobStage(IngestState.PROCESSING, work),
            bench.context,
            concurrency=1,
            poll_seconds=WAIT_SECONDS_MAX,
        )
        processing_batch(bench.store, 1)
        advance_to_stage(bench.store, IngestState.PROCESSING)
        daemon.go_round()
        daemon.go_round()
        [job] = bench.store.waiting(IngestState.FAILED, 10)
        assert (job.locked_by, job.message) == ("", "the object store refuses it")
        assert job.identifiers.primary == "ark:/99999/fk4test"


def test_a_round_of_provisioning_that_could_not_be_written_down_locks_nothing(
    plane: Plane,
) -> None:
    with closing(Bench(plane, IngestState.PROVISIONING)) as bench:
        processing_batch(bench.store, 2)
        advance_to_stage(bench.store, IngestState.PROVISIONING)
        bench.losing.lost, bench.losing.is_made = "change_jobs", False
        with pytest.raises(Unavailable):
            provisioning.go_round(bench.context)
        bench.losing.lost = ""
        assert provisioning.go_round(bench.context) == (2, 0)


def test_a_job_waits_while_the_catalog_is_away(plane: Plane) -> None:
    with closing(Bench(plane, IngestState.PENDING)) as bench:
        processing_batch(bench.store, 1)
        [job] = bench.store.claim_jobs(IngestState.PENDING, 1)
        catalog: Any = Losing(plane.catalog)
        catalog.lost, catalog.is_made = "read", False
        bench.context.collections = CollectionCache(catalog, plane.clock)
        with pytest.raises(Postponed, match="the database is away"):
            bench.context.collections.of_job(job)
