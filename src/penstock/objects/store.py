"""The object store behind one URL.

Guaranteed: a key is visible whole or not at all. What `put` has stored is on disk when it returns.
With `if_absent`, exactly one of many writers wins. Not guaranteed: the order of `list`, and a joint
change of two keys.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import obstore
from msgspec import Struct
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    InvalidPathError,
    PreconditionError,
)
from obstore.store import LocalStore, MemoryStore, from_url

from penstock.clock import Micros, from_datetime
from penstock.errors import Away, Conflict, Invalid, NotFound, PenstockError, TooLarge, Unavailable
from penstock.objects import folder as local
from penstock.objects.keys import check_key, local_folder, refusal
from penstock.private_files import make_private_folder

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore

Data = bytes | Path | Iterable[bytes]

_CHUNK_BYTES = 1024 * 1024
_PART_BYTES_MIN = 16 * 1024 * 1024
_PARTS_MAX = 9_000  # S3 accepts 10,000
_PARTS_AT_ONCE = 4
_IF_ABSENT_BYTES_MAX = 64 * 1024 * 1024
_NOBODYS = "penstock-asks"  # a key that is never written
_RETRIES = 5
_FULL = (errno.ENOSPC, errno.EDQUOT)
# The errors of a folder whose disk or connection is lost.
_GONE = (errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.ENOTCONN, errno.ETIMEDOUT)
_RETRY_SECONDS = 60


class StoredEntry(Struct, frozen=True):
    """One object in a listing."""

    key: str
    size: int
    modified: Micros
    etag: str = ""  # folders have none: theirs would change when the folder is moved


class Nameless(Struct, frozen=True):
    """A file in a local folder whose name cannot be a key."""

    path: Path
    reason: str

    @property
    def words(self) -> str:
        """The file, and why it must be renamed."""
        return f"{str(self.path)!r} cannot be the name of an object: {self.reason}"


class Objects:
    """An object store; safe to share between threads."""

    def __init__(
        self, url: str, store: "ObjectStore", folder: Path | None, mark: Path | None = None
    ) -> None:
        self.url = url
        self._store = store
        self._folder = folder
        self._mark = mark

    @classmethod
    def open(cls, url: str, *, below: str = "", is_marked: bool = False) -> Self:
        """Open a folder (created if missing), a bucket by s3://, gs:// or az://, or memory://.

        Cloud keys and endpoints come from the environment, as the tools of the clouds read it. With
        `is_marked`, a folder is neither created, read nor written while its mark is missing. With
        `below`, a folder inside of it is opened.
        """
        folder = local_folder(url)
        mark = folder.absolute() / local.MARK if is_marked and folder is not None else None
        if mark is not None and not mark.exists():
            raise _unmarked(mark)
        try:
            if folder is None:
                whole = "/".join(filter(None, (url.rstrip("/"), below)))
                return cls(whole, _open_remote(whole), None)
            folder = folder.absolute() / below
            make_private_folder(folder)
            local.sweep(folder)
            # OCFL forbids empty folders, so a deletion removes them.
            return cls(folder.as_uri(), LocalStore(folder, automatic_cleanup=True), folder, mark)
        except (BaseError, OSError, ValueError) as error:
            raise Invalid(f"the object store {url} cannot be opened: {_words(error)}") from error

    @property
    def is_marked(self) -> bool:
        """Whether it is a folder with a mark."""
        return self._mark is not None

    def path(self, key: str) -> Path | None:
        """Return the file of an object in a local folder; None for other kinds of store."""
        self._check_mark()
        return self._folder / check_key(key) if self._folder is not None else None

    def get(self, key: str) -> bytes:
        """Return a whole small object."""
        with self._refusals("read", check_key(key)):
            return bytes(obstore.get(self._store, key).bytes())

    @contextmanager
    def get_stream(self, key: str) -> Iterator[Iterator[bytes]]:
        """Return the bytes of an object in chunks."""
        with self._refusals("read", check_key(key)):
            result = obstore.get(self._store, key)
        yield self._stream(key, result.stream(min_chunk_size=_CHUNK_BYTES))

    def put(
        self, key: str, data: Data, *, if_absent: bool = False, size: int | None = None
    ) -> None:
        """Store data; with `if_absent`, raise Conflict if the key exists.

        A PenstockError from an iterable is raised here, and nothing is stored. `size` is the size
        of an iterable, which decides the size of the parts of a large upload.
        """
        check_key(key)
        if isinstance(data, Path):
            size = _size_of(data)
        elif isinstance(data, bytes):
            size = len(data)
        with self._refusals("write", key):
            if self._folder is not None:
                local.write(self._folder, key, _chunks(data), if_absent=if_absent)
            elif if_absent:
                whole = _whole(key, _chunks(data))
                obstore.put(self._store, key, whole, mode="create", use_multipart=False)
            elif isinstance(data, bytes) and len(data) <= _PART_BYTES_MIN:
                obstore.put(self._store, key, data, use_multipart=False)
            else:
                part = max(_PART_BYTES_MIN, (size or 0) // _PARTS_MAX + 1)
                obstore.put(
                    self._store,
                    key,
                    _chunks(data),
                    chunk_size=part,
                    max_concurrency=_PARTS_AT_ONCE,
                )

    def size(self, key: str) -> int | None:
        """Return the size in bytes; None if there is no object."""
        try:
            with self._refusals("look at", check_key(key)):
                return obstore.head(self._store, key)["size"]
        except NotFound:
            return None

    def exists(self, key: str) -> bool:
        """Whether there is an object under the key."""
        return self.size(key) is not None

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[StoredEntry]:
        """Yield every object below a prefix of whole segments, in no order.

        With `after`, only greater keys; a store that sorts skips the others. Files whose names
        cannot be keys are omitted: `nameless` lists them.
        """
        if prefix:
            check_key(prefix)
        if self._folder is not None:
            yield from self._list_folder(self._folder, prefix, after)
            return
        with self._refusals("list", prefix):
            for page in obstore.list(
                self._store, prefix or None, offset=after or None, chunk_size=1000
            ):
                for meta in page:
                    modified = from_datetime(meta["last_modified"])
                    yield StoredEntry(meta["path"], meta["size"], modified, meta["e_tag"] or "")

    def folders(self, prefix: str) -> Sequence[str]:
        """Yield the segments after the prefix in keys that continue below them."""
        check_key(prefix)
        with self._refusals("list", prefix):
            if self._folder is not None:
                return local.folders(self._folder, prefix)
            prefixes = obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
            return [path.rstrip("/").rpartition("/")[2] for path in prefixes]

    def nameless(self, prefix: str = "") -> Iterator[Nameless]:
        """Yield the files below the prefix that listings omit; only local folders can have any."""
        if self._folder is None:
            return
        with self._refusals("list", prefix):
            for path, _ in local.files(self._folder, prefix):
                if reason := refusal(path):
                    yield Nameless(self._folder / path, reason)

    def _list_folder(self, folder: Path, prefix: str, after: str) -> Iterator[StoredEntry]:
        with self._refusals("list", prefix):
            for path, status in local.files(folder, prefix):
                if path > after and refusal(path) is None:
                    yield StoredEntry(path, status.st_size, status.st_mtime_ns // 1000)

    def delete(self, key: str) -> None:
        """Remove an object, if there is one."""
        try:
            with self._refusals("delete", check_key(key)):
                obstore.delete(self._store, key)
        except NotFound:
            return

    def probe(self) -> None:
        """Return if the store answers; otherwise raise the error of any other call."""
        self.size(_NOBODYS)

    def check(self) -> None:
        """Prove that the store is writable and that only the first of two writers creates a key.

        Some S3-compatible stores accept the condition and ignore it. Then both writers would win.
        """
        key = f"penstock-check-{uuid4()}"
        self.put(key, b"first", if_absent=True)
        try:
            self.put(key, b"second", if_absent=True)
        except Conflict:
            return
        finally:
            self.delete(key)
        raise Invalid(
            f"the object store {self.url} overwrites a key that must be created only once; "
            "use a store that honours If-None-Match on writes"
        )

    def _stream(self, key: str, chunks: Iterable[Any]) -> Iterator[bytes]:
        with self._refusals("read", key):
            for chunk in chunks:
                yield memoryview(chunk).tobytes()

    def _check_mark(self) -> None:
        if self._mark is not None and not self._mark.exists():
            raise _unmarked(self._mark)

    @contextmanager
    def _refusals(self, verb: str, key: str) -> Iterator[None]:
        """Translate errors of stores into errors of Penstock."""
        where = f"{key} in {self.url}" if key else self.url
        self._check_mark()
        try:
            try:
                yield
            finally:
                # A missing object, or a write, may be due to a disk that was lost meanwhile.
                self._check_mark()
        except PenstockError:
            raise
        except (AlreadyExistsError, PreconditionError, FileExistsError) as error:
            raise Conflict(f"{where} exists already, and is not overwritten") from error
        except FileNotFoundError as error:
            if "NoSuchUpload" in str(error):
                # The answer to the completion was lost: the upload is done, or must be repeated.
                raise Away(f"cannot {verb} {where}: the upload is over; try again") from error
            raise NotFound(f"there is no object {where}") from error
        except (NotADirectoryError, IsADirectoryError) as error:
            raise Conflict(
                f"cannot {verb} {where}: a part of the key is an object, or the key is a folder"
            ) from error
        except InvalidPathError as error:
            raise Invalid(
                f"cannot {verb} {where}: {_whole_words(error)}; rename or delete that object"
            ) from error
        except ValueError as error:
            raise Invalid(f"cannot {verb} {where}: {_words(error)}") from error
        except (BaseError, OSError) as error:
            # obstore has no class for a key below a key that is a file.
            if f"(os error {errno.ENOTDIR})" in str(error):
                raise NotFound(f"there is no object {where}") from error
            if _is_full(error):
                raise Unavailable(
                    f"cannot {verb} {where}: the disk is full; free some space, and try again"
                ) from error
            kind = Away if _is_away(error) else Unavailable
            raise kind(
                f"cannot {verb} {where}: {_words(error)}; try again when the store answers"
            ) from error


def _is_full(error: Exception) -> bool:
    """Whether a disk or a quota is full; obstore has no class for that."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return any(f"(os error {number})" in str(error) for number in _FULL)


