"""OCFL 1.1 inventories as values: where an object lies, what its versions hold, the next one."""

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
from penstock.ingest.intake.names import safe_name
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
    """Who made a version; the address is a URI."""

    name: str
    address: str | UnsetType = UNSET


class Version(Struct, frozen=True, forbid_unknown_fields=True):
    """One version; its state gives the logical paths of the files with each digest."""

    created: str
    state: Digests
    message: str = ""
    user: User | UnsetType = UNSET

    @property
    def key(self) -> str | None:
        """The deposit that made this version; it ends the message, OCFL's only free text."""
        head, separator, tail = self.message.rpartition("[")
        return tail[:-1] if separator and tail.endswith("]") and head[-1:] in {" ", ""} else None

    def names(self) -> dict[str, str]:
        """The digest of each logical path."""
        return {name: digest for digest, names in self.state.items() for name in names}


class Inventory(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What an object is. Other tools may write more than this: then it is refused, not cut down."""

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
        """The version of that number, or the newest; None if there is no such version."""
        return self.versions.get(self.head if number is None else f"v{number}")

    def number_of(self, key: str) -> int | None:
        """The version that this deposit made."""
        for name, version in self.versions.items():
            if version.key == key:
                return int(name[1:])
        return None

    def content_of(self, digest: str) -> str:
        """Where the content with this digest lies, within the object."""
        return self.manifest[digest][0]

    def encode(self) -> bytes:
        """The text of inventory.json."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


# Made here: two threads that decode a class for the first time would crash msgspec.
_decode = msgspec.json.Decoder(Inventory).decode


def decode(content: bytes, ark: str, where: str) -> Inventory:
    """Read an inventory.json of this object."""
    try:
        inventory = _decode(content)
    except msgspec.DecodeError as error:
        raise Invalid(f"{where} is no inventory that Penstock can go on from: {error}") from error
    numbers = [f"v{number}" for number in range(1, len(inventory.versions) + 1)]
    if not numbers or inventory.head != numbers[-1] or set(inventory.versions) != set(numbers):
        raise Invalid(f"{where} does not list its versions as v1, v2 and so on up to its head")
    known = inventory.manifest.keys()
    if any(not version.state.keys() <= known for version in inventory.versions.values()):
        raise Invalid(f"{where} has a version with content that its manifest does not list")
    if inventory.id != ark:
        raise Invalid(f"{where} belongs to {inventory.id!r}, not to {ark!r}")
    return inventory


def sha512(content: bytes) -> str:
    """The digest that OCFL puts beside an inventory."""
    return hashlib.sha512(content).hexdigest()


def sidecar(content: bytes) -> bytes:
    """The text of inventory.json.sha512."""
    return f"{sha512(content)} {INVENTORY}\n".encode()


def object_root(ark: str) -> str:
    """Where the object lies, by layout extension 0003."""
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
    """The folder of a deposit's content in a version: its own, and that of these very files.

    Two deposits may both be writing a version that only one of them will get, and one deposit may
    be brought twice with other bytes: neither may write where the other does.
    """
    told = "".join(f"{digest} {name}\n" for name, digest in sorted(files))
    return f"{folder_start(key)}{_tag(told)}"


def folder_start(key: str) -> str:
    """How the folders of a deposit's content begin, whatever its files are."""
    return f"{_tag(key)}-"


def _tag(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_TAG_CHARACTERS]


def content_path(version: int, folder: str, name: str) -> str:
    """Where the content of a logical path is kept in the object.

    Readable where every store can hold the name, percent-encoded where one cannot, and a digest
    of the name where it is too long. No two names share a path: a plain '%' never stays plain.
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
    """Only what can stand in a version's message and be found again exactly."""
    if not _KEY.fullmatch(key):
        raise Invalid(
            f"{key[:80]!r} cannot identify a deposit; use at most 200 letters, digits and ._:/@+-"
        )


def check_digest(digest: str, name: str) -> None:
    """A sha512 as inventories write it."""
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
    """The inventory with one more version, whose state has these digests by logical path.

    New content lies in the folder given. Content that any earlier version has is not stored again;
    of equal new files, one is.
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
