"""Recording: write the stored version into the catalog.

Needs: the stored object. Does: records, in one transaction, a run of the collection's ingest job
that read the payload and made a version of the collection's dataset. Skips a recorded version.
Publishes an ARK from EZID. Also records earlier versions of the object that a database restored
from a backup does not have. Fails if the object is not in the store, or EZID refuses.
"""

import hashlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from penstock.catalog.events.parse import Event, Limits, read_event
from penstock.clock import format_time
from penstock.errors import NotFound
from penstock.ingest.archive.metadata import stored_erc
from penstock.ingest.archive.ocfl.repository import Depository, StoredVersion
from penstock.ingest.archive.register import RecordDeposit, StoredRow, stored_versions
from penstock.ingest.collections import ingest_job_name
from penstock.ingest.context import PRODUCER, IngestContext, postpone_if_away
from penstock.ingest.models import IngestJob, run_id_of
from penstock.ingest.search_keys import SearchKeyRow, keys_of_deposit, keys_of_version
from penstock.ingest.transitions import move_job
from penstock.schema.ingest import Collection, Minting, PayloadType, SubmissionMode
from penstock.states import IngestState

_PRODUCER = "penstock"
_LIMITS = Limits(name_length_max=4096, json_depth_max=64)
_NAME_BYTES_MAX = 1024  # names are in indexes, and PostgreSQL limits an index entry to 2,704 bytes


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Record the version that this job stored."""
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
    for record in find_unrecorded(context, collection, stored):
        context.write(record)
    row = _row(job, collection, stored, _title(depository, job, stored))
    events = _events(context, job, collection, row)
    context.write(
        RecordDeposit(row, collection.storage_url, events, _keys(collection, stored, job))
    )
    if collection.minting is Minting.EZID and row.ark.startswith(collection.shoulder):
        context.outbound.ezid(collection).publish(row.ark)
    return move_job(job, IngestState.NOTIFY, context.runtime.clock())


def source_of(url: str) -> tuple[str, str]:
    """Return the OpenLineage namespace and name of a payload's dataset."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https", "s3"):
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        path = parts.path.lstrip("/") if parts.scheme == "s3" else parts.path or "/"
        return f"{parts.scheme}://{host}{port}", path
    return parts.scheme or "file", parts.path


def _shorten(name: str) -> str:
    """Cut a very long name for the catalog; append a digest to keep it unique."""
    encoded = name.encode()
    if len(encoded) <= _NAME_BYTES_MAX:
        return name
    digest = hashlib.sha256(encoded).hexdigest()
    return f"{encoded[: _NAME_BYTES_MAX - len(digest) - 1].decode(errors='ignore')}~{digest}"


def find_unrecorded(
    context: IngestContext, collection: Collection, stored: StoredVersion
) -> Iterator[RecordDeposit]:
    """Yield commands that record earlier versions that the database does not have, oldest first.

    A database restored from a backup does not have the versions stored since. The depositor and the
    run of such a version are lost. A version of another open job is left to that job.
    """
    if stored.version == 1:
        return
    depository = context.storage.depository(collection)
    earlier = list(depository.read(stored.ark).versions.values())[: stored.version - 1]
    with context.catalog.read() as tx:
        recorded_keys = {
            row.key for row in stored_versions(tx, [each.key for each in earlier if each.key])
        }
    for version in earlier:
        key, [batch_id, job_id, *_] = version.key, [*version.message.split(), "", ""]
        if key is None or key in recorded_keys or _will_record(context, job_id, key):
            continue
        if (earlier_version := depository.find(stored.ark, key)) is not None:
            row = _row_of(earlier_version, key, collection, batch_id, job_id, title="")
            yield RecordDeposit(row, collection.storage_url, (), _keys(collection, earlier_version))


def _keys(
    collection: Collection, stored: StoredVersion, job: IngestJob | None = None
) -> tuple[SearchKeyRow, ...]:
    """Build the search keys of a version, and those of its deposit if the job is known."""
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


def _title(depository: Depository, job: IngestJob, stored: StoredVersion) -> str:
    """Return the title of the stored object; without one, the name of its payload.

    It is read from the store only if the submission has none and another source may have one.
    """
    configuration = job.configuration
    title = configuration.erc_what
    is_update = configuration.submission_mode is SubmissionMode.UPDATE
    if title is None and (is_update or configuration.payload_type is not PayloadType.FILE):
        title = stored_erc(depository, stored.ark, stored.version).what
    return title or configuration.payload_name


def _row(job: IngestJob, collection: Collection, stored: StoredVersion, title: str) -> StoredRow:
    configuration = job.configuration
    return _row_of(stored, configuration.key, collection, configuration.batch_id, job.id, title)


def _row_of(
    stored: StoredVersion, key: str, collection: Collection, batch_id: str, job_id: str, title: str
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
    """Build the events of the deposit's run, from its first stage to this one."""
    configuration = job.configuration
    source = source_of(configuration.source_url or configuration.payload_url)
    run = {"runId": row.run_id, "facets": {"penstock_deposit": _deposit(job, row)}}
    began = {
        "eventType": "START",
        "eventTime": format_time(job.history[0].at if job.history else job.last_modified),
        "producer": _PRODUCER,
        "run": run,
        "job": {"namespace": collection.namespace, "name": ingest_job_name(collection)},
        "inputs": [{"namespace": _shorten(source[0]), "name": _shorten(source[1])}],
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
    """Build the run facet that describes the deposit."""
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