def _open_remote(url: str) -> "ObjectStore":
    if url.startswith("memory:"):
        return MemoryStore()
    options: ClientConfig = {
        "connect_timeout": timedelta(seconds=10),
        # The read timeout ends a stalled transfer; a long transfer has no limit.
        "read_timeout": timedelta(seconds=60),
        "timeout": timedelta(hours=12),
    }
    endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
    if url.startswith("s3:") and endpoint.startswith("http://"):
        options["allow_http"] = True
    return from_url(
        url,
        client_options=options,
        retry_config={
            "max_retries": _RETRIES,
            "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
        },
    )


def mark_store(url: str) -> None:
    """Create a local folder if missing, and mark it as an object store."""
    folder = local_folder(url)
    if folder is None:
        return
    try:
        local.mark(folder.absolute())
    except OSError as error:
        # A file in place of the folder is not a disk error.
        is_wrong = isinstance(error, FileExistsError | NotADirectoryError)
        raise (Invalid if is_wrong else Unavailable)(
            f"the object store {url} cannot be begun: {_words(error)}"
        ) from error


def _unmarked(mark: Path) -> Away:
    return Away(
        f"the object store is not at {mark.parent}: the file {mark.name!r} is missing there; mount "
        f"its disk, or put it back. To go on with the folder as it is: touch '{mark}'"
    )


