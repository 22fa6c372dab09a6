"""Following a deposit: the ids in the log lines about it, and the spans of what is done with it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.clock import Micros
from penstock.errors import PenstockError
from penstock.ingest.collections import ingest_job_name
from penstock.ingest.context import CollectionCache
from penstock.ingest.models import Batch, IngestJob, run_id_of
from penstock.lots.manifests import DatasetRef
from penstock.states import IngestState
from penstock.telemetry import logs, tracing

log = logging.getLogger(__name__)


@contextmanager
def work_on_job(collections: CollectionCache, job: IngestJob) -> Iterator[None]:
    """Say in every line, and in a span, that a job is worked on in its stage."""
    ids = _job_ids(collections, job)
    with logs.about(**ids), tracing.span(f"ingest.{job.status}", **_lot(ids, job.batch_id)):
        yield


@contextmanager
def work_on_batch(collections: CollectionCache, batch: Batch, stage: str) -> Iterator[None]:
    """Say in every line, and in a span, that a batch is worked on."""
    ids = _batch_ids(collections, batch.id, batch.collection)
    with logs.about(**ids), tracing.span(f"ingest.{stage}", **_lot(ids, batch.id)):
        yield


def job_moved(collections: CollectionCache, before: IngestJob, after: IngestJob) -> None:
    """Tell that the store knows what became of a job."""
    is_over = after.status in (IngestState.COMPLETED, IngestState.FAILED)
    level = logging.INFO if is_over else logging.DEBUG
    if log.isEnabledFor(level):
        with logs.about(**_job_ids(collections, after)):
            log.log(level, "ingest job %s: %s → %s", after.id, before.status, after.status)


def job_waited(collections: CollectionCache, job: IngestJob) -> None:
    """A stage that only waits took as long as the job has been in it."""
    if tracing.is_on():
        ids = _job_ids(collections, job)
        tracing.note(f"ingest.{job.status}", began=job.last_modified, **_lot(ids, job.batch_id))


def batch_submitted(collections: CollectionCache, batch: Batch, began: Micros) -> None:
    """Tell that a batch has come in: with that its trace begins."""
    ids = _batch_ids(collections, batch.id, batch.collection)
    with logs.about(**ids):
        log.info("batch %s was submitted by %s", batch.id, batch.submission.submitter)
    tracing.first("ingest.submit", began=began, **_lot(ids, batch.id))


def batch_moved(collections: CollectionCache, batch: Batch) -> None:
    """Tell that the store knows what became of a batch."""
    with logs.about(**_batch_ids(collections, batch.id, batch.collection)):
        said = f": {batch.message}" if batch.message else ""
        log.info("batch %s of %d jobs is %s%s", batch.id, batch.jobs, batch.status, said)


def lot_published(ref: DatasetRef, lot: str, state: str) -> None:
    """Tell that a lot of what was deposited can be worked on."""
    with logs.about(dataset=f"{ref.namespace}/{ref.name}", lot=lot):
        log.info("lot %s is published: %s", lot, state)


def _job_ids(collections: CollectionCache, job: IngestJob) -> dict[str, str]:
    told = job.configuration
    ids = _batch_ids(collections, job.batch_id, told.profile_name)
    return {**ids, "ingest_job": job.id, "run": run_id_of(told.key)}


def _batch_ids(collections: CollectionCache, batch_id: str, name: str) -> dict[str, str]:
    try:
        collection = collections.get(name)
    except PenstockError:
        return {"batch": batch_id}
    return {
        "lot": batch_id if collection.interval is None else "",
        "batch": batch_id,
        "job": f"{collection.namespace}/{ingest_job_name(collection)}",
        "dataset": f"{collection.namespace}/{collection.dataset}",
    }


def _lot(ids: dict[str, str], batch_id: str) -> dict[str, str]:
    """The ids of a span; a deposit's trace has the name of its batch, whatever its lot is."""
    return {**ids, "lot": batch_id}
