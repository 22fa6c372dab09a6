"""`penstock ingest submit`, which uploads local payloads."""

import hashlib
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, NamedTuple, get_args

import msgspec
from cyclopts import App, Parameter
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from penstock.cli import exit_codes
from penstock.cli.ingest.watch import NullView, follow, follow_on
from penstock.cli.options import OPTIONS, Options, option
from penstock.cli.output import err, note, write_json, write_line
from penstock.client import Client
from penstock.errors import Conflict, Invalid, Unavailable
from penstock.ingest.intake.checkm import ManifestKind, parse
from penstock.ingest.intake.digests import new_hash
from penstock.ingest.intake.digests import read_digest as checked_digest
from penstock.ingest.intake.validation import name_fault
from penstock.schema.ingest import DigestAlgorithm, ErcPart, PayloadType, ShownBatch, SubmissionMode

_CHUNK_BYTES = 1 << 20
_END = bytes(2 * tarfile.BLOCKSIZE)


class PackedFile(NamedTuple):
    """A file of a folder, with its name there, size and time before packing."""

    name: str
    path: Path
    size: int
    mtime: int


class Folder:
    """The files below a folder, sorted by name; empty folders are omitted."""

    def __init__(self, files: list[PackedFile]) -> None:
        self.files = files

    @classmethod
    def of(cls, path: Path) -> "Folder":
        """Find every file, and refuse what cannot be packed before reading any."""
        files = sorted(_scan(path, path))
        if not files:
            raise Invalid(f"folder {path} has no files; name another folder")
        return cls(files)

    @property
    def size(self) -> int:
        """The size of the tar in bytes."""
        return len(_END) + sum(len(_header(each)) + _padded(each.size) for each in self.files)

    def chunks(self) -> Iterator[bytes]:
        """Yield the tar; unchanged files always give the same bytes."""
        for each in self.files:
            yield _header(each)
            with _open(each) as stream:
                left = each.size
                while left and (chunk := stream.read(min(left, _CHUNK_BYTES))):
                    left -= len(chunk)
                    yield chunk
                if left or stream.read(1):
                    raise _changed(each)
            yield bytes(_padded(each.size) - each.size)
        yield _END


