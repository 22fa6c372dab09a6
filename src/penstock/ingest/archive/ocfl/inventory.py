"""OCFL 1.1 inventories as values: the root of an object, its versions, and the next version."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from penstock.clock import Micros, format_time
from penstock.errors import Invalid
from penstock.ingest.intake.validation import name_fault
from penstock.objects.store import read_chunks

LAYOUT = "0003-hash-and-id-n-tuple-storage-layout"
INVENTORY = "inventory.json"
SIDECAR = "inventory.json.sha512"
DECLARATION = "0=ocfl_object_1.1"
DECLARATION_BYTES = b"ocfl_object_1.1\n"

_TUPLE_SIZE = 3
_TUPLES = 3
_FOLDER_CHARACTERS_MAX = 100
_SEGMENT_BYTES_MAX = 200
_PATH_BYTES_MAX = 600
_TAG_CHARACTERS = 16
_PLAIN = re.compile(r"[\w .,=@+()~'!&-]")
_KEY = re.compile(r"[A-Za-z0-9._:/@+-]{1,200}")
_MAIL = re.compile(r"[^\s<>@]+@[^\s<>@]+")
_SHA512 = re.compile(r"[0-9a-f]{128}")

Digests = dict[str, tuple[str, ...]]


class User(Struct, frozen=True, forbid_unknown_fields=True):
    """The user who made a version; the address is a URI."""

    name: str
    address: str | UnsetType = UNSET


class Version(Struct, frozen=True, forbid_unknown_fields=True):
    """One version; its state has the logical paths of the files with each digest."""

    created: str
    state: Digests
    message: str = ""
    user: User | UnsetType = UNSET

    @property
    def key(self) -> str | None:
        """The key of the deposit that made this version; it is at the end of the message."""
        head, separator, tail = self.message.rpartition("[")
        return tail[:-1] if separator and tail.endswith("]") and head[-1:] in {" ", ""} else None

    def names(self) -> dict[str, str]:
        """Return the digest of each logical path."""
        return {name: digest for digest, names in self.state.items() for name in names}


class Inventory(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An object's inventory. One with unknown fields of other tools is refused."""

    id: str
    type: Literal["https://ocfl.io/1.1/spec/#inventory"]
    digest_algorithm: Literal["sha512"]
    head: str
    manifest: Digests
    versions: dict[str, Version]

    @property
    def head_number(self) -> int:
        """The number of the newest version."""
        return int(self.head[1:])

    def version(self, number: int | None = None) -> Version | None:
        """Return the version with this number, or the newest; None if there is none."""
        return self.versions.get(self.head if number is None else f"v{number}")

    def number_of(self, key: str) -> int | None:
        """Return the number of the version that a deposit made."""
        for name, version in self.versions.items():
            if version.key == key:
                return int(name[1:])
        return None

    def content_of(self, digest: str) -> str:
        """Return the path, within the object, of the content with this digest."""
        return self.manifest[digest][0]

    def encode(self) -> bytes:
        """Encode inventory.json."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


# A module global: msgspec can crash if two threads decode a class for the first time at once.
_decode = msgspec.json.Decoder(Inventory).decode


def decode(content: bytes, ark: str, where: str) -> Inventory:
    """Decode an inventory.json of this object."""
    try:
        inventory = _decode(content)
    except msgspec.DecodeError as error:
        raise Invalid(f"{where} is not an inventory that Penstock can continue: {error}") from error
    numbers = [f"v{number}" for number in range(1, len(inventory.versions) + 1)]
    if not numbers or inventory.head != numbers[-1] or set(inventory.versions) != set(numbers):
        raise Invalid(f"{where} does not list its versions as v1, v2 and so on up to its head")
    digests = inventory.manifest.keys()
    if any(not version.state.keys() <= digests for version in inventory.versions.values()):
        raise Invalid(f"{where} has a version with content that its manifest does not list")
    if inventory.id != ark:
        raise Invalid(f"{where} belongs to {inventory.id!r}, not to {ark!r}")
    return inventory


def sha512(content: bytes) -> str:
    """Compute the digest that OCFL stores beside an inventory."""
    return hashlib.sha512(content).hexdigest()


def sidecar(content: bytes) -> bytes:
    """Encode inventory.json.sha512."""
    return f"{sha512(content)} {INVENTORY}\n".encode()


def object_root(ark: str) -> str:
    """Return the path of an object by layout extension 0003."""
    if not ark or not ark.isprintable():
        raise Invalid(f"{ark!r} cannot identify an object; give an ARK like ark:/99999/fk4abc")
    digest = hashlib.sha256(ark.encode()).hexdigest()
    tuples = [digest[n * _TUPLE_SIZE : (n + 1) * _TUPLE_SIZE] for n in range(_TUPLES)]
    folder = "".join(_encode_id(character) for character in ark)
    if len(folder) > _FOLDER_CHARACTERS_MAX:
        folder = f"{folder[:_FOLDER_CHARACTERS_MAX]}-{digest}"
    return "/".join([*tuples, folder])


def _encode_id(character: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]", character):
        return character
    return "".join(f"%{byte:02x}" for byte in character.encode())


def content_folder(key: str, files: Iterable[tuple[str, str]]) -> str:
    """Return the folder of a deposit's content in a version; it depends on the files too.

    Two deposits may write content for the same version, which only one of them gets. One deposit
    may be repeated with other bytes. None of them may overwrite the content of another.
    """
    listing = "".join(f"{digest} {name}\n" for name, digest in sorted(files))
    return f"{folder_start(key)}{_tag(listing)}"


def folder_start(key: str) -> str:
    """Return the common prefix of the folders of a deposit's content."""
    return f"{_tag(key)}-"


