"""Safe unpacking of deposited zip and tar archives.

The content determines the format. Every name, kind, size and count is checked while the bytes are
decompressed; the headers are not trusted. The target folder appears when all files are on disk.
"""

import bz2
import errno
import fcntl
import gzip
import io
import lzma
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import IO, cast

import bagit
from msgspec import Struct

from penstock.errors import Invalid, Unavailable
from penstock.ingest.intake.partial_files import sync_folder
from penstock.ingest.intake.validation import FAULTS_MAX, name_fault

COPY_BYTES = 1 << 20
HEADER_BYTES_MAX = 4 << 20
BLOCK_BYTES = 512

_ENTRY_BYTES = 46
_NAME_BYTES = 1024
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF_8 = 0x800
_UNICODE_PATH = 0x7075

Check = Callable[[int], None]
# Below this size a high ratio is harmless, and small files of zeros are common.
RATIO_FREE_BYTES = 16 << 20
# The headers and padding of a tar, in addition to its files.
HEADERS_FREE_BYTES = 1 << 20
HEADER_FREE_BYTES = 4096
_CORRUPT = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    ValueError,
    OverflowError,
    struct.error,
)


class MemberKind(Enum):
    """The kind of an archive member."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    SPECIAL = auto()
    ENCRYPTED = auto()


class ArchiveMember(Struct, frozen=True):
    """One entry of an archive; it can be opened only before the next one is read."""

    name: str
    kind: MemberKind
    size: int
    open: Callable[[], IO[bytes]]


@contextmanager
def members_of(archive: Path, files_max: int, check: Check) -> Iterator[Iterator[ArchiveMember]]:
    """Open an archive and yield its members; `check` gets each total of decompressed bytes."""
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


def _zip_members(archive: zipfile.ZipFile) -> Iterator[ArchiveMember]:
    for info in archive.infolist():
        name = _zip_name(info)
        yield ArchiveMember(name, _zip_kind(info, name), info.file_size, _zip_opener(archive, info))


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Return the intended name: many programs write UTF-8 without the flag for it."""
    # `filename` ends at a NUL, `orig_filename` does not.
    name = info.orig_filename
    if info.flag_bits & _UTF_8:
        return name
    raw = name.encode("cp437")
    try:
        return (_unicode_path(info.extra, raw) or raw).decode()
    except UnicodeDecodeError:
        return name


def _unicode_path(extra: bytes, raw: bytes) -> bytes | None:
    """Return the name in Info-ZIP's extra field, if its checksum matches this name."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + length], extra[4 + length :]
        if kind == _UNICODE_PATH and field[:5] == struct.pack("<BL", 1, zlib.crc32(raw)):
            return field[5:]
    return None


def _zip_opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(info)


def _zip_kind(info: zipfile.ZipInfo, name: str) -> MemberKind:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return MemberKind.LINK
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return MemberKind.SPECIAL
    if info.flag_bits & _ENCRYPTED:
        return MemberKind.ENCRYPTED
    return MemberKind.FOLDER if name.endswith("/") else MemberKind.FILE


def _check_list(archive: Path, file: IO[bytes], files_max: int) -> None:
    """Raise Invalid for a list of members that is too long for memory."""
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
    """A stream that is read forwards only, with counted bytes and limited reads."""

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


def _tar_members(archive: Path, stream: _Forward) -> Iterator[ArchiveMember]:
    try:
        opened = tarfile.TarFile(fileobj=cast(IO[bytes], stream), mode="r")
    except tarfile.ReadError as error:
        if stream.tell() > BLOCK_BYTES:
            raise
        raise Invalid(f"the archive {archive.name} is no zip and no tar: {error}") from None
    with opened:
        while (info := opened.next()) is not None:
            yield ArchiveMember(info.name, _tar_kind(info), info.size, _tar_opener(opened, info))
        if not stream.ends:
            raise tarfile.ReadError("it is cut off or damaged: its end mark is missing")
        stream.drain()


def _tar_kind(info: tarfile.TarInfo) -> MemberKind:
    if info.issym() or info.islnk():
        return MemberKind.LINK
    if info.isdir():
        return MemberKind.FOLDER
    return MemberKind.FILE if info.isreg() else MemberKind.SPECIAL


def _tar_opener(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        content = archive.extractfile(info)
        if content is None:
            raise tarfile.ReadError(f"{info.name} has no content")
        return content

    return opened


_KINDS = {
    MemberKind.LINK: "is a link; only files and folders are taken",
    MemberKind.SPECIAL: "is a device or the like; only files and folders are taken",
    MemberKind.ENCRYPTED: "is encrypted; send it without a password",
}


class ArchiveLimits(Struct, frozen=True):
    """Limits for unpacking; the ratio is of unpacked to packed bytes."""

    files_max: int = 100_000
    bytes_max: int = 100 << 30
    ratio_max: int = 1000


def unpack(archive: Path, target: Path, limits: ArchiveLimits) -> list[Path]:
    """Unpack the archive into `target`; return its files, relative and sorted.

    A target with files was completed before, and stays as it is.
    """
    if _has_entries(target):
        return _files(target)
    with _disk_errors(archive, target):
        _remove_leftovers(target)
        with _draft(target) as draft:
            with _corruption(archive):
                _Unpacking(archive, draft, limits).run()
            # One sync of the file system is far cheaper than one fsync for each of many small
            # files.
            os.sync()
            _rename(draft, target)
    return _files(target)


def discard(target: Path) -> None:
    """Remove an unpacked folder; rename it first, so that a crash leaves no partial folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".new"))
    with suppress(FileNotFoundError):
        os.rename(target, place / "files")
    shutil.rmtree(place, ignore_errors=True)