def _scan(folder: Path, top: Path) -> Iterator[PackedFile]:
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        raise Invalid(f"{folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        path = Path(entry.path)
        kind = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(kind.st_mode):
            yield from _scan(path, top)
        elif stat.S_ISREG(kind.st_mode):
            name = path.relative_to(top).as_posix()
            yield PackedFile(_check_name(name, path), path, kind.st_size, int(kind.st_mtime))
        else:
            noun = "a link" if stat.S_ISLNK(kind.st_mode) else "not a file"
            raise Invalid(
                f"{path} is {noun}, and only files and folders can be packed; "
                "remove it, or replace it by a copy of the file"
            )


def _check_name(name: str, path: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Invalid(f"the name of {os.fsencode(path)!r} is not UTF-8; rename it") from None
    if reason := name_fault(name):
        raise Invalid(f"the name {name!r} in {path.parent} {reason}; rename it")
    return name


def _header(file: PackedFile) -> bytes:
    info = tarfile.TarInfo(file.name)
    info.size = file.size
    info.mtime = file.mtime
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8")


def _padded(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _open(file: PackedFile) -> IO[bytes]:
    try:
        # A link may have replaced the file since the scan.
        return os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    except OSError as error:
        raise Conflict(f"{file.path} can no longer be read: {error.strerror}") from None


def _changed(file: PackedFile) -> Conflict:
    return Conflict(
        f"{file.path} changed while it was packed; wait until it is complete, and try again"
    )


app = App(
    name="submit",
    help_epilogue="""Examples:
  penstock ingest submit maps https://example.org/map.tif --what "Old town"
  penstock ingest submit maps batch.checkm --wait
  penstock ingest submit maps ./folder --local-id loc1
  penstock ingest submit maps scans.zip --key 2026-11-15
  penstock ingest submit maps ./more --local-id loc1 --mode update --clear when

The payload is a URL that the server can read (http, https, s3 or file), or a
local file, zip, tar, .checkm manifest or folder, which is uploaded. A folder is
packed as a tar. A manifest is checked before the upload. An update keeps the
description of the object; --clear erases a part of it. A mrt-erc.txt in a
container or manifest supplies what the options do not. Two submissions to a
collection with the same --key are one batch.""",
)

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|payload:")
_MANIFEST = ".checkm"
Digest = tuple[DigestAlgorithm, str]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DepositOptions:
    """The description of a payload."""

    type: Annotated[
        PayloadType | None, Parameter(help="the type of the payload; default: by its name")
    ] = None
    mode: Annotated[
        SubmissionMode, Parameter(help="update keeps the files of the stored object")
    ] = SubmissionMode.ADD
    name: Annotated[str | None, Parameter(help="the name of the payload")] = None
    local_id: Annotated[str | None, Parameter(help="the depositor's id of the object")] = None
    primary_id: Annotated[str | None, Parameter(help="the ARK of the object")] = None
    who: Annotated[str | None, Parameter(help="its creator")] = None
    what: Annotated[str | None, Parameter(help="its title")] = None
    when: Annotated[str | None, Parameter(help="its date")] = None
    where: Annotated[str | None, Parameter(help="its location elsewhere")] = None
    clear: Annotated[
        tuple[ErcPart, ...],
        Parameter(negative="", help="erase this part of the description; repeatable"),
    ] = ()
    submitter: Annotated[str | None, Parameter(help="the submitter; default: the key's name")] = (
        None
    )
    key: Annotated[
        str | None, Parameter(help="a key that makes repeated submissions one batch")
    ] = None


DEPOSIT = DepositOptions()


@app.default
def submit(
    collection: Annotated[str, Parameter(help="the collection")],
    payload: Annotated[str, Parameter(help="a URL, a file or a folder")],
    /,
    *,
    deposit: DepositOptions = DEPOSIT,
    digest: Annotated[
        str | None, Parameter(help="the expected digest of the payload, like sha-256:HEX")
    ] = None,
    wait: Annotated[bool, option("follow the batch to its end; exit code 1 if it fails")] = False,
    options: Options = OPTIONS,
) -> int:
    """Submit a payload to a collection as a batch, and print the id of the batch."""
    expected = None if digest is None else read_digest(digest)
    with options.connect() as client:
        if _URL.match(payload):
            remote = RemotePayload(payload, deposit.type, expected, None)
        else:
            local = LocalPayload.find(Path(payload), deposit)
            client.collection(collection)
            remote = _upload(client, local, expected)
        batch = _submit(client, collection, remote, deposit)
        if not options.json:
            _report(batch, remote, wait=wait)
        ended = _follow(client, batch, as_json=options.json) if wait else batch
    if options.json:
        write_json(ended or batch)
    is_failed = wait and (ended is None or ended.status != "completed")
    return exit_codes.FAILED if is_failed else exit_codes.DONE


class RemotePayload(NamedTuple):
    """A payload at a URL that the server can read."""

    url: str
    type: PayloadType | None
    digest: Digest | None
    size: int | None


class LocalPayload(NamedTuple):
    """A payload on this machine."""

    name: str
    type: PayloadType | None
    size: int
    chunks: Callable[[], Iterator[bytes]]

    @classmethod
    def find(cls, path: Path, deposit: DepositOptions) -> "LocalPayload":
        """Find the payload at a path; refuse a wrong manifest."""
        if path.is_dir():
            folder = Folder.of(path)
            name = deposit.name or f"{path.resolve().name or 'folder'}.tar"
            return cls(name, deposit.type or PayloadType.CONTAINER, folder.size, folder.chunks)
        if not path.is_file():
            raise Invalid(f"{str(path)!r} is neither a file, a folder nor a URL")
        name = deposit.name or path.name
        if deposit.type is None and path.suffix.lower() != _MANIFEST:
            return cls(name, None, path.stat().st_size, lambda: _read(path))
        if deposit.type in (None, "manifest", *ManifestKind):
            content = b"".join(_read(path))
            _check_manifest(path, content, deposit.type)
            kind = deposit.type or PayloadType.MANIFEST
            return cls(name, kind, len(content), lambda: iter((content,)))
        return cls(name, deposit.type, path.stat().st_size, lambda: _read(path))


def _check_manifest(path: Path, content: bytes, type: PayloadType | None) -> None:
    expect = None if type in (None, "manifest") else ManifestKind(type)
    try:
        parse(content, expect=expect)
    except Invalid as error:
        raise Invalid(f"{path}: {error}") from None


def _read(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}; name another file") from None


def read_digest(text: str) -> Digest:
    """Read the algorithm and the value of a digest."""
    algorithm, _, value = text.partition(":")
    try:
        name, digest = checked_digest(algorithm.strip(), value.strip())
        result: Digest = msgspec.convert((name, digest), Digest)
    except (Invalid, msgspec.ValidationError) as error:
        algorithms = ", ".join(get_args(DigestAlgorithm))
        raise Invalid(
            f"{text[:200]!r} is no digest ({error}); write it like sha-256:HEX, "
            f"with one of {algorithms}"
        ) from None
    return result


def _upload(client: Client, local: LocalPayload, expected: Digest | None) -> RemotePayload:
    """Upload a payload, and check the digests before and after."""
    if expected is not None:
        _check_digest(local, expected)
    hashed = hashlib.sha256()
    with _progress(local) as tick:
        sent = _read_counted(local, tick, hashed.update)
        upload = client.upload_payload(local.name, sent, size=local.size)
    digest = hashed.hexdigest()
    if upload.digests.get("sha-256") != digest:
        raise Unavailable(f"{local.name} was damaged during the upload; submit it again")
    return RemotePayload(upload.url, local.type, expected or ("sha-256", digest), local.size)


def _check_digest(local: LocalPayload, expected: Digest) -> None:
    algorithm, wanted = expected
    hashed = new_hash(algorithm)
    for chunk in local.chunks():
        hashed.update(chunk)
    if hashed.hexdigest() != wanted:
        raise Invalid(
            f"{local.name} has the {algorithm} digest {hashed.hexdigest()}, not {wanted}; "
            "nothing was uploaded"
        )


def _read_counted(
    local: LocalPayload, tick: Callable[[int], None], update_hash: Callable[[bytes], None]
) -> Iterator[bytes]:
    count = 0
    for chunk in local.chunks():
        update_hash(chunk)
        count += len(chunk)
        if count > local.size:
            break
        yield chunk
        tick(len(chunk))
    if count != local.size:
        raise Conflict(f"{local.name} changed while it was uploaded; submit it again")


@contextmanager
def _progress(local: LocalPayload) -> Iterator[Callable[[int], None]]:
    """Draw a progress bar on stderr if that is a terminal."""
    console = err()
    progress = Progress(
        TextColumn("uploading"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        task = progress.add_task("", total=local.size)
        yield lambda count: progress.advance(task, count)


def _submit(
    client: Client, collection: str, remote: RemotePayload, deposit: DepositOptions
) -> ShownBatch:
    return client.submit_batch(
        collection,
        remote.url,
        type=remote.type,
        mode=deposit.mode,
        name=deposit.name,
        digest=remote.digest,
        size=remote.size,
        primary_id=deposit.primary_id,
        local_id=deposit.local_id,
        who=deposit.who,
        what=deposit.what,
        when=deposit.when,
        where=deposit.where,
        clear=deposit.clear,
        submitter=deposit.submitter,
        key=deposit.key,
    )


def _report(batch: ShownBatch, remote: RemotePayload, *, wait: bool) -> None:
    write_line(batch.id)
    if batch.payload_url != remote.url:
        note(f"batch {batch.id} was submitted with this key before; it stays as it is")
    if not wait:
        note(f"batch {batch.id} of {batch.collection} is {batch.status}; follow it with:")
        note(f"penstock ingest watch {batch.id}")


def _follow(client: Client, batch: ShownBatch, *, as_json: bool) -> ShownBatch | None:
    if as_json:
        return follow(client, batch.id, NullView(), 1.0)
    return follow_on(err(), client, batch.id, 1.0)
