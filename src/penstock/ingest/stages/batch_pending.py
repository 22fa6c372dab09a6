"""Batch pending: make a job for each object of the payload.

Needs: the payload's URL. Does: holds the batch if its collection is on hold; reads a batch manifest
and makes a job for each row; mails the depositor if the collection wants confirmations. An
interrupted expansion continues after the last job that was made. The stage reserves the ARKs that
the manifest names, so that they are not minted. Waits while the disk is full, or the working folder
or the object store is away. Fails with a message to the depositor if the manifest cannot be read;
a resume reads it again.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from penstock.errors import Away, Invalid, NotFound, PenstockError
from penstock.ingest.archive.arks import read_local_ids
from penstock.ingest.archive.register import ReserveArks
from penstock.ingest.context import IngestContext, Postponed
from penstock.ingest.intake.checkm import CheckmRow, ManifestKind
from penstock.ingest.intake.fetching import FetchStopped, FileRequest, NoSpace
from penstock.ingest.intake.payload import SYSTEM, read_manifest
from penstock.ingest.models import (
    Batch,
    BatchChange,
    Configuration,
    Identifiers,
    IngestHoldKind,
    NewJob,
    Submission,
)
from penstock.ingest.notifications.letters import send
from penstock.ingest.notifications.reports import confirmation_letter, failure_letter
from penstock.ingest.telemetry import batch_moved
from penstock.ingest.transitions import first_priority, move_batch
from penstock.schema.ingest import Collection, PayloadType
from penstock.states import BatchState

_AT_ONCE = 250
_MEMBERS = {
    ManifestKind.MANIFESTS: PayloadType.OBJECT_MANIFEST,
    ManifestKind.CONTAINERS: PayloadType.CONTAINER,
    ManifestKind.FILES: PayloadType.FILE,
}
_SINGLE = (PayloadType.FILE, PayloadType.CONTAINER, PayloadType.OBJECT_MANIFEST)


class _Objects(NamedTuple):
    """The objects of a batch, one row each, and the type of their payloads."""

    type: PayloadType
    rows: list[CheckmRow]


def work(context: IngestContext, batch: Batch) -> None:
    """Hold, expand or fail a batch."""
    try:
        collection = context.collections.get(batch.collection)
    except NotFound as error:
        _change(context, batch, BatchState.FAILED, str(error))
        return
    for hold in context.store.holds():
        if hold.kind is IngestHoldKind.COLLECTION and hold.name == collection.name:
            message = f"collection {collection.name} is held by {hold.who}: {hold.why}"
            _change(context, batch, BatchState.HELD, message)
            return
    try:
        objects = _objects(context, batch, collection)
    except Away:
        raise
    except (FetchStopped, NoSpace) as reason:
        raise Postponed(str(reason)) from None
    except PenstockError as error:
        _fail(context, batch, collection, error)
        return
    _expand(context, batch, collection, objects)


def _expand(
    context: IngestContext, batch: Batch, collection: Collection, objects: _Objects
) -> None:
    priority = collection.priority
    if priority is None:
        priority = first_priority(len(objects.rows))
    named_arks = (row.primary_id for row in objects.rows if row.primary_id is not None)
    while arks := tuple(islice(named_arks, _AT_ONCE)):
        context.write(ReserveArks(collection.namespace, arks))
    jobs = islice(_jobs(context, batch, objects, priority), batch.jobs, None)
    try:
        while part := list(islice(jobs, _AT_ONCE)):
            batch = context.store.add_jobs(batch, part)
    except Invalid as refusal:  # the queue can never store such a job
        _fail(context, batch, collection, refusal)
        return
    queued = _change(context, batch, BatchState.PROCESSING)
    if queued is not None and collection.confirm:
        send(context, queued.id, confirmation_letter(queued, queued.jobs, collection.mail))


def _fail(
    context: IngestContext, batch: Batch, collection: Collection, error: PenstockError
) -> None:
    failed = _change(context, batch, BatchState.FAILED, str(error))
    if failed is not None:
        send(context, failed.id, failure_letter(failed, collection.mail))


def _objects(context: IngestContext, batch: Batch, collection: Collection) -> _Objects:
    submission = batch.submission
    if submission.type in _SINGLE:
        return _Objects(submission.type, [_own_row(submission)])
    payload = FileRequest(
        submission.payload_url,
        "batch",
        submission.digest_algorithm,
        submission.digest,
        submission.size,
    )
    expect = None if submission.type is PayloadType.MANIFEST else ManifestKind(submission.type)
    # Partial files lie beside this folder, so that they are deleted with the batch's folder.
    folder = context.storage.batch_folder(batch.id) / SYSTEM
    manifest = read_manifest(
        context, collection, payload, folder, expect, uploads=context.storage.open_upload
    )
    if manifest.kind is ManifestKind.OBJECT:
        return _Objects(PayloadType.OBJECT_MANIFEST, [_own_row(submission)])
    return _Objects(_MEMBERS[manifest.kind], list(manifest.rows))


def _own_row(submission: Submission) -> CheckmRow:
    """Build the row that a manifest would have for a payload that is one object."""
    return CheckmRow(
        line=0,
        url=submission.payload_url,
        name=submission.payload_name or "payload",
        algorithm=submission.digest_algorithm,
        digest=submission.digest,
        size=submission.size,
        primary_id=submission.primary_id,
        local_id=submission.local_id,
    )


def _jobs(
    context: IngestContext, batch: Batch, objects: _Objects, priority: int
) -> Iterator[NewJob]:
    submission = batch.submission
    folder = str(context.storage.batch_folder(batch.id))
    for number, row in enumerate(objects.rows):
        configuration = Configuration(
            batch_id=batch.id,
            profile_name=submission.profile_name,
            submitter=submission.submitter,
            payload_url=row.url,
            payload_type=objects.type,
            submission_mode=submission.submission_mode,
            working_dir=folder,
            row=number,
            key=f"{submission.uid}/{number}",
            payload_name=row.name,
            source_url=submission.payload_url,
            digest_algorithm=row.algorithm,
            digest=row.digest,
            size=row.size,
            modified=row.modified,
            mime=row.mime,
            erc_who=row.creator or submission.erc_who,
            erc_what=row.title or submission.erc_what,
            erc_when=row.date or submission.erc_when,
            erc_where=submission.erc_where,
            clear=submission.clear,
        )
        identifiers = Identifiers(row.primary_id or None, read_local_ids(row.local_id))
        yield NewJob(configuration, identifiers, priority)


def _change(
    context: IngestContext, batch: Batch, to: BatchState, message: str = ""
) -> Batch | None:
    moved = move_batch(batch, to, context.runtime.clock(), message=message)
    changed = context.store.change_batch(BatchChange(batch, moved))
    if changed is not None:
        batch_moved(context.collections, changed)
    return changed