def verify_bag(folder: Path) -> bool:
    """Whether the folder is or contains BagIt bags; raise Invalid for an invalid bag.

    Other files beside a bag are ignored: some programs add a folder of their own to archives.
    """
    bags = _bags_in(folder)
    for bag in bags:
        try:
            bagit.Bag(str(bag)).validate()
        except (bagit.BagError, OSError, LookupError, ValueError) as error:
            raise Invalid(
                f"the bag is not valid: {_faults(error)}; correct it where it is and resume the "
                "job, or submit it again"
            ) from None
    return bool(bags)


def _faults(error: Exception) -> str:
    """Describe the faults of a bag: the first ones, and the number of the others."""
    if not isinstance(error, bagit.BagValidationError) or not error.details:
        return str(error)
    faults = sorted(map(str, error.details))
    more = len(faults) - FAULTS_MAX
    if more > 0:
        faults[FAULTS_MAX:] = [f"and {more:,} faults more"]
    return f"{error.message}: {'; '.join(faults)}"


class _Unpacking:
    """The unpacking of one archive: its names and bytes so far."""

    def __init__(self, archive: Path, folder: Path, limits: ArchiveLimits) -> None:
        self._archive = archive
        self._folder = folder
        self._limits = limits
        self._packed_bytes = max(archive.stat().st_size, 1)
        self._bytes = 0
        self._count = 0
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def run(self) -> None:
        with members_of(self._archive, self._limits.files_max, self._check_stream) as members:
            for member in members:
                self._take(member)
        if not self._files:
            raise Invalid(f"the archive {self._archive.name} has no files in it")

    def _take(self, member: ArchiveMember) -> None:
        self._count += 1
        if self._count > self._limits.files_max:
            raise self._refusal(member, f"is more than the {self._limits.files_max:,}th member")
        if member.kind in _KINDS:
            raise self._refusal(member, _KINDS[member.kind])
        name = member.name
        while name.startswith("./"):
            name = name[2:]
        if member.kind is MemberKind.FOLDER:
            name = name.removesuffix("/")
            if name in ("", "."):
                return
        reason = name_fault(name, is_folder=member.kind is MemberKind.FOLDER)
        reason = reason or self._collision(name, member.kind)
        if reason is not None:
            raise self._refusal(member, reason)
        path = self._folder / name
        if member.kind is MemberKind.FOLDER:
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            return
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with member.open() as content:
            self._write(member, content, path)

    def _collision(self, name: str, kind: MemberKind) -> str | None:
        above = [name[:index] for index, letter in enumerate(name) if letter == "/"]
        if name in self._files:
            return "is there twice"
        if self._files.intersection(above) or (kind is MemberKind.FILE and name in self._folders):
            return "is a file and a folder at once"
        self._folders.update(above)
        (self._files if kind is MemberKind.FILE else self._folders).add(name)
        return None

    def _write(self, member: ArchiveMember, content: IO[bytes], path: Path) -> None:
        written = 0
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with os.fdopen(file, "wb") as target:
            # The umask may have taken bits away.
            os.fchmod(target.fileno(), 0o644)
            while data := content.read(COPY_BYTES):
                written += len(data)
                self._check_bytes(self._bytes + written, member)
                target.write(data)
        if written != member.size:
            raise self._refusal(member, f"has {written:,} bytes, but declares {member.size:,}")
        self._bytes += written

    def _check_stream(self, position: int) -> None:
        """Check the bytes that are decompressed between the files too: headers and padding."""
        self._check_bytes(position - HEADERS_FREE_BYTES - self._count * HEADER_FREE_BYTES)

    def _check_bytes(self, unpacked: int, member: ArchiveMember | None = None) -> None:
        subject = "" if member is None else f" at {member.name!r}"
        if unpacked > self._limits.bytes_max:
            reason = f"unpacks to more than {self._limits.bytes_max:,} bytes"
        elif unpacked > max(self._limits.ratio_max * self._packed_bytes, RATIO_FREE_BYTES):
            reason = f"unpacks to more than {self._limits.ratio_max:,} times its size"
        else:
            return
        raise Invalid(f"the archive {self._archive.name} {reason}{subject}; send it in parts")

    def _refusal(self, member: ArchiveMember, reason: str) -> Invalid:
        return Invalid(
            f"the archive {self._archive.name} cannot be unpacked: {member.name!r} {reason}"
        )


