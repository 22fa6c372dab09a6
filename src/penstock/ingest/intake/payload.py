"""The files of an ingest job: listing, fetching and checking them."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.errors import Invalid
from penstock.ingest.context import PRODUCER, IngestContext, postpone_if_away
from penstock.ingest.intake import archives, checkm
from penstock.ingest.intake.checkm import ManifestKind
from penstock.ingest.intake.fetching import (
    ALWAYS,
    FetchStopped,
    FileRequest,
    WrongDigest,
    disk_errors,
    fetch,
    fetch_all,
)
from penstock.ingest.intake.partial_files import digests_of
from penstock.ingest.intake.places import Places, redact_url
from penstock.ingest.intake.sources import Uploads
from penstock.ingest.models import Configuration, IngestJob
from penstock.ingest.progress import ProgressMeter
from penstock.schema.ingest import Collection, DigestPolicy, PayloadType

PACKED = "payload"  # the folder of a container as it arrived
SYSTEM = "system"  # the folder of files that Penstock makes
_MANIFEST = "manifest.checkm"
_FILE_LIST = "files.json"
_DOWNLOADS_AT_ONCE = 4


class CorruptManifest(Invalid):
    """A manifest that is unreadable, or has another digest than declared."""


class PayloadFile(Struct, frozen=True):
    """A fetched and checked file of an object; `modified` and `mime` are from its manifest."""

    name: str
    size: int
    sha512: str
    modified: str | None = None
    mime: str | None = None


_decode_file_list = msgspec.json.Decoder(tuple[PayloadFile, ...]).decode


def job_folder(job: IngestJob, part: str) -> Path:
    """Return a folder inside the job's working folder."""
    return Path(job.configuration.working_dir) / part


def payload_of(configuration: Configuration) -> FileRequest:
    """Return the payload as a file to fetch."""
    return FileRequest(
        configuration.payload_url,
        configuration.payload_name,
        configuration.digest_algorithm,
        configuration.digest,
        configuration.size,
        configuration.modified,
        configuration.mime,
    )


def upload_reader(context: IngestContext, configuration: Configuration) -> Uploads | None:
    """Return the reader of uploads if the payload is the upload that the batch was submitted with.

    A manifest must not name the upload of another depositor.
    """
    is_own = configuration.payload_url == configuration.source_url
    return context.storage.open_upload if is_own else None


def list_files(context: IngestContext, job: IngestJob, collection: Collection) -> list[FileRequest]:
    """List the files to fetch; fetch and read the manifest if the payload is one."""
    configuration = job.configuration
    if configuration.payload_type is not PayloadType.OBJECT_MANIFEST:
        wanted = [payload_of(configuration)]
    else:
        payload, folder = payload_of(configuration), job_folder(job, SYSTEM)
        uploads = upload_reader(context, configuration)
        manifest = read_manifest(context, collection, payload, folder, uploads=uploads)
        wanted = [
            FileRequest(
                row.url, row.name, row.algorithm, row.digest, row.size, row.modified, row.mime
            )
            for row in manifest.rows
        ]
    if len(wanted) > collection.files_max:
        raise Invalid(
            f"{redact_url(configuration.payload_url)} names {len(wanted)} files; "
            f"collection {collection.name} takes {collection.files_max} in one object"
        )
    declared = sum(file.size or 0 for file in wanted)
    if declared > collection.bytes_max:
        raise Invalid(
            f"{redact_url(configuration.payload_url)} declares {declared:,} bytes; "
            f"collection {collection.name} takes {collection.bytes_max:,} in one object"
        )
    if collection.digests is DigestPolicy.REQUIRE:
        for file in wanted:
            if file.digest is None:
                raise Invalid(
                    f"{file.name} has no digest, which collection {collection.name} requires; "
                    "give one and submit it again"
                )
    return wanted


