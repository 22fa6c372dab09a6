"""A file that is still coming in: kept beside the folder it will be in, and resumed after a crash.

A part is named by what is wanted. Beside it stands a note with the mark of the file it is a
part of and with how many of its bytes are surely on disk: after a power loss a file may have
its length without its content.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from penstock.ingest.intake.digests import new_hash
from penstock.ingest.intake.sources import Taken

READ_BYTES = 1 << 20
SYNC_BYTES = 64 << 20


class Note(msgspec.Struct, frozen=True):
    """What is known of a part: the mark of its file, and the bytes that are on disk."""

    mark: str | None
    size: int


# Made here: two threads that decode a class for the first time would crash msgspec.
_decode_note = msgspec.json.Decoder(Note).decode


class Digests:
    """The digests of one file, all computed while its bytes pass once."""

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


class Part:
    """The bytes that have come so far of one file; only one process writes them at a time."""

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
        """Let go of the part; what is on disk stays for the next try."""
        # On a full disk the last bytes cannot be flushed; they were not promised to anybody.
        with suppress(OSError):
            self._file.close()

    def recall(self, stop: Callable[[], bool]) -> None:
        """Take up what an earlier try left, as far as it is surely on disk, and hash it."""
        note = self._read_note()
        if note is None or note.mark is None or os.fstat(self._file.fileno()).st_size < note.size:
            self.begin(None)
            return
        self._digests.clear()
        self._file.seek(0)
        left = note.size
        while left and not stop():
            data = self._file.read(min(left, READ_BYTES))
            if not data:
                self.begin(None)
                return
            self._digests.update(data)
            left -= len(data)
        self._file.truncate(note.size)
        self._file.seek(note.size)
        self.mark, self.size, self._synced = note.mark, note.size, note.size
        self.resumed = note.size > 0

    def begin(self, mark: str | None) -> None:
        """Throw away what has come, and wait for the first byte of the file with this mark."""
        self._note_path.unlink(missing_ok=True)
        self._file.seek(0)
        self._file.truncate()
        self._digests.clear()
        self.mark, self.size, self._synced = mark, 0, 0
        self.resumed = False

    def write(self, data: bytes) -> None:
        """Add the next bytes."""
        self._file.write(data)
        self._digests.update(data)
        self.size += len(data)
        if self.size - self._synced >= SYNC_BYTES:
            self.keep()

    def keep(self) -> None:
        """Bring what has come to the disk, so that the next try begins there."""
        if self.mark is None or self.size == self._synced:
            return
        self._sync()
        draft = self._note_path.with_suffix(".draft")
        with _shared():
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(Note(self.mark, self.size)))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._note_path)
        self._synced = self.size

    def finish(self, target: Path, above: Path) -> None:
        """Give the whole file its name, on disk before anybody sees it."""
        self._sync()
        make_folder(target.parent, above)
        with _shared():
            os.replace(self._path, target)
        sync_folder(target.parent)
        self._note_path.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove every trace of the part."""
        for path in (self._note_path, self._path):
            path.unlink(missing_ok=True)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _open(self) -> BinaryIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _shared():
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        file = os.fdopen(handle, "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held the lock before may have renamed the file away.
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(self._path)):
                raise FileNotFoundError
        except (BlockingIOError, FileNotFoundError):
            file.close()
            raise Taken("another process is fetching it just now") from None
        return file

    def _read_note(self) -> Note | None:
        with suppress(OSError, msgspec.DecodeError):
            return _decode_note(self._note_path.read_bytes())
        return None


@contextmanager
def _shared() -> Iterator[None]:
    """Notice that a process which has lost its lock on the job has cleared the folder."""
    try:
        yield
    except FileNotFoundError:
        raise Taken("another process has cleared the folder") from None


def digests_of(path: Path, algorithms: frozenset[str], stop: Callable[[], bool]) -> dict[str, str]:
    """The digests of a file that is already there."""
    digests = Digests(algorithms)
    with path.open("rb") as file:
        while (data := file.read(READ_BYTES)) and not stop():
            digests.update(data)
    return digests.values()


def make_folder(folder: Path, above: Path) -> None:
    """Make a folder and those between it and `above`, each on disk before it is used."""
    if folder == above or folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        return
    make_folder(folder.parent, above)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
