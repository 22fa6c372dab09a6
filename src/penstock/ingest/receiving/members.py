"""The members of a zip or tar archive, one after the other, in one shape.

The libraries trust some headers with memory: how long a zip's list of members is, and how long
a tar's extended header is. Both are bounded here before they are read.
"""

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import IO, cast

from msgspec import Struct

from penstock.errors import Invalid

COPY_BYTES = 1 << 20
HEADER_BYTES_MAX = 4 << 20
BLOCK_BYTES = 512

_ENTRY_BYTES = 46
_NAME_BYTES = 1024
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF_8 = 0x800
_UNICODE_PATH = 0x7075


class Kind(Enum):
    """What a member of an archive is."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    SPECIAL = auto()
    ENCRYPTED = auto()


class Member(Struct, frozen=True):
    """One entry of an archive; it must be opened, if at all, before the next is asked for."""

    name: str
    kind: Kind
    size: int
    open: Callable[[], IO[bytes]]


Check = Callable[[int], None]


@contextmanager
def members_of(archive: Path, files_max: int, check: Check) -> Iterator[Iterator[Member]]:
    """The members of an archive; `check` is asked about every total of decompressed bytes."""
    with archive.open("rb") as file:
        start = file.read(BLOCK_BYTES)
        file.seek(0)
        if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            _check_list(archive, file, files_max)
            with zipfile.ZipFile(file) as opened:
                yield _zip_members(opened)
            return
        with _decompressed(file, start) as plain:
            yield _tar_members(archive, _Forward(plain, check))


def _zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    for info in archive.infolist():
        name = _zip_name(info)
        yield Member(name, _zip_kind(info, name), info.file_size, _opener(archive, info))


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name that was meant: many programs write UTF-8 and do not say so."""
    # `filename` ends at a NUL that `orig_filename` still has.
    name = info.orig_filename
    if info.flag_bits & _UTF_8:
        return name
    raw = name.encode("cp437")
    try:
        return (_unicode_path(info.extra, raw) or raw).decode()
    except UnicodeDecodeError:
        return name


def _unicode_path(extra: bytes, raw: bytes) -> bytes | None:
    """The name in the extra field that Info-ZIP adds, if it was written for this very name."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind == _UNICODE_PATH and field[:5] == struct.pack("<BL", 1, zlib.crc32(raw)):
            return field[5:]
    return None


def _opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(info)


def _zip_kind(info: zipfile.ZipInfo, name: str) -> Kind:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return Kind.LINK
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Kind.SPECIAL
    if info.flag_bits & _ENCRYPTED:
        return Kind.ENCRYPTED
    return Kind.FOLDER if name.endswith("/") else Kind.FILE


def _check_list(archive: Path, file: IO[bytes], files_max: int) -> None:
    """Refuse a list of members that is too long to be read into memory."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 22 - 20 - 56))
    tail = file.read()
    file.seek(0)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 22:
        raise zipfile.BadZipFile("its list of members is missing")
    (length,) = struct.unpack_from("<I", tail, end + 12)
    large = tail.rfind(b"PK\x06\x06", 0, end)
    if large >= 0 and len(tail) >= large + 48:
        length = max(length, struct.unpack_from("<Q", tail, large + 40)[0])
    if length > files_max * (_ENTRY_BYTES + _NAME_BYTES):
        raise Invalid(f"the archive {archive.name} lists more than {files_max:,} members")


@contextmanager
def _decompressed(file: IO[bytes], start: bytes) -> Iterator[IO[bytes]]:
    if start.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=file, mode="rb") as opened:
            yield cast(IO[bytes], opened)
    elif start.startswith(b"BZh"):
        with bz2.BZ2File(file) as opened:
            yield cast(IO[bytes], opened)
    elif start.startswith(b"\xfd7zXZ\x00"):
        with lzma.LZMAFile(file) as opened:
            yield cast(IO[bytes], opened)
    else:
        yield file


class _Forward(io.RawIOBase):
    """A stream that is read forwards only, counted, and never in pieces that fill the memory."""

    def __init__(self, source: IO[bytes], check: Check) -> None:
        super().__init__()
        self._source = source
        self._check = check
        self._position = 0
        self.ends = False

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._position:
            raise tarfile.ReadError("a header points back")
        while self._position < offset and self.read(min(offset - self._position, COPY_BYTES)):
            pass
        return self._position

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= HEADER_BYTES_MAX:
            raise tarfile.ReadError(f"a header has {size:,} bytes")
        data = self._source.read(size)
        self._position += len(data)
        self._check(self._position)
        self.ends = len(data) == BLOCK_BYTES and not any(data)
        return data

    def drain(self) -> None:
        """Read to the end, where a compressed stream has its checksum."""
        while self.read(COPY_BYTES):
            pass


def _tar_members(archive: Path, stream: _Forward) -> Iterator[Member]:
    try:
        opened = tarfile.TarFile(fileobj=cast(IO[bytes], stream), mode="r")
    except tarfile.ReadError as error:
        if stream.tell() > BLOCK_BYTES:
            raise
        raise Invalid(f"the archive {archive.name} is no zip and no tar: {error}") from None
    with opened:
        while (info := opened.next()) is not None:
            yield Member(info.name, _tar_kind(info), info.size, _tar_opener(opened, info))
        if not stream.ends:
            raise tarfile.ReadError("it is cut off or damaged: its end mark is missing")
        stream.drain()


def _tar_kind(info: tarfile.TarInfo) -> Kind:
    if info.issym() or info.islnk():
        return Kind.LINK
    if info.isdir():
        return Kind.FOLDER
    return Kind.FILE if info.isreg() else Kind.SPECIAL


def _tar_opener(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        content = archive.extractfile(info)
        if content is None:
            raise tarfile.ReadError(f"{info.name} has no content")
        return content

    return opened
