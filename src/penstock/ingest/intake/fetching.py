"""Fetching files into a folder: resumed after a crash, and checked while they stream.

A file gets its name only when all of it is on disk and its size and digest are right. So a file
with its final name is good, and fetching twice is harmless.
"""

import errno
import hashlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
from msgspec import Struct

from penstock.errors import Invalid, PenstockError, TooLarge, Unavailable
from penstock.ingest.intake.digests import ALGORITHMS
from penstock.ingest.intake.partial_files import Digests, PartialFile, digests_of
from penstock.ingest.intake.places import Places, redact_url
from penstock.ingest.intake.sources import (
    FetchedElsewhere,
    IncomingBytes,
    SourceChanged,
    SourceReader,
    TemporaryFailure,
    Uploads,
)
from penstock.ingest.intake.validation import name_fault

ALWAYS = "sha-512"
BACK_OFF_SECONDS_MAX = 30.0
TRIES = 4

Sleep = Callable[[float], None]
Stop = Callable[[], bool]
Progress = Callable[[int], None]


class FetchStopped(Unavailable):
    """The caller asked to stop, or another process fetches the file; the partial file is kept."""


class NoSpace(Unavailable):
    """The local disk is full: the file is not at fault, and its partial file is kept."""


class WrongDigest(Invalid):
    """The file has another digest than expected; a retry would fetch the same bytes."""


class FileRequest(Struct, frozen=True):
    """A file to fetch, its relative path, and its expected digest and size.

    `modified` and `mime` are stored without a check.
    """

    url: str
    name: str
    algorithm: str | None = None
    digest: str | None = None
    size: int | None = None
    modified: str | None = None
    mime: str | None = None

    @property
    def algorithms(self) -> frozenset[str]:
        return frozenset(name for name in (ALWAYS, self.algorithm) if name is not None)


class FetchedFile(Struct, frozen=True):
    """A complete and checked file; `is_new` is False if it existed before."""

    name: str
    size: int
    digests: dict[str, str]
    is_new: bool


class _Options(Struct, frozen=True):
    """The options of one fetch."""

    source: SourceReader
    tries: int
    sleep: Sleep
    bytes_max: int | None
    stop: Stop
    progress: Progress


def size_of(client: httpx.Client, wanted: FileRequest, places: Places) -> int | None:
    """Ask the source for the size in bytes; None if that fails for any reason."""
    return SourceReader(client, places).size(wanted.url)


def fetch(
    client: httpx.Client,
    wanted: FileRequest,
    folder: Path,
    *,
    places: Places,
    tries: int = TRIES,
    sleep: Sleep = time.sleep,
    bytes_max: int | None = None,
    stop: Stop = lambda: False,
    progress: Progress = lambda change: None,
    uploads: Uploads | None = None,
) -> FetchedFile:
    """Fetch a file into the folder; `progress` gets every change of the bytes on disk."""
    options = _Options(
        SourceReader(client, places, uploads), tries, sleep, bytes_max, stop, progress
    )
    _check_wanted(wanted)
    with disk_errors(wanted, folder):
        present = _existing_file(wanted, folder / wanted.name, options)
        return present or _fetch(wanted, folder, options)


def fetch_all(
    client: httpx.Client,
    wanted: Sequence[FileRequest],
    folder: Path,
    *,
    places: Places,
    concurrency: int = 4,
    tries: int = TRIES,
    sleep: Sleep = time.sleep,
    bytes_max: int | None = None,
    stop: Stop = lambda: False,
    progress: Progress = lambda change: None,
    uploads: Uploads | None = None,
) -> list[FetchedFile]:
    """Fetch several files at a time, together at most `bytes_max`; the first failure ends the rest.

    No other process may fetch into the folder meanwhile: the end removes all partial files.
    """
    if len({file.name for file in wanted}) < len(wanted):
        raise Invalid(f"two files for {folder.name} have one name; give each its own")
    meter = _Meter(bytes_max, progress)
    failures: list[BaseException] = []

    def fetch_one(file: FileRequest) -> FetchedFile:
        return fetch(
            client,
            file,
            folder,
            places=places,
            tries=tries,
            sleep=sleep,
            bytes_max=bytes_max,
            stop=lambda: bool(failures) or stop(),
            progress=meter.add,
            uploads=uploads,
        )

    fetched = _fetch_concurrently(fetch_one, wanted, concurrency, failures)
    # A killed process may have left partial files of files that are complete now.
    shutil.rmtree(_parts_folder(folder), ignore_errors=True)
    return fetched


