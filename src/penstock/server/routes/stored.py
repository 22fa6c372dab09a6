"""What ingest has stored: objects, their versions and files."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from penstock import ids
from penstock.access.keys import Role
from penstock.catalog.shapes import Shape
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound
from penstock.ingest.archive.register import StoredRow, list_stored, list_versions
from penstock.ingest.context import PAYLOAD_SCHEME, upload_key
from penstock.ingest.intake.uploads import RegisterUpload
from penstock.ingest.intake.validation import name_fault
from penstock.objects import Objects
from penstock.server.content import Stream
from penstock.server.ingest_shapes import StoredObject, shown_object
from penstock.server.parameters import Limit, Query, Time, moment
from penstock.server.requests import Call, IngestRequest
from penstock.server.routing import BASE, Reach, Route

_LAST = 2**62

ArkName = Annotated[str, Meta(min_length=1, max_length=1_000, description="the object's ARK")]


class ObjectsQuery(Query, frozen=True):
    """Which objects: of a collection, stored before a time."""

    collection: str | None = None
    limit: Limit = 100
    before: Time | None = None


class VersionsQuery(Query, frozen=True):
    """Which object."""

    ark: ArkName


class FilesQuery(Query, frozen=True):
    """Which version of which object; the newest, if none is named."""

    ark: ArkName
    version: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None


class StoredObjects(Shape, frozen=True):
    """A part of what is stored, newest first.

    `next` is the `before` of the next part; without it there is none.
    """

    objects: Sequence[StoredObject]
    next: str | None


class ObjectVersions(Shape, frozen=True):
    """The versions of an object, newest first."""

    versions: Sequence[StoredObject]


class ObjectFile(Shape, frozen=True):
    """A file of a version; `size` is null if its content is missing from the store.

    `lastModified` and `mimeType` are what the depositor's manifest says about it.
    """

    name: str
    size: int | None
    sha512: str
    last_modified: str | None
    mime_type: str | None


class ObjectFiles(Shape, frozen=True):
    """The files of a version, by name."""

    files: Sequence[ObjectFile]


def list_objects(visit: IngestRequest, query: ObjectsQuery) -> StoredObjects:
    """List what is stored, newest first.

    Objects that were stored at one moment are listed together, so that a part may be a little
    shorter or longer than `limit`.
    """
    before = moment(query.before, "before")
    names = visit.narrowed(query.collection)
    if names is None:
        names = frozenset(each.name for each in visit.collections())
    if not query.limit:
        return StoredObjects([], None)
    with visit.plane.catalog.read() as tx:
        page = _Page(tx, sorted(names), _LAST if before is None else before)
        rows, is_last = page.whole_moments(query.limit)
    following = None if is_last else format_time(rows[-1].at)
    return StoredObjects([shown_object(row) for row in rows], following)


class _Page:
    """Objects of some collections stored before a moment."""

    def __init__(self, tx: Transaction, collections: Sequence[str], before: Micros) -> None:
        self._tx = tx
        self._collections = collections
        self._before = before

    def whole_moments(self, limit: int) -> tuple[list[StoredRow], bool]:
        """About so many objects, and whether they are the last: the next page begins at a time."""
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


def list_object_versions(visit: IngestRequest, query: VersionsQuery) -> ObjectVersions:
    """List the versions of an object, newest first."""
    return ObjectVersions([shown_object(row) for row in _versions(visit, query.ark)])


def list_object_files(visit: IngestRequest, query: FilesQuery) -> ObjectFiles:
    """List the files of a version of an object."""
    newest, *older = _versions(visit, query.ark)
    found = newest
    if query.version is not None:
        found = next((row for row in [newest, *older] if row.version == query.version), newest)
        if found.version != query.version:
            raise NotFound(
                f"{query.ark} has no version {query.version}; its newest is {newest.version}"
            )
    depository = visit.context.storage.depository(visit.collection(found.collection))
    files = depository.described_files(found.ark, found.version)
    return ObjectFiles(
        [ObjectFile(file.name, file.size, file.sha512, file.modified, file.mime) for file in files]
    )


def _versions(visit: IngestRequest, ark: str) -> list[StoredRow]:
    """The versions that the key may see."""
    names = visit.narrowed(None)
    with visit.plane.catalog.read() as tx:
        rows = list_versions(tx, ark)
    seen = [row for row in rows if names is None or row.collection in names]
    if not seen:
        raise NotFound(f"nothing is stored under {ark!r}; check the ARK")
    return seen


_OBJECTS = f"{BASE}/ingest/objects"

ROUTES = (
    Route("GET", _OBJECTS, list_objects, Reach.OWN),
    Route("GET", f"{_OBJECTS}/versions", list_object_versions, Reach.OWN),
    Route("GET", f"{_OBJECTS}/files", list_object_files, Reach.OWN),
)


_ALGORITHM = "sha-256"
# What would end the path of a URL, or be taken for an escape in it.
_ESCAPES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})


class Payload(Shape, frozen=True):
    """A payload that was uploaded; batches name it by its URL."""

    url: str
    size: int
    digests: dict[str, str]


class _Taken:
    """The bytes that were taken so far."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.size = 0
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self.size += len(piece)
            self.digest.update(piece)
            yield piece


async def upload_payload(call: Call, payload: str, stream: Stream) -> Payload:
    """Upload a file, an archive or a manifest, which can then be submitted by the URL answered.

    The body is stored as it arrives, and never held whole. An upload that breaks off leaves
    nothing behind. Only the server's `payload_bytes_max` limits it.
    """
    reason = "has a slash" if "/" in payload else name_fault(payload)
    if reason:
        raise Invalid(f"the name {payload[:200]!r} {reason}; give another")
    url = f"{PAYLOAD_SCHEME}:{ids.new_id()}/{payload.translate(_ESCAPES)}"
    await call.submit(RegisterUpload(url))
    plane = call.door.plane
    return await call.door.carry(stream, lambda: _store(plane.objects, url, stream))


def _store(objects: Objects, url: str, stream: Stream) -> Payload:
    taken = _Taken(stream)
    try:
        objects.put(upload_key(url), taken, size=stream.length)
    except Exception:
        # A store may say in its own words that the bytes stopped coming.
        if stream.failure is not None:
            raise stream.failure from None
        raise
    return Payload(url, taken.size, {_ALGORITHM: taken.digest.hexdigest()})


PAYLOAD_ROUTES = (
    Route(
        "POST",
        f"{BASE}/ingest/payloads/{{payload}}",
        upload_payload,
        Reach.SHARED,
        Role.WRITER,
        status=201,
    ),
)