def _size_of(path: Path) -> int:
    with _source(path):
        return path.stat().st_size


def _chunks(data: Data) -> Iterator[bytes]:
    if isinstance(data, bytes):
        yield data
    elif isinstance(data, Path):
        yield from read_chunks(data)
    else:
        yield from data


def read_chunks(path: Path) -> Iterator[bytes]:
    """Read a local file in chunks; an error names the file, not its key."""
    with _source(path), path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


@contextmanager
def _source(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"the file {path} to be stored does not exist") from error
    except OSError as error:
        raise Unavailable(f"the file {path} to be stored cannot be read: {error}") from error


def _whole(key: str, chunks: Iterable[bytes]) -> bytes:
    """Return all data in one piece: no store creates multipart objects conditionally."""
    whole = bytearray()
    for chunk in chunks:
        whole += chunk
        if len(whole) > _IF_ABSENT_BYTES_MAX:
            raise TooLarge(
                f"{key} is over {_IF_ABSENT_BYTES_MAX} bytes, too large to be created only if it "
                "is absent; store it under a key of its own and name that in a small object"
            )
    return bytes(whole)


def _whole_words(error: Exception) -> str:
    return repr(str(error).partition("\n\nDebug source")[0])[1:-1]


def _is_away(error: Exception) -> bool:
    """Whether the store did not answer or is overloaded; a full store needs a person."""
    if isinstance(error, OSError):
        return error.errno in _GONE or isinstance(error, TimeoutError)
    # An unreachable server, and a 5xx answer to the last try, share this class.
    return isinstance(error, GenericError)


def _words(error: Exception) -> str:
    """Return the first line of an error: obstore adds a dump of its structures below."""
    return str(error).split("\n", 1)[0]
