"""Payloads that are uploaded to the server, to be submitted from there."""

import hashlib
from collections.abc import Iterator

from penstock import ids
from penstock.access.keys import Role
from penstock.api.calls import Call
from penstock.api.routing import BASE, Reach, Route
from penstock.api.uploads import Stream
from penstock.catalog.shapes import Shape
from penstock.errors import Invalid
from penstock.ingest.receiving.names import safe_name
from penstock.ingest.receiving.uploads import NoteUpload
from penstock.ingest.workshop import PAYLOAD_SCHEME, upload_key
from penstock.objects import Objects

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
    reason = "has a slash" if "/" in payload else safe_name(payload)
    if reason:
        raise Invalid(f"the name {payload[:200]!r} {reason}; give another")
    url = f"{PAYLOAD_SCHEME}:{ids.new_id()}/{payload.translate(_ESCAPES)}"
    await call.submit(NoteUpload(url))
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


ROUTES = (
    Route(
        "POST",
        f"{BASE}/ingest/payloads/{{payload}}",
        upload_payload,
        Reach.SHARED,
        Role.WRITER,
        status=201,
    ),
)
