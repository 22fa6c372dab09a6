"""Partial files: kept beside the folder of complete files, and resumed after a crash.

A partial file is named by the hash of its request. A note beside it has the mark of its source
file, and the number of bytes that are synced to disk: after a power loss a file may have its
length without its content.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from penstock.ingest.intake.digests import new_hash
from penstock.ingest.intake.sources import FetchedElsewhere

READ_BYTES = 1 << 20
SYNC_BYTES = 64 << 20


class PartialFileNote(msgspec.Struct, frozen=True):
    """The state of a partial file: the mark of its source, and the bytes that are synced."""

    mark: str | None
    size: int


# A module global: msgspec can crash if two threads decode a class for the first time at once.
_decode_note = msgspec.json.Decoder(PartialFileNote).decode


class Digests:
    """The digests of one file, computed in one pass over its bytes."""

    def __init__(self, algorithms: frozenset[str]) -> None:
        self._algorithms = sorted(algorithms)
        self.clear()

    def clear(self) -> None:
        self._hashes = {name: new_hash(name) for name in self._algorithms}

    def update(self, data: bytes) -> None:
        for computed in self._hashes.values():
            computed.update(data)

    def values(self) -> dict[str, str]:
        return {name: computed.hexdigest() for name, computed in self._hashes.items()}


class PartialFile:
    """The bytes of one file that have arrived; only one process at a time writes them."""

    def __init__(self, path: Path, digests: Digests) -> None:
        self._path = path
        self._note_path = path.with_suffix(".note")
        self._digests = digests
        self.mark: str | None = None
        self.size = 0
        self.resumed = False
        self._synced = 0
        self._file = self._open()

    def close(self) -> None:
        """Close the partial file; the synced bytes stay for the next try."""
        # On a full disk the last bytes cannot be flushed; the note does not count them.
        with suppress(OSError):
            self._file.close()

    def resume(self, stop: Callable[[], bool]) -> None:
        """Continue an earlier try with its synced bytes, and hash them."""
        note = self._read_note()
        if note is None or note.mark is None or os.fstat(self._file.fileno()).st_size < note.size:
            self.begin(None)
            return
        self._digests.clear()
        self._file.seek(0)
        bytes_left = note.size
        while bytes_left and not stop():
            data = self._file.read(min(bytes_left, READ_BYTES))
            if not data:
                self.begin(None)
                return
            self._digests.update(data)
            bytes_left -= len(data)
        self._file.truncate(note.size)
        self._file.seek(note.size)
        self.mark, self.size, self._synced = note.mark, note.size, note.size
        self.resumed = note.size > 0

    def begin(self, mark: str | None) -> None:
        """Discard all bytes, and begin a source file with this mark."""
        self._note_path.unlink(missing_ok=True)
        self._file.seek(0)
        self._file.truncate()
        self._digests.clear()
        self.mark, self.size, self._synced = mark, 0, 0
        self.resumed = False

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digests.update(data)
        self.size += len(data)
        if self.size - self._synced >= SYNC_BYTES:
            self.sync()

    def sync(self) -> None:
        """Sync the bytes to disk and note their number, so that the next try continues there."""
        if self.mark is None or self.size == self._synced:
            return
        self._sync()
        draft = self._note_path.with_suffix(".draft")
        with _detect_removal():
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(PartialFileNote(self.mark, self.size)))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._note_path)
        self._synced = self.size

    def finish(self, target: Path, above: Path) -> None:
        """Sync the complete file, then give it its final name."""
        self._sync()
        make_folder(target.parent, above)
        with _detect_removal():
            os.replace(self._path, target)
        sync_folder(target.parent)
        self._note_path.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the partial file and its note."""
        for path in (self._note_path, self._path):
            path.unlink(missing_ok=True)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _open(self) -> BinaryIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _detect_removal():
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        file = os.fdopen(handle, "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous owner of the lock may have renamed the file.
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(self._path)):
                raise FileNotFoundError
        except (BlockingIOError, FileNotFoundError):
            file.close()
            raise FetchedElsewhere("another process is fetching it now") from None
        return file

    def _read_note(self) -> PartialFileNote | None:
        with suppress(OSError, msgspec.DecodeError):
            return _decode_note(self._note_path.read_bytes())
        return None


@contextmanager
def _detect_removal() -> Iterator[None]:
    """Raise FetchedElsewhere if a process that lost its job has removed the folder."""
    try:
        yield
    except FileNotFoundError:
        raise FetchedElsewhere("another process has cleared the folder") from None


def digests_of(path: Path, algorithms: frozenset[str], stop: Callable[[], bool]) -> dict[str, str]:
    """Compute the digests of an existing file."""
    digests = Digests(algorithms)
    with path.open("rb") as file:
        while (data := file.read(READ_BYTES)) and not stop():
            digests.update(data)
    return digests.values()


def make_folder(folder: Path, above: Path) -> None:
    """Create a folder below `above`, and sync each new folder to disk before it is used."""
    if folder == above or folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        return
    make_folder(folder.parent, above)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
