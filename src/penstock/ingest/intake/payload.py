"""The files that an ingest job is about, before and after they are fetched."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.errors import Invalid
from penstock.ingest.collections import Collection, DigestPolicy
from penstock.ingest.context import PRODUCER, IngestContext, postpone_if_away
from penstock.ingest.intake import archives, checkm
from penstock.ingest.intake.checkm import ManifestKind
from penstock.ingest.intake.fetching import (
    ALWAYS,
    Stopped,
    Wanted,
    WrongDigest,
    disk_errors,
    fetch,
    fetch_all,
)
from penstock.ingest.intake.partial_files import digests_of
from penstock.ingest.intake.places import Places, shown
from penstock.ingest.intake.sources import Uploads
from penstock.ingest.models import Configuration, IngestJob, PayloadType
from penstock.ingest.progress import Meter

PACKED = "payload"  # a container as it came
SYSTEM = "system"  # what we make
_MANIFEST = "manifest.checkm"
_BILL = "files.json"
_DOWNLOADS_AT_ONCE = 4


class Corrupt(Invalid):
    """A manifest that cannot be read, or is another than its depositor says."""


class File(Struct, frozen=True):
    """A file of an object, fetched and checked; the rest is what its manifest says about it."""

    name: str
    size: int
    sha512: str
    modified: str | None = None
    mime: str | None = None


_decode_bill = msgspec.json.Decoder(tuple[File, ...]).decode


def folder_of(job: IngestJob, part: str) -> Path:
    """A part of the job's working folder."""
    return Path(job.configuration.working_dir) / part


def payload_of(configuration: Configuration) -> Wanted:
    """The payload itself, as a file to fetch."""
    return Wanted(
        configuration.payload_url,
        configuration.payload_name,
        configuration.digest_algorithm,
        configuration.digest,
        configuration.size,
        configuration.modified,
        configuration.mime,
    )


def own_upload(context: IngestContext, configuration: Configuration) -> Uploads | None:
    """The way to uploaded payloads, for the one that this batch was submitted with.

    A manifest must not name what somebody else has uploaded.
    """
    is_own = configuration.payload_url == configuration.source_url
    return context.storage.open_upload if is_own else None


