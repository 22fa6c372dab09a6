"""Where bytes come from: the web, an s3 bucket, a file of this machine, or an uploaded payload.

Each source answers one question, "the bytes from this offset on, if they are still the same
file", and says in which of three ways it failed: try again, never, or the file has changed.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, BinaryIO

import httpx
import obstore
from msgspec import Struct
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, PreconditionError
from obstore.store import S3Store

from penstock.errors import Invalid, NotFound, PenstockError
from penstock.ingest.intake.outbound import open_file
from penstock.ingest.intake.places import Places, bucket_and_key, check_url, shown

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult

Uploads = Callable[[str], AbstractContextManager[Iterator[bytes]]]

UPLOADED = "payload"
CHUNK_BYTES = 1 << 20
RETRY_AFTER_SECONDS_MAX = 60.0

_BUSY = frozenset({408, 425, 429})


class Again(Exception):
    """The source failed in a way that may pass; what has come so far stays good."""

    def __init__(self, reason: str, *, after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds


class Taken(Again):
    """Another process is at it, or was a moment ago: one that has lost its lock, or has ours."""


class Changed(Exception):
    """What has come so far is of no use any more; begin at the first byte."""


class Incoming(Struct):
    """Bytes on their way, from `offset` of a file that has `total` bytes, if the source says."""

    offset: int
    total: int | None
    mark: str | None
    chunks: Iterator[bytes]
    encoding: str | None = None


class Source(Struct, frozen=True):
    """The ways in which a URL may be read."""

    client: httpx.Client
    places: Places
    uploads: Uploads | None = None

    def open(self, url: str, offset: int, mark: str | None) -> AbstractContextManager[Incoming]:
        """Read from `offset` if the file still has this mark, else from its first byte."""
        scheme = url.partition(":")[0].lower()
        if scheme == UPLOADED and self.uploads is not None:
            return _uploaded(self.uploads, url)
        check_url(url, self.places)
        if scheme == "file":
            return _local(url, self.places, offset, mark)
        if scheme == "s3":
            return _stored(url, offset, mark)
        return _web(self.client, url, offset, mark)

    def size(self, url: str) -> int | None:
        """How many bytes the URL has, or None if that cannot be told."""
        scheme = url.partition(":")[0].lower()
        if scheme == UPLOADED:
            return None
        try:
            check_url(url, self.places)
            if scheme == "file":
                with open_file(url, self.places) as file:
                    return file.seek(0, 2)
            if scheme == "s3":
                bucket, key = bucket_and_key(url)
                return int(obstore.head(_bucket(bucket), key)["size"])
            answer = self.client.head(url)
        except (PenstockError, httpx.HTTPError, httpx.InvalidURL, BaseError, OSError, ValueError):
            return None
        if answer.status_code != 200 or answer.headers.get("content-encoding"):
            return None
        return _number(answer.headers.get("content-length"))


@contextmanager
def _web(client: httpx.Client, url: str, offset: int, mark: str | None) -> Iterator[Incoming]:
    headers = {"accept-encoding": "identity"}
    if offset and mark:
        headers |= {"range": f"bytes={offset}-", "if-range": mark}
    try:
        with client.stream("GET", url, headers=headers) as answer:
            _check_status(url, answer, resuming="range" in headers)
            yield _incoming(answer, offset, mark)
    except httpx.TooManyRedirects:
        raise Invalid(f"{shown(url)} redirects too often; use the final URL") from None
    except httpx.InvalidURL as error:
        raise Invalid(
            f"{shown(url)} cannot be fetched, because it or a redirect from it is not a URL "
            f"({error}); correct the redirect and resume the job, or submit another URL"
        ) from None
    except httpx.TransportError as error:
        raise Again(str(error) or type(error).__name__) from error


def _incoming(answer: httpx.Response, offset: int, mark: str | None) -> Incoming:
    headers = answer.headers
    length = _number(headers.get("content-length"))
    if answer.status_code == 200:
        encoding = headers.get("content-encoding", "identity").lower()
        return Incoming(
            offset=0,
            total=length,
            mark=_mark(headers),
            chunks=answer.iter_raw(),
            encoding=None if encoding == "identity" else encoding[:40],
        )
    first, total = _content_range(headers.get("content-range", ""))
    # A server that ignores If-Range would join the beginning of one file to the end of another.
    is_same = mark in (headers.get("etag"), headers.get("last-modified"))
    if first != offset or not is_same:
        raise Changed("the server sent another part than the one asked for")
    return Incoming(offset=offset, total=total, mark=mark, chunks=answer.iter_raw())


def _check_status(url: str, answer: httpx.Response, *, resuming: bool) -> None:
    code = answer.status_code
    if code == 200 or (code == 206 and resuming):
        return
    said = f"{code} {httpx.codes.get_reason_phrase(code)}".strip()
    if code == 416 and resuming:
        raise Changed("the file is shorter than what has come of it")
    if code in _BUSY or code >= 500:
        raise Again(f"the server answers {said}", after_seconds=_retry_after(answer.headers))
    if code in (404, 410):
        raise NotFound(f"{shown(url)} is not there: the server answers {said}; check the URL")
    raise Invalid(
        f"{shown(url)} cannot be fetched: the server answers {said}; check the URL and its rights"
    )


@contextmanager
def _stored(url: str, offset: int, mark: str | None) -> Iterator[Incoming]:
    try:
        found = _get_object(url, offset, mark)
        meta = found.meta
        yield Incoming(
            offset=found.range[0],
            total=meta["size"],
            mark=meta["e_tag"],
            chunks=iter(found.stream(min_chunk_size=CHUNK_BYTES)),
        )
    except BaseError as error:
        raise Again(str(error).splitlines()[0][:300]) from error


def _get_object(url: str, offset: int, mark: str | None) -> "GetResult":
    bucket, key = bucket_and_key(url)
    options: GetOptions = {"if_match": mark, "range": {"offset": offset}} if offset and mark else {}
    try:
        return obstore.get(_bucket(bucket), key, options=options)
    except (FileNotFoundError, NotFoundError):
        raise NotFound(f"{shown(url)} is not there; check the bucket and the key") from None
    except PreconditionError:
        raise Changed("the object has been overwritten") from None
    except PermissionDeniedError:
        raise Invalid(f"{shown(url)} may not be read with the server's S3 credentials") from None
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise Invalid(f"{shown(url)} has a key that cannot be used: {reason}") from None


def _bucket(bucket: str) -> S3Store:
    """The bucket, with endpoint, region and credentials from the environment."""
    return S3Store(
        bucket,
        client_options={
            # Plain http is spoken only to an endpoint that is configured so.
            "allow_http": True,
            # The default would end every download after 30 seconds, however well it goes.
            "timeout": timedelta(days=7),
            "connect_timeout": timedelta(seconds=30),
            "read_timeout": timedelta(seconds=60),
        },
        retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=60)},
    )


@contextmanager
def _local(url: str, places: Places, offset: int, mark: str | None) -> Iterator[Incoming]:
    with open_file(url, places) as file:
        size = file.seek(0, 2)
        found = _file_mark(file.fileno())
        start = offset if found == mark and offset <= size else 0
        file.seek(start)
        yield Incoming(offset=start, total=size, mark=found, chunks=_unchanged(file, found))


def _unchanged(file: BinaryIO, mark: str) -> Iterator[bytes]:
    """What is left of a file; who writes into it meanwhile would have us read a mix of two."""
    while data := file.read(CHUNK_BYTES):
        yield data
    if _file_mark(file.fileno()) != mark:
        raise Changed("the file was written to while it was read")


@contextmanager
def _uploaded(uploads: Uploads, url: str) -> Iterator[Incoming]:
    with uploads(url) as chunks:
        yield Incoming(offset=0, total=None, mark=None, chunks=chunks)


def _mark(headers: httpx.Headers) -> str | None:
    """What tells one state of a file from the next: a strong ETag, or when it was modified.

    That is told in seconds: of a file that is a second old or less, two states have one time.
    """
    etag: str = headers.get("etag", "")
    if etag.startswith('"'):
        return etag
    modified: str | None = headers.get("last-modified")
    age = _seconds_between(modified, headers.get("date"))
    return modified if age is not None and age >= 1 else None


def _file_mark(file: int) -> str:
    about = os.fstat(file)
    return f"{about.st_dev}-{about.st_ino}-{about.st_size}-{about.st_mtime_ns}"


def _content_range(text: str) -> tuple[int | None, int | None]:
    """The first byte and the whole size that a Content-Range names."""
    match = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", text.strip())
    if match is None:
        return None, None
    return int(match[1]), _number(match[2])


def _retry_after(headers: httpx.Headers) -> float | None:
    """How long the server asks us to wait, in seconds, up to a limit."""
    text: str = headers.get("retry-after", "")
    seconds: float | None = _number(text)
    if seconds is None:
        # A moment counts from the server's own clock.
        seconds = _seconds_between(headers.get("date"), text)
    if seconds is None:
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


def _seconds_between(first: str | None, last: str | None) -> float | None:
    """The time from one moment to another, as HTTP writes them; None if one of them is none."""
    try:
        began, ended = (parsedate_to_datetime(text or "") for text in (first, last))
        return (ended - began).total_seconds()
    except (TypeError, ValueError):
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text) else None