def _tag(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_TAG_CHARACTERS]


def content_path(version: int, folder: str, name: str) -> str:
    """Return the path of a file's content in the object.

    The path is the name itself if every store allows it, percent-encoded if not, and a digest if
    the name is too long. No two names share a path, because '%' is always encoded.
    """
    segments = ["".join(map(_encode_character, segment)) for segment in name.split("/")]
    path = "/".join(segments)
    if (
        any(len(segment.encode()) > _SEGMENT_BYTES_MAX for segment in segments)
        or len(path.encode()) > _PATH_BYTES_MAX
    ):
        path = f"%long-{hashlib.sha256(name.encode()).hexdigest()}"
    return f"v{version}/content/{folder}/{path}"


def _encode_character(character: str) -> str:
    return character if _PLAIN.fullmatch(character) else quote(character, safe="")


def check_key(key: str) -> None:
    """Raise Invalid for a key that cannot be parsed back from a version's message."""
    if not _KEY.fullmatch(key):
        raise Invalid(
            f"{key[:80]!r} cannot identify a deposit; use at most 200 letters, digits and ._:/@+-"
        )


def check_digest(digest: str, name: str) -> None:
    """Raise Invalid for a text that is not a sha512 of an inventory."""
    if not _SHA512.fullmatch(digest):
        raise Invalid(f"{name!r} has no sha512 of 128 lower-case hexadecimal digits")


def next_inventory(
    before: Inventory | None,
    ark: str,
    names: Mapping[str, str],
    *,
    folder: str,
    key: str,
    who: str,
    message: str,
    now: Micros,
) -> Inventory:
    """Build the inventory with one more version, whose state has these digests by logical path.

    New content is in `folder`. Content of an earlier version is not stored again, and equal new
    files are stored once.
    """
    number = before.head_number + 1 if before else 1
    manifest = dict(before.manifest) if before else {}
    for name in sorted(names):
        manifest.setdefault(names[name], (content_path(number, folder, name),))
    version = Version(
        created=format_time(now),
        state=_by_digest(names.items()),
        message=f"{message} [{key}]".lstrip(),
        user=User(name=who, address=_address(who)),
    )
    return Inventory(
        id=ark,
        type="https://ocfl.io/1.1/spec/#inventory",
        digest_algorithm="sha512",
        head=f"v{number}",
        manifest=dict(sorted(manifest.items())),
        versions={**(before.versions if before else {}), f"v{number}": version},
    )


def _by_digest(names: Iterable[tuple[str, str]]) -> Digests:
    state: dict[str, list[str]] = {}
    for name, digest in sorted(names):
        state.setdefault(digest, []).append(name)
    return {digest: tuple(paths) for digest, paths in sorted(state.items())}


def _address(who: str) -> str:
    if _MAIL.fullmatch(who):
        return f"mailto:{quote(who, safe='@+')}"
    return f"urn:penstock:user:{quote(who, safe='')}"


class NewFile(Struct, frozen=True):
    """A local file of a deposit; `name` is its logical path, as in producer/data.csv."""

    name: str
    path: Path
    sha512: str
    size: int


class FileChanged(Invalid):
    """A file changed since its digest was computed."""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path


def check_files(files: Sequence[NewFile]) -> None:
    """Raise Invalid for files that cannot be a version."""
    if not files:
        raise Invalid("a deposit without files makes no version; give at least one")
    seen: set[str] = set()
    for file in files:
        if reason := name_fault(file.name):
            raise Invalid(f"{file.name[:200]!r} cannot be stored: the name {reason}")
        if file.name in seen:
            raise Invalid(f"two files of the deposit have the name {file.name!r}; rename one")
        seen.add(file.name)
        check_digest(file.sha512, file.name)


def state_after(before: Inventory | None, files: Sequence[NewFile]) -> Mapping[str, str]:
    """Build the new state by name; no name may be a folder of another."""
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
    """Read the file's bytes; raise FileChanged at the end if the digest or size differs."""
    digest, size = hashlib.sha512(), 0
    for chunk in read_chunks(file.path):
        digest.update(chunk)
        size += len(chunk)
        yield chunk
    if digest.hexdigest() != file.sha512 or size != file.size:
        raise FileChanged(
            f"{file.path} has changed since its digest was taken: expected {file.size} bytes with "
            f"sha512 {file.sha512}, found {size} with {digest.hexdigest()}; resume the job, and "
            "it is fetched again",
            file.path,
        )