def _fetch_concurrently(
    fetch_one: Callable[[FileRequest], FetchedFile],
    wanted: Sequence[FileRequest],
    concurrency: int,
    failures: list[BaseException],
) -> list[FetchedFile]:
    """Fetch all files, several at a time; stop at the first failure and raise it."""
    fetched: dict[int, FetchedFile] = {}
    queue = iter(enumerate(wanted))
    lock = threading.Lock()

    def work() -> None:
        while not failures:
            with lock:
                index, file = next(queue, (-1, None))
            if file is None:
                return
            try:
                fetched[index] = fetch_one(file)
            except BaseException as error:
                failures.append(error)

    with ThreadPoolExecutor(max(1, concurrency), "fetch") as pool:
        try:
            for task in [pool.submit(work) for _ in range(min(concurrency, len(wanted)))]:
                task.result()
        except BaseException as error:
            # An interrupt of this thread must also end the others.
            failures.append(error)
            raise
    if failures:
        raise failures[0]
    return [fetched[index] for index in range(len(wanted))]


class _Meter:
    """A counter of the bytes on disk of all files, for all threads."""

    def __init__(self, bytes_max: int | None, progress: Progress) -> None:
        self._bytes_max = bytes_max
        self._progress = progress
        self._lock = threading.Lock()
        self._bytes = 0

    def add(self, change: int) -> None:
        with self._lock:
            self._bytes += change
            if self._bytes_max is not None and self._bytes > self._bytes_max:
                raise TooLarge(
                    f"the files together have more than {self._bytes_max:,} bytes; "
                    "submit fewer of them, or ask for a higher limit of the collection"
                )
            self._progress(change)


def _check_wanted(wanted: FileRequest) -> None:
    reason = name_fault(wanted.name)
    if reason is not None:
        raise Invalid(
            f"{redact_url(wanted.url)} cannot be stored: the name {wanted.name!r} {reason}"
        )
    has_digest = wanted.algorithm is not None or wanted.digest is not None
    if has_digest and wanted.algorithm not in ALGORITHMS:
        raise Invalid(
            f"{redact_url(wanted.url)} has a digest of {wanted.algorithm!r}; "
            f"use {', '.join(sorted(ALGORITHMS))}"
        )


def _existing_file(wanted: FileRequest, target: Path, options: _Options) -> FetchedFile | None:
    """Return the file if it exists and is good."""
    if not target.is_file():
        return None
    size = target.stat().st_size
    if wanted.size is not None and wanted.size != size:
        return None
    digests = digests_of(target, wanted.algorithms, options.stop)
    _check_stop(wanted, options)
    if wanted.digest is not None and digests[str(wanted.algorithm)] != wanted.digest.lower():
        return None
    _check_size(wanted, size, options.bytes_max)
    options.progress(size)
    return FetchedFile(wanted.name, size, digests, is_new=False)


def _fetch(wanted: FileRequest, folder: Path, options: _Options) -> FetchedFile:
    digests = Digests(wanted.algorithms)
    key = hashlib.sha256(f"{wanted.name}\0{wanted.url}".encode(errors="surrogatepass")).hexdigest()
    last = TemporaryFailure("")
    for number in range(1, options.tries + 1):
        try:
            with closing(PartialFile(_parts_folder(folder) / key, digests)) as part:
                _take(wanted, part, options)
                _check_digest(wanted, part, digests.values(), options)
                part.finish(folder / wanted.name, folder)
                return FetchedFile(wanted.name, part.size, digests.values(), is_new=True)
        except TemporaryFailure as failure:
            last = failure
            if number < options.tries:
                _wait(wanted, failure.after_seconds, number, options)
    if isinstance(last, FetchedElsewhere):
        raise FetchStopped(f"{redact_url(wanted.url)} was not fetched: {last}")
    raise Unavailable(
        f"{redact_url(wanted.url)} could not be fetched in {options.tries} tries, the last time "
        f"because {last}; try it again when its server works"
    )