def wanted_files(context: IngestContext, job: IngestJob, collection: Collection) -> list[Wanted]:
    """What is to be fetched; a manifest is read for it, again if it is not here any more."""
    configuration = job.configuration
    if configuration.payload_type is not PayloadType.OBJECT_MANIFEST:
        wanted = [payload_of(configuration)]
    else:
        payload, folder = payload_of(configuration), folder_of(job, SYSTEM)
        uploads = own_upload(context, configuration)
        manifest = read_manifest(context, collection, payload, folder, uploads=uploads)
        wanted = [
            Wanted(row.url, row.name, row.algorithm, row.digest, row.size, row.modified, row.mime)
            for row in manifest.rows
        ]
    if len(wanted) > collection.files_max:
        raise Invalid(
            f"{shown(configuration.payload_url)} names {len(wanted)} files; "
            f"collection {collection.name} takes {collection.files_max} in one object"
        )
    declared = sum(file.size or 0 for file in wanted)
    if declared > collection.bytes_max:
        raise Invalid(
            f"{shown(configuration.payload_url)} is said to have {declared:,} bytes; "
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
    payload: Wanted,
    folder: Path,
    expect: ManifestKind | None = ManifestKind.OBJECT,
    *,
    uploads: Uploads | None,
) -> checkm.Manifest:
    """Fetch a manifest, check its digest, and read it.

    Postponed without a folder to work in: whoever fails over a manifest fails for good.
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
        raise Corrupt(str(error)) from None
    content = (folder / _MANIFEST).read_bytes()
    try:
        return checkm.parse(content, rows_max=collection.rows_max, expect=expect)
    except Invalid as error:
        # A resume must not find it good because it is here.
        (folder / _MANIFEST).unlink(missing_ok=True)
        raise Corrupt(str(error)) from None


def fetch_files(context: IngestContext, job: IngestJob, collection: Collection) -> tuple[File, ...]:
    """Make every file of the object be here, unpacked and checked; what is here and good stays."""
    wanted = wanted_files(context, job, collection)
    _drop_spoiled(job)
    is_container = job.configuration.payload_type is PayloadType.CONTAINER
    is_manifest = job.configuration.payload_type is PayloadType.OBJECT_MANIFEST
    folder = folder_of(job, PACKED if is_container else PRODUCER)
    context.storage.working_folder()
    with disk_errors(wanted[0], folder):
        folder.mkdir(parents=True, exist_ok=True)
    meter = Meter(context.catalog, job.id, _expected_bytes(job, wanted))
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
            uploads=None if is_manifest else own_upload(context, job.configuration),
        )
    finally:
        meter.end()
    if is_container:
        files = _unpacked(context, job, collection, folder / fetched[0].name)
    else:
        files = tuple(
            File(file.name, file.size, file.digests[ALWAYS], told.modified, told.mime)
            for file, told in zip(fetched, wanted, strict=True)
        )
    bill = folder_of(job, SYSTEM)
    bill.mkdir(parents=True, exist_ok=True)
    write_whole(bill / _BILL, msgspec.json.encode(files))
    return files


def _expected_bytes(job: IngestJob, wanted: Iterable[Wanted]) -> int:
    """Return the number of bytes to expect; 0 if it is unknown."""
    sizes = [file.size for file in wanted]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        return sum(known)
    is_container = job.configuration.payload_type is PayloadType.CONTAINER
    return job.space_needed // 2 if is_container else job.space_needed


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is seen whole: one who slept may write the same again, while it is read."""
    draft = path.with_name(f".{path.name}.{ids.new_id()}")
    draft.write_bytes(content)
    draft.replace(path)


def files_at_hand(job: IngestJob) -> tuple[File, ...] | None:
    """The files that were fetched, if all of them are still here."""
    files = _bill(job)
    return None if _spoiled(job, files) else files or None


def _bill(job: IngestJob) -> tuple[File, ...]:
    """The files that were fetched."""
    try:
        return _decode_bill((folder_of(job, SYSTEM) / _BILL).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return ()


def _spoiled(job: IngestJob, files: Iterable[File]) -> list[Path]:
    """Where files of a bill were that are gone, or have another size."""
    folder = folder_of(job, PRODUCER)
    return [folder / file.name for file in files if _size(folder / file.name) != file.size]


def _drop_spoiled(job: IngestJob) -> None:
    """Remove files that are not what they were when they came: nothing else says what they were.

    What was unpacked goes as a whole, because only as a whole does it come again.
    """
    spoiled = _spoiled(job, _bill(job))
    if spoiled and job.configuration.payload_type is PayloadType.CONTAINER:
        archives.discard(folder_of(job, PRODUCER))
        return
    for path in spoiled:
        path.unlink(missing_ok=True)


def _unpacked(
    context: IngestContext, job: IngestJob, collection: Collection, archive: Path
) -> tuple[File, ...]:
    target = folder_of(job, PRODUCER)
    limits = archives.ArchiveLimits(files_max=collection.files_max, bytes_max=collection.bytes_max)
    try:
        names = archives.unpack(archive, target, limits)
        archives.verify_bag(target)
    except Invalid:
        # A resume must not find them good because they are here.
        archive.unlink(missing_ok=True)
        archives.discard(target)
        raise
    return tuple(_file(context, target, name) for name in names)


def _file(context: IngestContext, folder: Path, name: Path) -> File:
    path = folder / name
    sha512 = digests_of(path, frozenset({ALWAYS}), context.runtime.is_stopping)[ALWAYS]
    if context.runtime.is_stopping():
        raise Stopped(f"{name.as_posix()} was not read to its end: the work was stopped")
    return File(name.as_posix(), path.stat().st_size, sha512)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
