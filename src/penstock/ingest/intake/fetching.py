"""Fetching files into a folder: resumed, checked while they stream, and never seen half-done.

A file gets its name only when all of it is on disk and its size and digest are right, so a
file that is there is a good one, and fetching twice does no harm.
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
from penstock.ingest.intake.names import safe_name
from penstock.ingest.intake.partial_files import Digests, Part, digests_of
from penstock.ingest.intake.places import Places, shown
from penstock.ingest.intake.sources import Again, Changed, Incoming, Source, Taken, Uploads

ALWAYS = "sha-512"
BACK_OFF_SECONDS_MAX = 30.0
TRIES = 4

Sleep = Callable[[float], None]
Stop = Callable[[], bool]
Progress = Callable[[int], None]


class Stopped(Unavailable):
    """The caller asked to stop, or another process is at it; what has come so far is kept."""


class NoSpace(Unavailable):
    """Our own disk is full: nothing is wrong with the file, and what has come so far is kept."""


class WrongDigest(Invalid):
    """What came is not what was to come: trying again brings the same."""


class Wanted(Struct, frozen=True):
    """A file to fetch, the relative path it gets, and what is known of it beforehand.

    `modified` and `mime` are not checked, and stored as they are.
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


class Fetched(Struct, frozen=True):
    """A file that is there, whole and checked; `fetched` is False if it was there before."""

    name: str
    size: int
    digests: dict[str, str]
    fetched: bool


class _Terms(Struct, frozen=True):
    """Under which conditions a file is fetched."""

    source: Source
    tries: int
    sleep: Sleep
    bytes_max: int | None
    stop: Stop
    progress: Progress


def size_of(client: httpx.Client, wanted: Wanted, places: Places) -> int | None:
    """How many bytes the source says it has; None if it cannot be told, whatever the reason."""
    return Source(client, places).size(wanted.url)


def fetch(
    client: httpx.Client,
    wanted: Wanted,
    folder: Path,
    *,
    places: Places,
    tries: int = TRIES,
    sleep: Sleep = time.sleep,
    bytes_max: int | None = None,
    stop: Stop = lambda: False,
    progress: Progress = lambda change: None,
    uploads: Uploads | None = None,
) -> Fetched:
    """Make the wanted file be in the folder; `progress` is told every change in bytes at hand."""
    terms = _Terms(Source(client, places, uploads), tries, sleep, bytes_max, stop, progress)
    _check_wanted(wanted)
    with disk_errors(wanted, folder):
        present = _present(wanted, folder / wanted.name, terms)
        return present or _fetch(wanted, folder, terms)


def fetch_all(
    client: httpx.Client,
    wanted: Sequence[Wanted],
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
) -> list[Fetched]:
    """Fetch many files at once, together at most `bytes_max`; the first failure ends the rest.

    Nobody else may fetch into the folder meanwhile: in the end its unfinished parts are removed.
    """
    if len({file.name for file in wanted}) < len(wanted):
        raise Invalid(f"two files for {folder.name} have one name; give each its own")
    meter = _Meter(bytes_max, progress)
    failures: list[BaseException] = []

    def take(file: Wanted) -> Fetched:
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

    found = _side_by_side(take, wanted, concurrency, failures)
    # Also what a killed process left of files that are whole by now.
    shutil.rmtree(_parts_folder(folder), ignore_errors=True)
    return found


def _side_by_side(
    take: Callable[[Wanted], Fetched],
    wanted: Sequence[Wanted],
    concurrency: int,
    failures: list[BaseException],
) -> list[Fetched]:
    """Take all files, several at a time, until one fails; that failure is raised."""
    found: dict[int, Fetched] = {}
    queue = iter(enumerate(wanted))
    turn = threading.Lock()

    def work() -> None:
        while not failures:
            with turn:
                index, file = next(queue, (-1, None))
            if file is None:
                return
            try:
                found[index] = take(file)
            except BaseException as error:
                failures.append(error)

    with ThreadPoolExecutor(max(1, concurrency), "fetch") as pool:
        try:
            for task in [pool.submit(work) for _ in range(min(concurrency, len(wanted)))]:
                task.result()
        except BaseException as error:
            # An interrupt of this thread must end the others too.
            failures.append(error)
            raise
    if failures:
        raise failures[0]
    return [found[index] for index in range(len(wanted))]


class _Meter:
    """The bytes at hand of all files together, counted for every thread."""

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


def _check_wanted(wanted: Wanted) -> None:
    reason = safe_name(wanted.name)
    if reason is not None:
        raise Invalid(f"{shown(wanted.url)} cannot be stored: the name {wanted.name!r} {reason}")
    asked = wanted.algorithm is not None or wanted.digest is not None
    if asked and wanted.algorithm not in ALGORITHMS:
        raise Invalid(
            f"{shown(wanted.url)} has a digest of {wanted.algorithm!r}; "
            f"use {', '.join(sorted(ALGORITHMS))}"
        )


def _present(wanted: Wanted, target: Path, terms: _Terms) -> Fetched | None:
    """The file, if it is already there and good."""
    if not target.is_file():
        return None
    size = target.stat().st_size
    if wanted.size is not None and wanted.size != size:
        return None
    digests = digests_of(target, wanted.algorithms, terms.stop)
    _check_stop(wanted, terms)
    if wanted.digest is not None and digests[str(wanted.algorithm)] != wanted.digest.lower():
        return None
    _check_size(wanted, size, terms.bytes_max)
    terms.progress(size)
    return Fetched(wanted.name, size, digests, fetched=False)