def read_manifest(
    context: IngestContext,
    collection: Collection,
    payload: FileRequest,
    folder: Path,
    expect: ManifestKind | None = ManifestKind.OBJECT,
    *,
    uploads: Uploads | None,
) -> checkm.CheckmManifest:
    """Fetch a manifest, check its digest, and read it.

    Without a working folder the job is postponed, because a failure here would be permanent.
    """
    postpone_if_away(context.storage.working_folder)
    with disk_errors(payload, folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        fetch(
            context.outbound.client(collection),
            msgspec.structs.replace(payload, name=_MANIFEST),
            folder,
            places=Places(collection.places),
            bytes_max=collection.rows_max * 1024,
            sleep=context.runtime.pause,
            stop=context.runtime.is_stopping,
            uploads=uploads,
        )
    except WrongDigest as error:
        raise CorruptManifest(str(error)) from None
    content = (folder / _MANIFEST).read_bytes()
    try:
        return checkm.parse(content, rows_max=collection.rows_max, expect=expect)
    except Invalid as error:
        # A resume must fetch it again.
        (folder / _MANIFEST).unlink(missing_ok=True)
        raise CorruptManifest(str(error)) from None


def fetch_files(
    context: IngestContext, job: IngestJob, collection: Collection
) -> tuple[PayloadFile, ...]:
    """Fetch, unpack and check every file of the object; keep existing good files."""
    wanted = list_files(context, job, collection)
    _remove_changed(job)
    is_container = job.configuration.payload_type is PayloadType.CONTAINER
    is_manifest = job.configuration.payload_type is PayloadType.OBJECT_MANIFEST
    folder = job_folder(job, PACKED if is_container else PRODUCER)
    context.storage.working_folder()
    with disk_errors(wanted[0], folder):
        folder.mkdir(parents=True, exist_ok=True)
    meter = ProgressMeter(context.catalog, job.id, _expected_bytes(job, wanted))
    try:
        fetched = fetch_all(
            context.outbound.client(collection),
            wanted,
            folder,
            places=Places(collection.places),
            concurrency=_DOWNLOADS_AT_ONCE,
            bytes_max=collection.bytes_max,
            sleep=context.runtime.pause,
            stop=context.runtime.is_stopping,
            progress=meter.add,
            uploads=None if is_manifest else upload_reader(context, job.configuration),
        )
    finally:
        meter.end()
    if is_container:
        files = _unpacked(context, job, collection, folder / fetched[0].name)
    else:
        files = tuple(
            PayloadFile(file.name, file.size, file.digests[ALWAYS], request.modified, request.mime)
            for file, request in zip(fetched, wanted, strict=True)
        )
    folder = job_folder(job, SYSTEM)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / _FILE_LIST, msgspec.json.encode(files))
    return files


def _expected_bytes(job: IngestJob, wanted: Iterable[FileRequest]) -> int:
    """Return the number of bytes to expect; 0 if it is unknown."""
    sizes = [file.size for file in wanted]
    known_sizes = [size for size in sizes if size is not None]
    if len(known_sizes) == len(sizes):
        return sum(known_sizes)
    is_container = job.configuration.payload_type is PayloadType.CONTAINER
    return job.space_needed // 2 if is_container else job.space_needed


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file at once: a worker that lost its job may write it while another reads it."""
    draft = path.with_name(f".{path.name}.{ids.new_id()}")
    draft.write_bytes(content)
    draft.replace(path)


def fetched_files(job: IngestJob) -> tuple[PayloadFile, ...] | None:
    """Return the fetched files if all of them are still in the folder."""
    files = _file_list(job)
    return None if _changed_files(job, files) else files or None


def _file_list(job: IngestJob) -> tuple[PayloadFile, ...]:
    """Read the list of fetched files."""
    try:
        return _decode_file_list((job_folder(job, SYSTEM) / _FILE_LIST).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return ()


def _changed_files(job: IngestJob, files: Iterable[PayloadFile]) -> list[Path]:
    """List the paths of files that are missing or have another size."""
    folder = job_folder(job, PRODUCER)
    return [folder / file.name for file in files if _size(folder / file.name) != file.size]


def _remove_changed(job: IngestJob) -> None:
    """Remove files that changed since they were fetched, so that they are fetched again.

    An unpacked archive is removed as a whole, because it is unpacked as a whole.
    """
    spoiled = _changed_files(job, _file_list(job))
    if spoiled and job.configuration.payload_type is PayloadType.CONTAINER:
        archives.discard(job_folder(job, PRODUCER))
        return
    for path in spoiled:
        path.unlink(missing_ok=True)


def _unpacked(
    context: IngestContext, job: IngestJob, collection: Collection, archive: Path
) -> tuple[PayloadFile, ...]:
    target = job_folder(job, PRODUCER)
    limits = archives.ArchiveLimits(files_max=collection.files_max, bytes_max=collection.bytes_max)
    try:
        names = archives.unpack(archive, target, limits)
        archives.verify_bag(target)
    except Invalid:
        # A resume must fetch and unpack it again.
        archive.unlink(missing_ok=True)
        archives.discard(target)
        raise
    return tuple(_file(context, target, name) for name in names)


def _file(context: IngestContext, folder: Path, name: Path) -> PayloadFile:
    path = folder / name
    sha512 = digests_of(path, frozenset({ALWAYS}), context.runtime.is_stopping)[ALWAYS]
    if context.runtime.is_stopping():
        raise FetchStopped(f"{name.as_posix()} was not read to its end: the work was stopped")
    return PayloadFile(name.as_posix(), path.stat().st_size, sha512)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
