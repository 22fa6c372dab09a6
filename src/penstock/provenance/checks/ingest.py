"""Invariants of batches, ingest jobs and stored objects."""

from collections.abc import Iterator
from typing import Final

from penstock.errors import NotFound, PenstockError
from penstock.ingest.archive import lost_files
from penstock.ingest.opening import IN_DATABASE
from penstock.ingest.queue.port import BatchFilter
from penstock.provenance.checks.invariant import FOUND_MAX, PAGE, Grounds, Invariant, by_statement
from penstock.states import BatchState

UNPUBLISHED: Final = "it is not published as a lot"  # in the message of a batch
# The checks of `ingest check`, here in a snapshot so that no writer waits.
_QUEUE: Final = (
    ("ingest_jobs_without_batch", "ingest job {0} belongs to a batch that does not exist"),
    ("ingest_locks_without_session", "{0} is locked by a session that has ended"),
    ("ingest_wrong_tallies", "batch {0} has a wrong count of jobs in {1}: there are {2}"),
    ("ingest_wrong_totals", "the total of jobs in {1} is wrong: there are {2}"),
    ("ingest_stuck_batches", "batch {0} is processing, but no job of it is"),
)


def queue(grounds: Grounds) -> Iterator[str]:
    """Yield entries that no crash should have left in the queue, in any backend."""
    if grounds.context.runtime.settings.queue != IN_DATABASE:
        for finding in grounds.context.store.check():
            yield f"{finding.target} {finding.what}"
        return
    with grounds.database.read() as tx:
        for statement, words in _QUEUE:
            for row in tx.fetch(statement):
                yield words.format(*row)


def reported_batches(grounds: Grounds) -> Iterator[str]:
    """Yield reported batches that are no lot and wait for no interval to end."""
    store = grounds.context.store
    for status in (BatchState.COMPLETED, BatchState.FAILED):
        before: str | None = None
        while page := store.batches(BatchFilter(status), PAGE, before):
            before = page[-1].id
            with grounds.database.read() as tx:
                rows = tx.fetch("batch_lots_by_ids", ids=[batch.id for batch in page])
            has_lot = {row[0] for row in rows}
            for batch in page:
                if batch.id not in has_lot and _wants_lot(grounds, batch.id):
                    yield f"batch {batch.id} is reported, but is no lot"
    with grounds.database.read() as tx:
        for batch_id, lot in tx.fetch("broken_batch_lots", most=FOUND_MAX):
            yield f"batch {batch_id} is published as lot {lot}, which does not exist"


def _wants_lot(grounds: Grounds, batch_id: str) -> bool:
    """Whether a batch must be a lot: its message tells if it could not be."""
    with grounds.database.read() as tx:
        [(since,)] = tx.fetch("batches_are_lots_since")
    try:
        batch = grounds.context.store.batch(batch_id)
        interval = grounds.context.collections.get(batch.collection).interval
    except NotFound:  # it was removed, or its collection is gone
        return False
    if batch.report is None or UNPUBLISHED in batch.message or batch.last_modified <= since:
        return False
    return interval is None or batch.status is BatchState.COMPLETED


def stored_objects(grounds: Grounds) -> Iterator[str]:
    """Yield stored objects with lost files or, if every byte is read, damaged ones."""
    context = grounds.context
    if not grounds.deep:
        for finding in lost_files.check(
            context.collections, context.storage, grounds.database, grounds.stop.is_set
        ):
            yield f"{finding.target} {finding.what}"
        return
    after = ""
    while True:
        with grounds.database.read() as tx:
            page = tx.fetch("objects_stored_from", after=after, most=PAGE)
        if not page:
            return
        after = page[-1][0]
        for ark, collection in page:
            if grounds.stop.is_set():
                return
            yield from object_faults(grounds, ark, collection)


def object_faults(grounds: Grounds, ark: str, collection: str) -> Iterator[str]:
    """Yield the faults of one stored object."""
    try:
        depository = grounds.context.storage.depository(grounds.context.collections.get(collection))
        yield from (f"object {ark}: {fault}" for fault in depository.verify(ark))
    except PenstockError as error:
        yield f"object {ark} cannot be read: {error}"


INVARIANTS: Final[tuple[Invariant, ...]] = (
    Invariant(
        "ingest-queue",
        "an ingest job is in one stage and one state of its batch, and counted there",
        queue,
    ),
    Invariant(
        "batch-lots",
        "a reported batch is a lot, or part of one",
        reported_batches,
    ),
    by_statement(
        "deposits",
        "a deposit has one stored version, and one completed run",
        "broken_deposits",
        "version {1} of {0}, by ingest job {2}: its run is {3}, or the version before is missing",
    ),
    by_statement(
        "object-writers",
        "no ingest job may write an object that is stored already",
        "broken_ark_writers",
        "ingest job {1} may still write {0}, although its version is stored",
    ),
    Invariant(
        "stored-objects",
        "the files of stored objects are in the store with their size (--deep: with their digest)",
        stored_objects,
    ),
)
