"""Stored objects, their versions and files, and uploads of payloads."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from penstock import ids
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound
from penstock.ingest.archive.register import StoredRow, list_stored, list_versions
from penstock.ingest.context import PAYLOAD_SCHEME, upload_key
from penstock.ingest.intake.uploads import RegisterUpload
from penstock.ingest.intake.validation import name_fault
from penstock.objects import Objects
from penstock.schema.admin import KeyRole
from penstock.schema.ingest import ObjectFile, ObjectFiles, ObjectVersions, Payload, StoredObjects
from penstock.schema.texts import Time
from penstock.server.content import Limit, Query, Stream, moment
from penstock.server.ingest_shapes import show_object
from penstock.server.requests import IngestRequest, RequestContext
from penstock.server.routing import BASE, INGEST, UPLOAD, Reach, Route

_LAST = 2**62

ArkName = Annotated[str, Meta(min_length=1, max_length=1_000, description="the object's ARK")]


class ObjectsQuery(Query, frozen=True):
    """The selection of objects: by collection, stored before a time."""

    collection: str | None = None
    limit: Limit = 100
    before: Time | None = None


class VersionsQuery(Query, frozen=True):
    """The object."""

    ark: ArkName


class FilesQuery(Query, frozen=True):
    """The object, and a version of it; by default the newest."""

    ark: ArkName
    version: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None


def list_objects(request: IngestRequest, query: ObjectsQuery) -> StoredObjects:
    """List stored objects, newest first.

    Objects that were stored at one moment are on one page, so that a page may be a little
    shorter or longer than `limit`.
    """
    before = moment(query.before, "before")
    names = request.narrowed(query.collection)
    if names is None:
        names = frozenset(each.name for each in request.collections())
    if not query.limit:
        return StoredObjects([], None)
    with request.plane.catalog.read() as tx:
        page = _Page(tx, sorted(names), _LAST if before is None else before)
        rows, is_last = page.whole_moments(query.limit)
    following = None if is_last else format_time(rows[-1].at)
    return StoredObjects([show_object(row) for row in rows], following)


class _Page:
    """Objects of some collections stored before a moment."""

    def __init__(self, tx: Transaction, collections: Sequence[str], before: Micros) -> None:
        self._tx = tx
        self._collections = collections
        self._before = before

    def whole_moments(self, limit: int) -> tuple[list[StoredRow], bool]:
        """Return about `limit` objects, and whether they are the last. A page ends with a time."""
        most = limit + 1
        while True:
            rows = self._newest(most)
            if len(rows) < most:
                return rows, True
            whole = [row for row in rows if row.at > rows[-1].at]
            if whole:
                return whole, False
            most *= 2

    def _newest(self, most: int) -> list[StoredRow]:
        rows = [
            row
            for collection in self._collections
            for row in list_stored(self._tx, collection, self._before, most)
        ]
        rows.sort(key=lambda row: row.ark)
        rows.sort(key=lambda row: row.at, reverse=True)
        return rows[:most]


def list_object_versions(request: IngestRequest, query: VersionsQuery) -> ObjectVersions:
    """List the versions of an object, newest first."""
    return ObjectVersions([show_object(row) for row in _versions(request, query.ark)])


def list_object_files(request: IngestRequest, query: FilesQuery) -> ObjectFiles:
    """List the files of a version of an object."""
    newest, *older = _versions(request, query.ark)
    row = newest
    if query.version is not None:
        row = next((row for row in [newest, *older] if row.version == query.version), newest)
        if row.version != query.version:
            raise NotFound(
                f"{query.ark} has no version {query.version}; its newest is {newest.version}"
            )
    depository = request.context.storage.depository(request.collection(row.collection))
    files = depository.described_files(row.ark, row.version)
    return ObjectFiles(
        [ObjectFile(file.name, file.size, file.sha512, file.modified, file.mime) for file in files]
    )


def _versions(request: IngestRequest, ark: str) -> list[StoredRow]:
    """Return the versions that the key may see."""
    names = request.narrowed(None)
    with request.plane.catalog.read() as tx:
        rows = list_versions(tx, ark)
    seen = [row for row in rows if names is None or row.collection in names]
    if not seen:
        raise NotFound(f"nothing is stored under {ark!r}; check the ARK")
    return seen


_OBJECTS = f"{BASE}/ingest/objects"


_ALGORITHM = "sha-256"
# Characters that end the path of a URL, or begin an escape.
_ESCAPES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})


class _Taken:
    """A body that counts its bytes and computes its digest while it is read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.size = 0
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self.size += len(piece)
            self.digest.update(piece)
            yield piece


async def upload_payload(context: RequestContext, payload: str, stream: Stream) -> Payload:
    """Upload a file, an archive or a manifest; the answer has the URL to submit.

    The body is stored while it arrives, and never held whole. An interrupted upload leaves
    nothing behind. Only the server's `payload_bytes_max` limits it.
    """
    reason = "has a slash" if "/" in payload else name_fault(payload)
    if reason:
        raise Invalid(f"the name {payload[:200]!r} {reason}; give another")
    url = f"{PAYLOAD_SCHEME}:{ids.new_id()}/{payload.translate(_ESCAPES)}"
    await context.submit(RegisterUpload(url))
    plane = context.plane
    return await context.state.in_upload_thread(stream, lambda: _store(plane.objects, url, stream))


def _store(objects: Objects, url: str, stream: Stream) -> Payload:
    taken = _Taken(stream)
    try:
        objects.put(upload_key(url), taken, size=stream.length)
    except Exception:
        # The store's error hides the reason: the upload was interrupted.
        if stream.failure is not None:
            raise stream.failure from None
        raise
    return Payload(url, taken.size, {_ALGORITHM: taken.digest.hexdigest()})


ROUTES = (
    Route(INGEST, "GET", _OBJECTS, list_objects, Reach.OWN),
    Route(INGEST, "GET", f"{_OBJECTS}/versions", list_object_versions, Reach.OWN),
    Route(INGEST, "GET", f"{_OBJECTS}/files", list_object_files, Reach.OWN),
    Route(
        UPLOAD,
        "POST",
        f"{BASE}/ingest/payloads/{{payload}}",
        upload_payload,
        Reach.SHARED,
        KeyRole.WRITER,
        status=201,
    ),
)
