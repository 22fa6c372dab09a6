"""Recording: write the stored version into the catalog.

Needs: the stored object. Does: makes, in one transaction, a run of the collection's ingest job that
read the payload and made a version of the collection's dataset. Skips what is recorded already.
Makes an ARK from EZID public. Records earlier versions of the object with it that a database, put
back from a backup, has forgotten. Fails when the object is not in the store, or EZID refuses.
"""

import hashlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from penstock.catalog.events.parse import Event, Limits, read_event
from penstock.clock import format_time
from penstock.errors import NotFound
from penstock.ingest.archive.metadata import stored_erc
from penstock.ingest.archive.ocfl.repository import Depository, Stored
from penstock.ingest.archive.register import RecordDeposit, StoredRow, stored_by
from penstock.ingest.collections import Collection, Minting, ingest_job_name
from penstock.ingest.context import PRODUCER, IngestContext, postpone_if_away
from penstock.ingest.models import IngestJob, PayloadType, SubmissionMode, run_id_of
from penstock.ingest.search_keys import SearchKeyRow, keys_of_deposit, keys_of_version
from penstock.ingest.transitions import move_job
from penstock.states import IngestState

_PRODUCER = "penstock"
_LIMITS = Limits(name_length_max=4096, json_depth_max=64)
_NAME_BYTES_MAX = 1024  # PostgreSQL has names in indexes, which take no more than 2,704 bytes


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Record the version that this job has stored."""
    collection = context.collections.of_job(job)
    ark = job.identifiers.primary
    depository = context.storage.depository(collection)
    stored = depository.find(ark, job.configuration.key) if ark else None
    if stored is None:
        raise NotFound(
            f"nothing of ingest job {job.id} is in {depository.url} under {ark}; if the collection "
            "had another storage when it was stored, put that back and resume the job; else look "
            "at the store, or submit the object again"
        )
    for lost in forgotten(context, collection, stored):
        context.write(lost)
    row = _row(job, collection, stored, _title(depository, job, stored))
    events = _events(context, job, collection, row)
    context.write(RecordDeposit(row, collection.kept_in, events, _keys(collection, stored, job)))
    if collection.minting is Minting.EZID and row.ark.startswith(collection.shoulder):
        context.outbound.ezid(collection).publish(row.ark)
    return move_job(job, IngestState.NOTIFY, context.runtime.clock())


def source_of(url: str) -> tuple[str, str]:
    """The dataset, as OpenLineage names one, that a payload was."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https", "s3"):
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        path = parts.path.lstrip("/") if parts.scheme == "s3" else parts.path or "/"
        return f"{parts.scheme}://{host}{port}", path
    return parts.scheme or "file", parts.path


def _shortened(name: str) -> str:
    """A name that the catalog takes: of a very long one its beginning, and what tells it apart."""
    encoded = name.encode()
    if len(encoded) <= _NAME_BYTES_MAX:
        return name
    digest = hashlib.sha256(encoded).hexdigest()
    return f"{encoded[: _NAME_BYTES_MAX - len(digest) - 1].decode(errors='ignore')}~{digest}"


def forgotten(
    context: IngestContext, collection: Collection, stored: Stored
) -> Iterator[RecordDeposit]:
    """Record earlier versions of the object that the database does not know, oldest first.

    A database that was put back from a backup does not know what was stored since. Who deposited
    such a version, and its run, are lost; what another job has stored just now, it records itself.
    """
    if stored.version == 1:
        return
    depository = context.storage.depository(collection)
    earlier = list(depository.read(stored.ark).versions.values())[: stored.version - 1]
    with context.catalog.read() as tx:
        known = {row.key for row in stored_by(tx, [each.key for each in earlier if each.key])}
    for version in earlier:
        key, [batch_id, job_id, *_] = version.key, [*version.message.split(), "", ""]
        if key is None or key in known or _will_record(context, job_id, key):
            continue
        if (found := depository.find(stored.ark, key)) is not None:
            row = _row_of(found, key, collection, batch_id, job_id, title="")
            yield RecordDeposit(row, collection.kept_in, (), _keys(collection, found))


def _keys(
    collection: Collection, stored: Stored, job: IngestJob | None = None
) -> tuple[SearchKeyRow, ...]:
    """The texts by which a version is found, and those of the deposit if it is known."""
    owner = {"namespace": collection.namespace, "collection": collection.name}
    keys = keys_of_version(stored, folder=f"{PRODUCER}/", **owner)
    if job is None:
        return tuple(keys)
    return *keys, *keys_of_deposit(job, stored.ark, stored.version, **owner)


def _will_record(context: IngestContext, job_id: str, key: str) -> bool:
    try:
        job = postpone_if_away(lambda: context.store.job(job_id))
    except NotFound:
        return False
    return job.configuration.key == key and job.status is not IngestState.COMPLETED


def _title(depository: Depository, job: IngestJob, stored: Stored) -> str:
    """The title of the stored object; without one, the name of its payload.

    It is read from the store only where the submission does not have it and others may.
    """
    told = job.configuration
    title = told.erc_what
    is_update = told.submission_mode is SubmissionMode.UPDATE
    if title is None and (is_update or told.payload_type is not PayloadType.FILE):
        title = stored_erc(depository, stored.ark, stored.version).what
    return title or told.payload_name


def _row(job: IngestJob, collection: Collection, stored: Stored, title: str) -> StoredRow:
    told = job.configuration
    return _row_of(stored, told.key, collection, told.batch_id, job.id, title)


def _row_of(
    stored: Stored, key: str, collection: Collection, batch_id: str, job_id: str, title: str
) -> StoredRow:
    return StoredRow(
        ark=stored.ark,
        version=stored.version,
        key=key,
        namespace=collection.namespace,
        collection=collection.name,
        batch_id=batch_id,
        job_id=job_id,
        location=stored.location,
        digest=stored.digest,
        files=stored.files,
        bytes=stored.size,
        title=title,
        run_id=run_id_of(key),
        at=0,
    )


def _events(
    context: IngestContext, job: IngestJob, collection: Collection, row: StoredRow
) -> tuple[Event, ...]:
    """The run of the deposit, from its first stage to this one."""
    told = job.configuration
    source = source_of(told.source_url or told.payload_url)
    run = {"runId": row.run_id, "facets": {"penstock_deposit": _deposit(job, row)}}
    began = {
        "eventType": "START",
        "eventTime": format_time(job.history[0].at if job.history else job.last_modified),
        "producer": _PRODUCER,
        "run": run,
        "job": {"namespace": collection.namespace, "name": ingest_job_name(collection)},
        "inputs": [{"namespace": _shortened(source[0]), "name": _shortened(source[1])}],
    }
    statistics = {"_producer": _PRODUCER, "fileCount": row.files, "size": row.bytes}
    output = {
        "namespace": collection.namespace,
        "name": collection.dataset,
        "outputFacets": {"outputStatistics": statistics},
    }
    ended = {
        **began,
        "eventType": "COMPLETE",
        "eventTime": format_time(context.runtime.clock()),
        "outputs": [output],
    }
    return tuple(read_event(msgspec.json.encode(body), _LIMITS) for body in (began, ended))


def _deposit(job: IngestJob, row: StoredRow) -> dict[str, object]:
    """The facet that tells the deposit behind a run."""
    return {
        "_producer": _PRODUCER,
        "batch": row.batch_id,
        "ingestJob": job.id,
        "ark": row.ark,
        "objectVersion": row.version,
        "location": row.location,
        "digest": row.digest,
        "submitter": job.configuration.submitter,
        "localIds": job.identifiers.local_id,
    }
