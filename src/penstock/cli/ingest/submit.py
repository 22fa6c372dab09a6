"""`penstock ingest submit`: hands a payload in, and uploads it if it is here."""

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
from penstock.cli.ingest.watch import Unseen, follow, follow_on
from penstock.cli.options import REMOTE, Json, RemoteFlags, switch
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
    if reason := name_fault(name):
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


app = App(
    name="submit",
    help_epilogue="""Examples:
  penstock ingest submit maps https://example.org/map.tif --what "Old town"
  penstock ingest submit maps batch.checkm --wait
  penstock ingest submit maps ./folder --local-id loc1
  penstock ingest submit maps scans.zip --key 2026-11-15
  penstock ingest submit maps ./more --local-id loc1 --mode update --clear when

The payload is a URL (http, https, s3 or file, as the server sees it), or
something here, which is uploaded: a file, a zip or tar, a .checkm manifest, a
folder. A folder is packed as a tar on its way. A manifest is checked first.
An update keeps the description of the object; --clear erases a part of it.
A mrt-erc.txt in a container or manifest gives what the flags do not.
Two submissions to a collection with one --key are one batch.""",
)

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|payload:")
_MANIFEST = ".checkm"
Digest = tuple[DigestAlgorithm, str]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DepositFlags:
    """What may be said about a payload."""

    type: Annotated[
        PayloadType | None, Parameter(help="what the payload is; else told by its name")
    ] = None
    mode: Annotated[
        SubmissionMode, Parameter(help="update keeps the files that the object already has")
    ] = SubmissionMode.ADD
    name: Annotated[str | None, Parameter(help="what the payload is called")] = None
    local_id: Annotated[str | None, Parameter(help="the depositor's own name for it")] = None
    primary_id: Annotated[str | None, Parameter(help="the ARK that it has")] = None
    who: Annotated[str | None, Parameter(help="who made it")] = None
    what: Annotated[str | None, Parameter(help="its title")] = None
    when: Annotated[str | None, Parameter(help="its date")] = None
    where: Annotated[str | None, Parameter(help="where else it is")] = None
    clear: Annotated[
        tuple[ErcPart, ...],
        Parameter(
            negative="",
            help="leave this part of the description empty; repeatable. An update else keeps it",
        ),
    ] = ()
    submitter: Annotated[str | None, Parameter(help="who submits it; else the key's name")] = None
    key: Annotated[str | None, Parameter(help="what makes a second submission the same")] = None


DEPOSIT = DepositFlags()


@app.default
def submit(
    collection: Annotated[str, Parameter(help="the collection")],
    payload: Annotated[str, Parameter(help="a URL, a file or a folder")],
    /,
    *,
    deposit: DepositFlags = DEPOSIT,
    digest: Annotated[
        str | None, Parameter(help="of the payload, like sha-256:HEX; it is checked")
    ] = None,
    wait: Annotated[bool, switch("follow the batch to its end; exit code 1 if it failed")] = False,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Submit a payload to a collection as a batch, and print the batch's id."""
    expected = None if digest is None else read_digest(digest)
    with remote.connect() as client:
        if _URL.match(payload):
            handed = Handed(payload, deposit.type, expected, None)
        else:
            found = Local.find(Path(payload), deposit)
            client.collection(collection)
            handed = _upload(client, found, expected)
        batch = _submit(client, collection, handed, deposit)
        if not as_json:
            _tell(batch, handed, wait=wait)
        ended = _follow(client, batch, as_json=as_json) if wait else batch
    if as_json:
        write_json(ended or batch)
    return (
        exit_codes.FAILED
        if wait and (ended is None or ended.status != "completed")
        else exit_codes.DONE
    )


class Handed(NamedTuple):
    """What is submitted: where the server finds it, and what is known of it."""

    url: str
    type: PayloadType | None
    digest: Digest | None
    size: int | None


class Local(NamedTuple):
    """A payload that is here."""

    name: str
    type: PayloadType | None
    size: int
    chunks: Callable[[], Iterator[bytes]]

    @classmethod
    def find(cls, path: Path, deposit: DepositFlags) -> "Local":
        """The payload at a path; a manifest that cannot be read is refused here."""
        if path.is_dir():
            folder = Folder.of(path)
            name = deposit.name or f"{path.resolve().name or 'folder'}.tar"
            return cls(name, deposit.type or PayloadType.CONTAINER, folder.size, folder.chunks)
        if not path.is_file():
            raise Invalid(f"there is no file or folder {str(path)!r}, and it is no URL")
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
    """The algorithm and the value of a digest, as people write them."""
    algorithm, _, value = text.partition(":")
    try:
        name, digest = checked_digest(algorithm.strip(), value.strip())
        known_digest: Digest = msgspec.convert((name, digest), Digest)
    except (Invalid, msgspec.ValidationError) as error:
        known = ", ".join(get_args(DigestAlgorithm))
        raise Invalid(
            f"{text[:200]!r} is no digest ({error}); write it like sha-256:HEX, with one of {known}"
        ) from None
    return known_digest


def _upload(client: Client, found: Local, expected: Digest | None) -> Handed:
    """Upload a payload, and see that what arrived is what was sent, and what was expected."""
    if expected is not None:
        _check_digest(found, expected)
    hashed = hashlib.sha256()
    with _progress(found) as tick:
        sent = _sent(found, tick, hashed.update)
        arrived = client.upload_payload(found.name, sent, size=found.size)
    digest = hashed.hexdigest()
    if arrived.digests.get("sha-256") != digest:
        raise Unavailable(f"{found.name} arrived otherwise than it was sent; submit it again")
    return Handed(arrived.url, found.type, expected or ("sha-256", digest), found.size)


def _check_digest(found: Local, expected: Digest) -> None:
    algorithm, wanted = expected
    hashed = new_hash(algorithm)
    for chunk in found.chunks():
        hashed.update(chunk)
    if hashed.hexdigest() != wanted:
        raise Invalid(
            f"{found.name} has the {algorithm} digest {hashed.hexdigest()}, not {wanted}; "
            "nothing was uploaded"
        )


def _sent(
    found: Local, tick: Callable[[int], None], notice: Callable[[bytes], None]
) -> Iterator[bytes]:
    count = 0
    for chunk in found.chunks():
        notice(chunk)
        count += len(chunk)
        if count > found.size:
            break
        yield chunk
        tick(len(chunk))
    if count != found.size:
        raise Conflict(f"{found.name} was written to while it was uploaded; submit it again")


@contextmanager
def _progress(found: Local) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, where somebody looks at it."""
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
        task = progress.add_task("", total=found.size)
        yield lambda count: progress.advance(task, count)


def _submit(client: Client, collection: str, handed: Handed, deposit: DepositFlags) -> ShownBatch:
    return client.submit_batch(
        collection,
        handed.url,
        type=handed.type,
        mode=deposit.mode,
        name=deposit.name,
        digest=handed.digest,
        size=handed.size,
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


def _tell(batch: ShownBatch, handed: Handed, *, wait: bool) -> None:
    write_line(batch.id)
    if batch.payload_url != handed.url:
        note(f"batch {batch.id} was submitted under this key before; it stays as it is")
    if not wait:
        note(f"batch {batch.id} of {batch.collection} is {batch.status}; follow it with:")
        note(f"penstock ingest watch {batch.id}")


def _follow(client: Client, batch: ShownBatch, *, as_json: bool) -> ShownBatch | None:
    if as_json:
        return follow(client, batch.id, Unseen(), 1.0)
    return follow_on(err(), client, batch.id, 1.0)
