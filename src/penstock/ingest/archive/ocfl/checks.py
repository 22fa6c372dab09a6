"""Checks of stored objects: the root, every byte of an object, and the sizes of its files.

An inventory has the digest of every file, but not its size. The size is in the storage manifest
that each deposit writes beside its files. A file of unknown size is compared by its digest.
"""

import hashlib
from collections.abc import Iterator, Mapping

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
    object_root,
    sha512,
)
from penstock.ingest.intake import checkm
from penstock.objects import Objects

_OTHER_ROOT = "0=ocfl_1.0"
_DECLARATION = "0=ocfl_1.1"
_CONFIG_KEY = f"extensions/{LAYOUT}/config.json"
_LAYOUT_KEY = "ocfl_layout.json"
STORAGE_MANIFEST = "system/mrt-manifest.txt"
_NAMED_MAX = 3


class _Layout(Struct, frozen=True):
    extension: str = LAYOUT
    description: str = "Tuples of the SHA-256 of the id, then a folder named by the encoded id"


class _LayoutConfig(Struct, frozen=True, rename="camel"):
    extension_name: str = LAYOUT
    digest_algorithm: str = "sha256"
    tuple_size: int = 3
    number_of_tuples: int = 3


# Module globals: msgspec can crash if two threads decode a class for the first time at once.
_decode_config = msgspec.json.Decoder(_LayoutConfig).decode
_decode_layout = msgspec.json.Decoder(_Layout).decode


def make_root(objects: Objects) -> None:
    """Create the storage root unless it exists; concurrent calls are harmless."""
    if objects.exists(_OTHER_ROOT):
        raise _refusal(objects, _OTHER_ROOT)
    # In this order every incomplete root is a valid root.
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
    """Return every fault of an object; an empty list if it is intact."""
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
        *_unknown_files(objects, root, inventory),
    ]


def _declaration(objects: Objects, root: str) -> Iterator[str]:
    try:
        if objects.get(f"{root}/{DECLARATION}") != ocfl_inventory.DECLARATION_BYTES:
            yield f"{root}/{DECLARATION} does not have the content that its name requires"
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
    """Check the inventory of each version; the newest one equals the object's."""
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
            yield f"{key} has another history than {root}/{INVENTORY}"


def _content(objects: Objects, root: str, inventory: Inventory) -> Iterator[str]:
    for expected, paths in inventory.manifest.items():
        for path in paths:
            try:
                digest = digest_of(objects, f"{root}/{path}")
            except NotFound:
                yield f"{root}/{path} is missing"
                continue
            if digest != expected:
                yield f"{root}/{path} has sha512 {digest}, but its inventory has {expected}"


def _unknown_files(objects: Objects, root: str, inventory: Inventory) -> Iterator[str]:
    known_paths = {DECLARATION, INVENTORY, SIDECAR}
    for name in inventory.versions:
        known_paths |= {f"{name}/{INVENTORY}", f"{name}/{SIDECAR}"}
    for paths in inventory.manifest.values():
        known_paths.update(paths)
    for key in sorted(entry.key for entry in objects.list(root)):
        if key.removeprefix(f"{root}/") not in known_paths:
            yield f"{key} belongs to no version"


def digest_of(objects: Objects, key: str) -> str:
    """Compute the sha512 of a stored file."""
    digest = hashlib.sha512()
    with objects.get_stream(key) as chunks:
        for chunk in chunks:
            digest.update(chunk)
    return digest.hexdigest()


def listed_rows(
    objects: Objects, root: str, inventory: Inventory, newest: int | None = None
) -> Iterator[checkm.CheckmRow]:
    """Read what the storage manifests list about the files of the object, newest version first.

    A manifest that is missing or damaged is passed over. Each one costs one request.
    """
    for number in range(newest or inventory.head_number, 0, -1):
        names = inventory.versions[f"v{number}"].names()
        digest = names.get(STORAGE_MANIFEST)
        if digest is None:
            continue
        try:
            content = objects.get(f"{root}/{inventory.content_of(digest)}")
            if sha512(content) == digest:
                yield from checkm.parse(content, rows_max=len(content)).rows
        except (NotFound, Invalid):
            continue