@contextmanager
def _corruption(archive: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Bad data raises an OSError without errno, or an invalid seek. Errors of the disk have
        # another errno.
        if error.errno not in (None, errno.EINVAL):
            raise
        raise _corrupt(archive, error) from None
    except NotImplementedError as error:
        raise Invalid(
            f"the archive {archive.name} cannot be unpacked: {error}; pack it in another way "
            "(Windows packs large files by Deflate64, which others do not read), or as a tar"
        ) from None
    except _CORRUPT as error:
        raise _corrupt(archive, error) from None


def _corrupt(archive: Path, error: Exception) -> Invalid:
    reason = str(error) or type(error).__name__
    return Invalid(f"the archive {archive.name} cannot be read: {reason}; send it again")


@contextmanager
def _disk_errors(archive: Path, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(
                f"no space left in {target.parent} to unpack {archive.name}; "
                "free some, and resume the job"
            ) from error
        raise Unavailable(
            f"{archive.name} could not be unpacked in {target.parent}: "
            f"{error.strerror or error}; correct that, and resume the job"
        ) from error


def _rename(draft: Path, target: Path) -> None:
    try:
        os.rename(draft, target)
    except OSError as error:
        # Another process unpacked the same archive first; its files are equal.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    sync_folder(target.parent)


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """Make a locked folder to unpack into; the lock protects it from processes that clean up."""
    lock = None
    while lock is None:
        place = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".new"))
        lock = _lock(place)
    try:
        draft = place / "files"
        draft.mkdir(mode=0o755)
        yield draft
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(lock)


def _remove_leftovers(target: Path) -> None:
    """Remove the drafts of killed processes; a draft in use is locked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for entry in target.parent.iterdir():
        if entry.name.startswith(f".{target.name}.") and entry.name.endswith(".new"):
            lock = _lock(entry)
            if lock is not None:
                shutil.rmtree(entry, ignore_errors=True)
                os.close(lock)


def _lock(place: Path) -> int | None:
    """Lock a draft; None if another process has locked or removed it."""
    path = place / "lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(handle)
    return None


def _has_entries(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _files(folder: Path) -> list[Path]:
    files = []
    for root, _, names in os.walk(folder):
        files += [Path(root, name).relative_to(folder) for name in names]
    return sorted(files)


def _bags_in(folder: Path) -> list[Path]:
    """Return the folder if it is a bag, or else the bags right below it."""
    places = [folder]
    if not (folder / "bagit.txt").is_file():
        places = sorted(entry for entry in folder.iterdir() if stat.S_ISDIR(entry.lstat().st_mode))
    return [place for place in places if (place / "bagit.txt").is_file()]
