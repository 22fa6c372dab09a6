"""Log lines and trace spans about deposits, with the ids of the deposit in each."""

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
    """Add a job's ids to all log lines of the block, and record a span."""
    log_ids = _job_ids(collections, job)
    with logs.about(**log_ids), tracing.span(f"ingest.{job.status}", **_lot(log_ids, job.batch_id)):
        yield


@contextmanager
def work_on_batch(collections: CollectionCache, batch: Batch, stage: str) -> Iterator[None]:
    """Add a batch's ids to all log lines of the block, and record a span."""
    log_ids = _batch_ids(collections, batch.id, batch.collection)
    with logs.about(**log_ids), tracing.span(f"ingest.{stage}", **_lot(log_ids, batch.id)):
        yield


def job_moved(collections: CollectionCache, before: IngestJob, after: IngestJob) -> None:
    """Log a state change of a job that the store has written."""
    is_over = after.status in (IngestState.COMPLETED, IngestState.FAILED)
    level = logging.INFO if is_over else logging.DEBUG
    if log.isEnabledFor(level):
        with logs.about(**_job_ids(collections, after)):
            log.log(level, "ingest job %s: %s → %s", after.id, before.status, after.status)


def job_waited(collections: CollectionCache, job: IngestJob) -> None:
    """Record the span of a stage that only waits: the time since the job entered it."""
    if tracing.is_on():
        log_ids = _job_ids(collections, job)
        tracing.note(f"ingest.{job.status}", began=job.last_modified, **_lot(log_ids, job.batch_id))


def batch_submitted(collections: CollectionCache, batch: Batch, began: Micros) -> None:
    """Log a new batch and begin its trace."""
    log_ids = _batch_ids(collections, batch.id, batch.collection)
    with logs.about(**log_ids):
        log.info("batch %s was submitted by %s", batch.id, batch.submission.submitter)
    tracing.first("ingest.submit", began=began, **_lot(log_ids, batch.id))


def batch_moved(collections: CollectionCache, batch: Batch) -> None:
    """Log a state change of a batch that the store has written."""
    with logs.about(**_batch_ids(collections, batch.id, batch.collection)):
        suffix = f": {batch.message}" if batch.message else ""
        log.info("batch %s of %d jobs is %s%s", batch.id, batch.jobs, batch.status, suffix)


def lot_published(ref: DatasetRef, lot: str, state: str) -> None:
    """Log the publication of a lot of deposits."""
    with logs.about(dataset=f"{ref.namespace}/{ref.name}", lot=lot):
        log.info("lot %s is published: %s", lot, state)


def _job_ids(collections: CollectionCache, job: IngestJob) -> dict[str, str]:
    configuration = job.configuration
    log_ids = _batch_ids(collections, job.batch_id, configuration.profile_name)
    return {**log_ids, "ingest_job": job.id, "run": run_id_of(configuration.key)}


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
    """Set the trace id of a deposit to its batch, also where the lot is an interval."""
    return {**ids, "lot": batch_id}
