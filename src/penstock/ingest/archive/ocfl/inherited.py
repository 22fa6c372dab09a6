"""Whether the files that a version takes over from earlier versions are still in the store.

An inventory has the digest of every file, but not its size. The size is in the storage manifest
that each deposit writes beside its files. A file of unknown size is compared by its digest.
"""

from collections.abc import Iterator, Mapping

from penstock.errors import Invalid, NotFound
from penstock.ingest.archive.ocfl.inventory import Inventory, object_root, sha512
from penstock.ingest.archive.ocfl.verify import digest_of
from penstock.ingest.intake import checkm
from penstock.objects import Objects

STORAGE_MANIFEST = "system/mrt-manifest.txt"

_NAMED_MAX = 3


def listed_rows(
    objects: Objects, root: str, inventory: Inventory, newest: int | None = None
) -> Iterator[checkm.Row]:
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
    """Refuse a version that would list files whose content is missing or damaged.

    `inherited` are the digests of the files by name, `sizes` what the store lists by key.
    """
    if not inherited:
        return
    faults = list(_faults(objects, root, inventory, inherited, sizes, by_digest=by_digest))
    if not faults:
        return
    more = len(faults) - _NAMED_MAX
    named = "; ".join(faults[:_NAMED_MAX]) + (f"; and {more:,} more" if more > 0 else "")
    raise Invalid(
        f"{inventory.id} cannot be updated, because files of its newest version are damaged: "
        f"{named}. Restore them in {objects.url} and resume the job, or submit all files of the "
        "object with mode add"
    )


def lost_files(objects: Objects, inventory: Inventory, expected: Mapping[int, int]) -> list[str]:
    """List the files that are missing or have another size, without reading any.

    `expected` has the bytes that each version was recorded with. Costs one listing; storage
    manifests are read only where a version has another size.
    """
    root = object_root(inventory.id)
    sizes = {entry.key: entry.size for entry in objects.list(root)}
    for paths in inventory.manifest.values():
        for key in (f"{root}/{path}" for path in paths):
            # A listing may miss a file that is written again at this moment.
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
        found = sum(sizes.get(f"{root}/{inventory.content_of(d)}", 0) for d in digests)
        if found != size and not faults.keys() & set(digests):
            cut = _other_sizes(objects, root, inventory, sizes)
            words = f"version {number} has {found:,} bytes instead of {size:,}"
            faults |= cut if cut.keys() & set(digests) else {f"v{number}": words}
    return list(faults.values())


def _other_sizes(
    objects: Objects, root: str, inventory: Inventory, sizes: Mapping[str, int]
) -> dict[str, str]:
    """The files that do not have the size which a storage manifest lists, by digest."""
    expected = _expected_sizes(objects, root, inventory, set(inventory.manifest))
    return {
        digest: f"{name} has {sizes[key]:,} bytes instead of {expected[digest]:,} ({key})"
        for digest, name, key in _contents(root, inventory)
        if digest in expected and key in sizes and sizes[key] != expected[digest]
    }


def _contents(root: str, inventory: Inventory) -> Iterator[tuple[str, str, str]]:
    """The digest, a name and the key of each content."""
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
        # A listing may miss a file that is written again at this moment.
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
    """The sizes of these contents; stops reading as soon as all are known."""
    expected: dict[str, int] = {}
    for row in listed_rows(objects, root, inventory):
        if row.digest is not None and row.size is not None:
            expected.setdefault(row.digest, row.size)
        if digests <= expected.keys():
            break
    return expected
