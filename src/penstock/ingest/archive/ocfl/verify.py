"""The storage root that OCFL objects lie in."""

import hashlib
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from penstock.errors import Conflict, Invalid, NotFound
from penstock.ingest.archive.ocfl import inventory as ocfl_inventory
from penstock.ingest.archive.ocfl.inventory import (
    DECLARATION,
    INVENTORY,
    LAYOUT,
    SIDECAR,
    Inventory,
)
from penstock.objects import Objects


class _Layout(Struct, frozen=True):
    extension: str = LAYOUT
    description: str = "Tuples of the SHA-256 of the id, then a folder named by the encoded id"


class _LayoutConfig(Struct, frozen=True, rename="camel"):
    extension_name: str = LAYOUT
    digest_algorithm: str = "sha256"
    tuple_size: int = 3
    number_of_tuples: int = 3


_OTHER_ROOT = "0=ocfl_1.0"
_DECLARATION = "0=ocfl_1.1"
_CONFIG_KEY = f"extensions/{LAYOUT}/config.json"
_LAYOUT_KEY = "ocfl_layout.json"
# Made here: two threads that decode a class for the first time would crash msgspec.
_decode_config = msgspec.json.Decoder(_LayoutConfig).decode
_decode_layout = msgspec.json.Decoder(_Layout).decode


def make_root(objects: Objects) -> None:
    """Make the storage root, once; nothing happens if it is there, and racing is harmless."""
    if objects.exists(_OTHER_ROOT):
        raise _refusal(objects, _OTHER_ROOT)
    # In this order every beginning is a valid root.
    for key, content in (
        (_DECLARATION, b"ocfl_1.1\n"),
        (_CONFIG_KEY, msgspec.json.encode(_LayoutConfig())),
        (_LAYOUT_KEY, msgspec.json.encode(_Layout())),
    ):
        try:
            objects.put(key, content, if_absent=True)
        except Conflict:
            if not _is_same(key, objects.get(key)):
                raise _refusal(objects, key) from None


def _is_same(key: str, content: bytes) -> bool:
    try:
        if key == _CONFIG_KEY:
            return _decode_config(content) == _LayoutConfig()
        if key == _LAYOUT_KEY:
            return _decode_layout(content).extension == LAYOUT
    except msgspec.DecodeError:
        return False
    return content.strip() == b"ocfl_1.1"


def _refusal(objects: Objects, key: str) -> Invalid:
    return Invalid(
        f"{objects.url} holds a {key} that is not as Penstock writes it: it is an OCFL root of "
        "another version or layout; give an empty place"
    )


def verify_object(objects: Objects, ark: str) -> list[str]:
    """Every fault found; an empty list if the object is whole."""
    root = ocfl_inventory.object_root(ark)
    try:
        content = objects.get(f"{root}/{INVENTORY}")
    except NotFound:
        return [f"{root}/{INVENTORY} is missing"]
    try:
        inventory = ocfl_inventory.decode(content, ark, f"{root}/{INVENTORY}")
    except Invalid as refusal:
        return [str(refusal)]
    return [
        *_declaration(objects, root),
        *_sidecar(objects, f"{root}/{SIDECAR}", content),
        *_versions(objects, root, inventory, content),
        *_content(objects, root, inventory),
        *_strangers(objects, root, inventory),
    ]


def _declaration(objects: Objects, root: str) -> Iterator[str]:
    try:
        if objects.get(f"{root}/{DECLARATION}") != ocfl_inventory.DECLARATION_BYTES:
            yield f"{root}/{DECLARATION} does not say what its name says"
    except NotFound:
        yield f"{root}/{DECLARATION} is missing"


def _sidecar(objects: Objects, key: str, content: bytes) -> Iterator[str]:
    try:
        words = objects.get(key).split()
    except NotFound:
        yield f"{key} is missing"
        return
    if words[:1] != [ocfl_inventory.sha512(content).encode()]:
        yield f"{key} is not the digest of the inventory beside it"


def _versions(objects: Objects, root: str, inventory: Inventory, head: bytes) -> Iterator[str]:
    """Each version keeps the inventory of its time, and the newest one equals the object's."""
    for name in inventory.versions:
        key = f"{root}/{name}/{INVENTORY}"
        try:
            content = objects.get(key)
        except NotFound:
            yield f"{key} is missing"
            continue
        yield from _sidecar(objects, f"{root}/{name}/{SIDECAR}", content)
        if name == inventory.head:
            if content != head:
                yield f"{key} differs from {root}/{INVENTORY}"
            continue
        try:
            earlier = ocfl_inventory.decode(content, inventory.id, key)
        except Invalid as refusal:
            yield str(refusal)
            continue
        if earlier.head != name or any(
            inventory.versions.get(number) != version
            for number, version in earlier.versions.items()
        ):
            yield f"{key} tells another history than {root}/{INVENTORY}"


def _content(objects: Objects, root: str, inventory: Inventory) -> Iterator[str]:
    for expected, paths in inventory.manifest.items():
        for path in paths:
            try:
                found = digest_of(objects, f"{root}/{path}")
            except NotFound:
                yield f"{root}/{path} is missing"
                continue
            if found != expected:
                yield f"{root}/{path} has sha512 {found}, and its inventory says {expected}"


def _strangers(objects: Objects, root: str, inventory: Inventory) -> Iterator[str]:
    known = {DECLARATION, INVENTORY, SIDECAR}
    for name in inventory.versions:
        known |= {f"{name}/{INVENTORY}", f"{name}/{SIDECAR}"}
    for paths in inventory.manifest.values():
        known.update(paths)
    for key in sorted(entry.key for entry in objects.list(root)):
        if key.removeprefix(f"{root}/") not in known:
            yield f"{key} belongs to no version"


def digest_of(objects: Objects, key: str) -> str:
    """The sha512 of what is stored under the key."""
    digest = hashlib.sha512()
    with objects.get_stream(key) as chunks:
        for chunk in chunks:
            digest.update(chunk)
    return digest.hexdigest()
