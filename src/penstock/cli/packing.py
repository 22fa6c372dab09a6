"""A folder as one uncompressed tar, made while it is read: nothing is written to disk."""

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from penstock.errors import Conflict, Invalid
from penstock.ingest.receiving.names import safe_name

_CHUNK_BYTES = 1 << 20
_END = bytes(2 * tarfile.BLOCKSIZE)


class Packed(NamedTuple):
    """A file of the folder: its name there, and what it had when it was found."""

    name: str
    path: Path
    size: int
    mtime: int


class Folder:
    """The files below a folder, in the order of their names. Empty folders are left out."""

    def __init__(self, files: list[Packed]) -> None:
        self.files = files

    @classmethod
    def of(cls, path: Path) -> "Folder":
        """Find every file; whatever cannot be packed is refused before anything is read."""
        files = sorted(_found(path, path))
        if not files:
            raise Invalid(f"there is no file in {path}; put some in, or name another folder")
        return cls(files)

    @property
    def size(self) -> int:
        """The bytes of the tar."""
        return len(_END) + sum(len(_header(each)) + _padded(each.size) for each in self.files)

    def chunks(self) -> Iterator[bytes]:
        """The tar. The same files, untouched, always make the same bytes."""
        for each in self.files:
            yield _header(each)
            with _opened(each) as stream:
                left = each.size
                while left and (chunk := stream.read(min(left, _CHUNK_BYTES))):
                    left -= len(chunk)
                    yield chunk
                if left or stream.read(1):
                    raise _changed(each)
            yield bytes(_padded(each.size) - each.size)
        yield _END


def _found(folder: Path, top: Path) -> Iterator[Packed]:
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise Invalid(f"{folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        path = Path(entry.path)
        kind = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(kind.st_mode):
            yield from _found(path, top)
        elif stat.S_ISREG(kind.st_mode):
            name = path.relative_to(top).as_posix()
            yield Packed(_checked(name, path), path, kind.st_size, int(kind.st_mtime))
        else:
            what = "a link" if stat.S_ISLNK(kind.st_mode) else "no file"
            raise Invalid(
                f"{path} is {what}, and only files and folders can be packed; "
                "remove it, or put a copy of the file in its place"
            )


def _checked(name: str, path: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Invalid(f"the name of {os.fsencode(path)!r} is not UTF-8; rename it") from None
    if reason := safe_name(name):
        raise Invalid(f"the name {name!r} in {path.parent} {reason}; rename it")
    return name


def _header(file: Packed) -> bytes:
    info = tarfile.TarInfo(file.name)
    info.size = file.size
    info.mtime = file.mtime
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8")


def _padded(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _opened(file: Packed) -> IO[bytes]:
    try:
        # Somebody may have put a link in its place since it was found.
        return os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    except OSError as error:
        raise Conflict(f"{file.path} cannot be read any more: {error.strerror}") from None


def _changed(file: Packed) -> Conflict:
    return Conflict(
        f"{file.path} was written to while it was packed; wait until it is done, and try again"
    )