def check_inherited(
    objects: Objects,
    root: str,
    inventory: Inventory,
    inherited: Mapping[str, str],
    sizes: Mapping[str, int],
    *,
    by_digest: bool,
) -> None:
    """Raise Invalid for a version that would inherit files with missing or damaged content.

    `inherited` has the digests of the files by name, `sizes` the listing of the store by key.
    """
    if not inherited:
        return
    faults = list(_faults(objects, root, inventory, inherited, sizes, by_digest=by_digest))
    if not faults:
        return
    more = len(faults) - _NAMED_MAX
    listed = "; ".join(faults[:_NAMED_MAX]) + (f"; and {more:,} more" if more > 0 else "")
    raise Invalid(
        f"{inventory.id} cannot be updated, because files of its newest version are damaged: "
        f"{listed}. Restore them in {objects.url} and resume the job, or submit all files of the "
        "object with mode add"
    )


def lost_files(objects: Objects, inventory: Inventory, expected: Mapping[int, int]) -> list[str]:
    """List missing files and files of another size, without reading them.

    `expected` has the recorded bytes of each version. The cost is one listing; storage manifests
    are read only for a version of another size.
    """
    root = object_root(inventory.id)
    sizes = {entry.key: entry.size for entry in objects.list(root)}
    for paths in inventory.manifest.values():
        for key in (f"{root}/{path}" for path in paths):
            # A listing may miss a file that is being rewritten.
            if key not in sizes and (size := objects.size(key)) is not None:
                sizes[key] = size
    faults = {
        digest: f"{name} is missing ({key})"
        for digest, name, key in _contents(root, inventory)
        if key not in sizes
    }
    for number, size in sorted(expected.items()):
        version = inventory.version(number)
        if version is None:
            faults[f"v{number}"] = f"version {number} is recorded, but not in its inventory"
            continue
        digests = version.names().values()
        size_found = sum(sizes.get(f"{root}/{inventory.content_of(d)}", 0) for d in digests)
        if size_found != size and not faults.keys() & set(digests):
            cut = _other_sizes(objects, root, inventory, sizes)
            words = f"version {number} has {size_found:,} bytes instead of {size:,}"
            faults |= cut if cut.keys() & set(digests) else {f"v{number}": words}
    return list(faults.values())


def _other_sizes(
    objects: Objects, root: str, inventory: Inventory, sizes: Mapping[str, int]
) -> dict[str, str]:
    """Describe the files whose size differs from the storage manifest, by digest."""
    expected = _expected_sizes(objects, root, inventory, set(inventory.manifest))
    return {
        digest: f"{name} has {sizes[key]:,} bytes instead of {expected[digest]:,} ({key})"
        for digest, name, key in _contents(root, inventory)
        if digest in expected and key in sizes and sizes[key] != expected[digest]
    }


def _contents(root: str, inventory: Inventory) -> Iterator[tuple[str, str, str]]:
    """Yield the digest, a name and the key of each content file."""
    names: dict[str, str] = {}
    for version in inventory.versions.values():
        names |= {digest: name for name, digest in version.names().items()}
    for digest in inventory.manifest:
        yield digest, names.get(digest, digest), f"{root}/{inventory.content_of(digest)}"


def _faults(
    objects: Objects,
    root: str,
    inventory: Inventory,
    inherited: Mapping[str, str],
    sizes: Mapping[str, int],
    *,
    by_digest: bool,
) -> Iterator[str]:
    expected = _expected_sizes(objects, root, inventory, set(inherited.values()))
    for name, digest in sorted(inherited.items()):
        key = f"{root}/{inventory.content_of(digest)}"
        # A listing may miss a file that is being rewritten.
        size = sizes.get(key) if key in sizes else objects.size(key)
        wanted = expected.get(digest)
        if size is None:
            yield f"{name} is missing ({key})"
        elif wanted is not None and size != wanted:
            yield f"{name} has {size:,} bytes instead of {wanted:,} ({key})"
        elif (by_digest or wanted is None) and digest_of(objects, key) != digest:
            yield f"{name} has another digest than its inventory ({key})"


def _expected_sizes(
    objects: Objects, root: str, inventory: Inventory, digests: set[str]
) -> dict[str, int]:
    """Read the sizes of these contents from storage manifests, until all are known."""
    expected: dict[str, int] = {}
    for row in listed_rows(objects, root, inventory):
        if row.digest is not None and row.size is not None:
            expected.setdefault(row.digest, row.size)
        if digests <= expected.keys():
            break
    return expected