def _fetch(wanted: Wanted, folder: Path, terms: _Terms) -> Fetched:
    digests = Digests(wanted.algorithms)
    key = hashlib.sha256(f"{wanted.name}\0{wanted.url}".encode(errors="surrogatepass")).hexdigest()
    last = Again("")
    for number in range(1, terms.tries + 1):
        try:
            with closing(Part(_parts_folder(folder) / key, digests)) as part:
                _take(wanted, part, terms)
                _check_digest(wanted, part, digests.values(), terms)
                part.finish(folder / wanted.name, folder)
                return Fetched(wanted.name, part.size, digests.values(), fetched=True)
        except Again as again:
            last = again
            if number < terms.tries:
                _wait(wanted, again.after_seconds, number, terms)
    if isinstance(last, Taken):
        raise Stopped(f"{shown(wanted.url)} was not fetched: {last}")
    raise Unavailable(
        f"{shown(wanted.url)} could not be fetched in {terms.tries} tries, the last time because "
        f"{last}; try it again when its server works"
    )


def _take(wanted: Wanted, part: Part, terms: _Terms) -> None:
    """Bring the part to its end in one try; a part that is of no use is removed."""
    part.recall(terms.stop)
    _check_stop(wanted, terms)
    terms.progress(part.size)
    try:
        with terms.source.open(wanted.url, part.size, part.mark) as incoming:
            _check_incoming(wanted, incoming, terms)
            if incoming.offset != part.size or part.size == 0:
                terms.progress(-part.size)
                part.begin(incoming.mark)
            _stream(wanted, part, incoming, terms)
    except Changed as changed:
        terms.progress(-part.size)
        part.begin(None)
        raise Again(str(changed)) from changed
    except (Again, Stopped):
        part.keep()
        terms.progress(-part.size)
        raise
    except PenstockError:
        part.discard()
        raise


def _stream(wanted: Wanted, part: Part, incoming: Incoming, terms: _Terms) -> None:
    for data in incoming.chunks:
        _check_stop(wanted, terms)
        _check_size(wanted, part.size + len(data), terms.bytes_max)
        part.write(data)
        terms.progress(len(data))
    expected = wanted.size if incoming.total is None else incoming.total
    if expected is not None and part.size < expected:
        raise Again(f"it was cut off after {part.size:,} of {expected:,} bytes")
    if expected is not None and part.size > expected:
        raise Changed("the file grew while it was read")


def _check_incoming(wanted: Wanted, incoming: Incoming, terms: _Terms) -> None:
    if incoming.encoding is not None and wanted.digest is None:
        raise Invalid(
            f"{shown(wanted.url)} comes with Content-Encoding {incoming.encoding} although plain "
            "bytes were asked for; serve it plain, or give the digest of the bytes that are sent"
        )
    if incoming.total is None:
        return
    _check_size(wanted, incoming.total, terms.bytes_max)
    if wanted.size is not None and incoming.total != wanted.size:
        raise Invalid(
            f"{shown(wanted.url)} has {incoming.total:,} bytes, but {wanted.size:,} were expected; "
            "correct the file and resume the job, or correct the size and submit it again"
        )


def _check_size(wanted: Wanted, size: int, bytes_max: int | None) -> None:
    if wanted.size is not None and size > wanted.size:
        raise Invalid(
            f"{shown(wanted.url)} has more than the {wanted.size:,} bytes that were expected; "
            "correct the file and resume the job, or correct the size and submit it again"
        )
    if bytes_max is not None and size > bytes_max:
        raise TooLarge(f"{shown(wanted.url)} has more than the {bytes_max:,} bytes that may come")


def _check_digest(wanted: Wanted, part: Part, found: dict[str, str], terms: _Terms) -> None:
    if wanted.digest is None or found[str(wanted.algorithm)] == wanted.digest.lower():
        return
    part.discard()
    terms.progress(-part.size)
    if part.resumed:
        # The beginning may come from another state of the file than the end.
        raise Again(f"its {wanted.algorithm} was wrong after it had been resumed")
    raise WrongDigest(
        f"{shown(wanted.url)} has the wrong {wanted.algorithm}: expected {wanted.digest.lower()}, "
        f"found {found[str(wanted.algorithm)]}; correct the file and resume the job, or correct "
        "the digest and submit it again"
    )


def _check_stop(wanted: Wanted, terms: _Terms) -> None:
    if terms.stop():
        raise Stopped(f"{shown(wanted.url)} was not fetched: the work was stopped before its end")


def _wait(wanted: Wanted, asked: float | None, number: int, terms: _Terms) -> None:
    left = asked if asked is not None else min(2.0 ** (number - 1), BACK_OFF_SECONDS_MAX)
    while left > 0:
        _check_stop(wanted, terms)
        terms.sleep(min(left, 1.0))
        left -= 1.0


def _parts_folder(folder: Path) -> Path:
    """Beside the folder, so that the folder holds finished files only."""
    return folder.with_name(f".{folder.name}.parts")


@contextmanager
def disk_errors(wanted: Wanted, folder: Path) -> Iterator[None]:
    """Say what a disk could not do, for which file, and what to do about it."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(
                f"no space left in {folder} for {shown(wanted.url)}; free some, and resume the job"
            ) from error
        raise Unavailable(
            f"{shown(wanted.url)} could not be stored as {wanted.name!r} in {folder}: "
            f"{error.strerror or error}; correct that, and try it again"
        ) from error