def _take(wanted: FileRequest, part: PartialFile, options: _Options) -> None:
    """Complete the partial file in one try; discard it if it cannot be continued."""
    part.resume(options.stop)
    _check_stop(wanted, options)
    options.progress(part.size)
    try:
        with options.source.open(wanted.url, part.size, part.mark) as incoming:
            _check_incoming(wanted, incoming, options)
            if incoming.offset != part.size or part.size == 0:
                options.progress(-part.size)
                part.begin(incoming.mark)
            _stream(wanted, part, incoming, options)
    except SourceChanged as changed:
        options.progress(-part.size)
        part.begin(None)
        raise TemporaryFailure(str(changed)) from changed
    except (TemporaryFailure, FetchStopped):
        part.sync()
        options.progress(-part.size)
        raise
    except PenstockError:
        part.discard()
        raise


def _stream(
    wanted: FileRequest, part: PartialFile, incoming: IncomingBytes, options: _Options
) -> None:
    for data in incoming.chunks:
        _check_stop(wanted, options)
        _check_size(wanted, part.size + len(data), options.bytes_max)
        part.write(data)
        options.progress(len(data))
    expected = wanted.size if incoming.total is None else incoming.total
    if expected is not None and part.size < expected:
        raise TemporaryFailure(f"it was cut off after {part.size:,} of {expected:,} bytes")
    if expected is not None and part.size > expected:
        raise SourceChanged("the file grew while it was read")


def _check_incoming(wanted: FileRequest, incoming: IncomingBytes, options: _Options) -> None:
    if incoming.encoding is not None and wanted.digest is None:
        raise Invalid(
            f"{redact_url(wanted.url)} comes with Content-Encoding {incoming.encoding} although "
            "plain bytes were asked for; serve it plain, or give the digest of the bytes that are "
            "sent"
        )
    if incoming.total is None:
        return
    _check_size(wanted, incoming.total, options.bytes_max)
    if wanted.size is not None and incoming.total != wanted.size:
        raise Invalid(
            f"{redact_url(wanted.url)} has {incoming.total:,} bytes, but {wanted.size:,} were "
            "expected; correct the file and resume the job, or correct the size and submit it again"
        )


def _check_size(wanted: FileRequest, size: int, bytes_max: int | None) -> None:
    if wanted.size is not None and size > wanted.size:
        raise Invalid(
            f"{redact_url(wanted.url)} has more than the {wanted.size:,} bytes that were expected; "
            "correct the file and resume the job, or correct the size and submit it again"
        )
    if bytes_max is not None and size > bytes_max:
        raise TooLarge(
            f"{redact_url(wanted.url)} has more than the {bytes_max:,} bytes that may come"
        )


def _check_digest(
    wanted: FileRequest, part: PartialFile, digests: dict[str, str], options: _Options
) -> None:
    if wanted.digest is None or digests[str(wanted.algorithm)] == wanted.digest.lower():
        return
    part.discard()
    options.progress(-part.size)
    if part.resumed:
        # The beginning may come from another version of the file than the end.
        raise TemporaryFailure(f"its {wanted.algorithm} was wrong after it had been resumed")
    raise WrongDigest(
        f"{redact_url(wanted.url)} has the wrong {wanted.algorithm}: "
        f"expected {wanted.digest.lower()}, found {digests[str(wanted.algorithm)]}; "
        "correct the file and resume the job, or correct the digest and submit it again"
    )


def _check_stop(wanted: FileRequest, options: _Options) -> None:
    if options.stop():
        raise FetchStopped(
            f"{redact_url(wanted.url)} was not fetched: the work was stopped before its end"
        )


def _wait(wanted: FileRequest, asked_seconds: float | None, number: int, options: _Options) -> None:
    seconds_left = (
        asked_seconds
        if asked_seconds is not None
        else min(2.0 ** (number - 1), BACK_OFF_SECONDS_MAX)
    )
    while seconds_left > 0:
        _check_stop(wanted, options)
        options.sleep(min(seconds_left, 1.0))
        seconds_left -= 1.0


def _parts_folder(folder: Path) -> Path:
    """Return the folder of partial files, beside the folder of complete files."""
    return folder.with_name(f".{folder.name}.parts")


@contextmanager
def disk_errors(wanted: FileRequest, folder: Path) -> Iterator[None]:
    """Turn a disk error into one that names the file and the next step."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(
                f"no space left in {folder} for {redact_url(wanted.url)}; "
                "free some, and resume the job"
            ) from error
        raise Unavailable(
            f"{redact_url(wanted.url)} could not be stored as {wanted.name!r} in {folder}: "
            f"{error.strerror or error}; correct that, and try it again"
        ) from error
