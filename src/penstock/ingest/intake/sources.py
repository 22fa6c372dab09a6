"""Sources of bytes: the web, an s3 bucket, a local file or an uploaded payload.

Each source reads a file from an offset, if the file still has the same mark. It fails in one of
three ways: temporarily, permanently, or because the file has changed.
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
from penstock.ingest.intake.places import Places, bucket_and_key, check_url, redact_url

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult

Uploads = Callable[[str], AbstractContextManager[Iterator[bytes]]]

UPLOADED = "payload"
CHUNK_BYTES = 1 << 20
RETRY_AFTER_SECONDS_MAX = 60.0

_BUSY = frozenset({408, 425, 429})


class TemporaryFailure(Exception):
    """The source failed in a way that may pass; the partial file stays good."""

    def __init__(self, reason: str, *, after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.after_seconds = after_seconds


class FetchedElsewhere(TemporaryFailure):
    """Another process fetches the file, or just did: one of the two has lost its job."""


class SourceChanged(Exception):
    """The source file changed; begin again at the first byte."""


class IncomingBytes(Struct):
    """A stream of bytes from `offset` of a file; `total` is its size if the source reports one."""

    offset: int
    total: int | None
    mark: str | None
    chunks: Iterator[bytes]
    encoding: str | None = None


class SourceReader(Struct, frozen=True):
    """A reader of URLs in all supported schemes."""

    client: httpx.Client
    places: Places
    uploads: Uploads | None = None

    def open(
        self, url: str, offset: int, mark: str | None
    ) -> AbstractContextManager[IncomingBytes]:
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
        """Return the size of the file in bytes; None if it is unknown."""
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
def _web(client: httpx.Client, url: str, offset: int, mark: str | None) -> Iterator[IncomingBytes]:
    headers = {"accept-encoding": "identity"}
    if offset and mark:
        headers |= {"range": f"bytes={offset}-", "if-range": mark}
    try:
        with client.stream("GET", url, headers=headers) as answer:
            _check_status(url, answer, resuming="range" in headers)
            yield _incoming(answer, offset, mark)
    except httpx.TooManyRedirects:
        raise Invalid(f"{redact_url(url)} redirects too often; use the final URL") from None
    except httpx.InvalidURL as error:
        raise Invalid(
            f"{redact_url(url)} cannot be fetched, because it or a redirect from it is not a URL "
            f"({error}); correct the redirect and resume the job, or submit another URL"
        ) from None
    except httpx.TransportError as error:
        raise TemporaryFailure(str(error) or type(error).__name__) from error


def _incoming(answer: httpx.Response, offset: int, mark: str | None) -> IncomingBytes:
    headers = answer.headers
    length = _number(headers.get("content-length"))
    if answer.status_code == 200:
        encoding = headers.get("content-encoding", "identity").lower()
        return IncomingBytes(
            offset=0,
            total=length,
            mark=_mark(headers),
            chunks=answer.iter_raw(),
            encoding=None if encoding == "identity" else encoding[:40],
        )
    first, total = _content_range(headers.get("content-range", ""))
    # If a server ignores If-Range, the parts of two different files would be joined.
    is_same = mark in (headers.get("etag"), headers.get("last-modified"))
    if first != offset or not is_same:
        raise SourceChanged("the server sent another part than the one asked for")
    return IncomingBytes(offset=offset, total=total, mark=mark, chunks=answer.iter_raw())


def _check_status(url: str, answer: httpx.Response, *, resuming: bool) -> None:
    code = answer.status_code
    if code == 200 or (code == 206 and resuming):
        return
    status = f"{code} {httpx.codes.get_reason_phrase(code)}".strip()
    if code == 416 and resuming:
        raise SourceChanged("the file is shorter than the bytes that have arrived")
    if code in _BUSY or code >= 500:
        raise TemporaryFailure(
            f"the server answers {status}", after_seconds=_retry_after(answer.headers)
        )
    if code in (404, 410):
        raise NotFound(
            f"{redact_url(url)} is not there: the server answers {status}; check the URL"
        )
    raise Invalid(
        f"{redact_url(url)} cannot be fetched: the server answers {status}; "
        "check the URL and its rights"
    )


@contextmanager
def _stored(url: str, offset: int, mark: str | None) -> Iterator[IncomingBytes]:
    try:
        result = _get_object(url, offset, mark)
        meta = result.meta
        yield IncomingBytes(
            offset=result.range[0],
            total=meta["size"],
            mark=meta["e_tag"],
            chunks=iter(result.stream(min_chunk_size=CHUNK_BYTES)),
        )
    except BaseError as error:
        raise TemporaryFailure(str(error).splitlines()[0][:300]) from error


def _get_object(url: str, offset: int, mark: str | None) -> "GetResult":
    bucket, key = bucket_and_key(url)
    options: GetOptions = {"if_match": mark, "range": {"offset": offset}} if offset and mark else {}
    try:
        return obstore.get(_bucket(bucket), key, options=options)
    except (FileNotFoundError, NotFoundError):
        raise NotFound(f"{redact_url(url)} is not there; check the bucket and the key") from None
    except PreconditionError:
        raise SourceChanged("the object has been overwritten") from None
    except PermissionDeniedError:
        raise Invalid(
            f"{redact_url(url)} may not be read with the server's S3 credentials"
        ) from None
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise Invalid(f"{redact_url(url)} has a key that cannot be used: {reason}") from None


def _bucket(bucket: str) -> S3Store:
    """Open a bucket with endpoint, region and credentials from the environment."""
    return S3Store(
        bucket,
        client_options={
            # Plain http is used only for an endpoint that is configured with it.
            "allow_http": True,
            # The default would end every download after 30 seconds.
            "timeout": timedelta(days=7),
            "connect_timeout": timedelta(seconds=30),
            "read_timeout": timedelta(seconds=60),
        },
        retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=60)},
    )


@contextmanager
def _local(url: str, places: Places, offset: int, mark: str | None) -> Iterator[IncomingBytes]:
    with open_file(url, places) as file:
        size = file.seek(0, 2)
        current_mark = _file_mark(file.fileno())
        start = offset if current_mark == mark and offset <= size else 0
        file.seek(start)
        yield IncomingBytes(
            offset=start, total=size, mark=current_mark, chunks=_unchanged(file, current_mark)
        )


def _unchanged(file: BinaryIO, mark: str) -> Iterator[bytes]:
    """Read the rest of a file; raise SourceChanged if it was written to meanwhile."""
    while data := file.read(CHUNK_BYTES):
        yield data
    if _file_mark(file.fileno()) != mark:
        raise SourceChanged("the file was written to while it was read")


@contextmanager
def _uploaded(uploads: Uploads, url: str) -> Iterator[IncomingBytes]:
    with uploads(url) as chunks:
        yield IncomingBytes(offset=0, total=None, mark=None, chunks=chunks)


def _mark(headers: httpx.Headers) -> str | None:
    """Return the mark of a file's version: a strong ETag, or its time of modification.

    The time has a resolution of a second, so it is no mark of a file that was just modified.
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
    """Read the first byte and the total size from a Content-Range."""
    match = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", text.strip())
    if match is None:
        return None, None
    return int(match[1]), _number(match[2])


def _retry_after(headers: httpx.Headers) -> float | None:
    """Read the seconds of a Retry-After header, up to a limit."""
    text: str = headers.get("retry-after", "")
    seconds: float | None = _number(text)
    if seconds is None:
        # A date is relative to the server's own clock.
        seconds = _seconds_between(headers.get("date"), text)
    if seconds is None:
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


def _seconds_between(first: str | None, last: str | None) -> float | None:
    """Return the seconds between two HTTP dates; None if one is missing or invalid."""
    try:
        began, ended = (parsedate_to_datetime(text or "") for text in (first, last))
        return (ended - began).total_seconds()
    except (TypeError, ValueError):
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,18}", text) else None
