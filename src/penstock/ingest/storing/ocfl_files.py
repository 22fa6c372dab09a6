"""The files that a deposit brings, and what a version holds with them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from penstock.errors import Invalid
from penstock.ingest.receiving.names import safe_name
from penstock.ingest.storing.ocfl_inventory import Inventory, check_digest
from penstock.objects.store import read_chunks


class NewFile(Struct, frozen=True):
    """A local file that a deposit brings; `name` is its logical path, as in producer/data.csv."""

    name: str
    path: Path
    sha512: str
    size: int


class Spoiled(Invalid):
    """A file is not what it was when its digest was taken."""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path


def check_files(files: Sequence[NewFile]) -> None:
    """Refuse what cannot be a version."""
    if not files:
        raise Invalid("a deposit without files makes no version; give at least one")
    seen: set[str] = set()
    for file in files:
        if reason := safe_name(file.name):
            raise Invalid(f"{file.name[:200]!r} cannot be stored: the name {reason}")
        if file.name in seen:
            raise Invalid(f"two files of the deposit have the name {file.name!r}; rename one")
        seen.add(file.name)
        check_digest(file.sha512, file.name)


def state_after(before: Inventory | None, files: Sequence[NewFile]) -> Mapping[str, str]:
    """The new state, name by name: no name may be a folder of another."""
    names = before.versions[before.head].names() if before else {}
    names.update({file.name: file.sha512 for file in files})
    for name in names:
        folder = name
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            if folder in names:
                raise Invalid(f"{folder!r} cannot be a file and the folder of {name!r}; rename one")
    return names


def checked_bytes(file: NewFile) -> Iterator[bytes]:
    """The file's bytes; raises Spoiled at their end if they are not those of its digest."""
    digest, size = hashlib.sha512(), 0
    for chunk in read_chunks(file.path):
        digest.update(chunk)
        size += len(chunk)
        yield chunk
    if digest.hexdigest() != file.sha512 or size != file.size:
        raise Spoiled(
            f"{file.path} has changed since its digest was taken: expected {file.size} bytes with "
            f"sha512 {file.sha512}, found {size} with {digest.hexdigest()}; resume the job, and "
            "it is fetched again",
            file.path,
        )
