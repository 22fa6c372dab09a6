"""Versioned, immutable objects on an object store, in OCFL 1.1.

A version is written in this order, and each write is on disk before the next begins:

1. `vN/content/DEPOSIT/…`: content that no earlier version has, in a folder of this deposit
2. `vN/inventory.json`, created only if absent: from here on the version is decided
3. `0=ocfl_object_1.1`, for a new object
4. `vN/inventory.json.sha512`
5. `inventory.json`: from here on readers see the version
6. `inventory.json.sha512`

A writer that is killed before step 2 leaves content that no inventory names. A repetition of the
deposit uses it; the announcement of this or a later version removes it, and so does `abandon`. A
writer that is killed after step 2 leaves a decided version that is not announced. The next call of
`store`, by any deposit, announces it first; until then readers see the version before. An object
store cannot write six keys at once, so a validator finds the traces of such a version meanwhile,
and a first version is not yet an object.

A writer that was suspended and continues late writes into its own folder, finds the version
decided, and removes its content. It changes nothing that an inventory names. Because of such
writers, no other content is removed from a version that is not decided: its writer may have checked
that the content exists.

The race with `abandon`: a writer puts its inventory, and then looks for a mark and for its content.
`abandon` puts the mark, and then looks for an inventory and removes the content. So at least one of
the two sees the other.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress

from msgspec import Struct
from msgspec.structs import replace

from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, NotFound, PenstockError
from penstock.ingest.archive.ocfl import inventory as ocfl_inventory
from penstock.ingest.archive.ocfl.checks import (
    check_inherited,
    digest_of,
    listed_rows,
    lost_files,
    make_root,
    verify_object,
)
from penstock.ingest.archive.ocfl.inventory import (
    INVENTORY,
    SIDECAR,
    Inventory,
    NewFile,
    Version,
    check_files,
    checked_bytes,
    folder_start,
    state_after,
)
from penstock.ingest.intake import checkm
from penstock.objects import Objects, StoredEntry

log = logging.getLogger(__name__)
_PRODUCER = "producer/"


def abandoned_mark(place: str, key: str) -> str:
    """Return the key of the mark that exists while `abandon` removes a deposit's content."""
    return f"{place}/content/{folder_start(key)}given-up"


def list_deposit_content(objects: Objects, place: str, key: str) -> list[str]:
    """List the content of a deposit in a version, and its mark if it is being abandoned."""
    folder = f"{place}/content"
    start = f"{folder}/{folder_start(key)}"
    return [entry.key for entry in objects.list(folder) if entry.key.startswith(start)]


def remove_deposit_content(objects: Objects, place: str, key: str) -> None:
    """Remove the content of a deposit in a version; the mark stays."""
    for content in list_deposit_content(objects, place, key):
        if content != abandoned_mark(place, key):
            objects.delete(content)


def is_whole(
    objects: Objects, root: str, inventory: Inventory, entries: Iterable[StoredEntry]
) -> bool:
    """Whether all content of the newest version exists.

    A listing may miss a file that is being rewritten, so missing files are checked by key.
    """
    listed = {entry.key for entry in entries}
    keys = (f"{root}/{path}" for paths in inventory.manifest.values() for path in paths)
    newest = {key for key in keys if key.startswith(f"{root}/{inventory.head}/")}
    return all(objects.exists(key) for key in newest - listed)


class StoredVersion(Struct, frozen=True):
    """A stored version.

    `location` is the key of the object's root, `digest` the sha512 of the version's inventory.
    `size` and `files` are the totals of its state. `is_new` is False if the deposit had made it
    before. `changed` has, by name, the digests of the files that the version before does not have.
    """

    ark: str
    version: int
    location: str
    digest: str
    size: int
    files: int
    is_new: bool
    changed: Mapping[str, str]


class StoredFile(Struct, frozen=True):
    """A file of a version; `size` is None if its content is missing in the store.

    `modified` and `mime` are from the depositor's manifest.
    """

    name: str
    sha512: str
    size: int | None
    key: str
    modified: str | None = None
    mime: str | None = None


class _LoadedInventory(Struct, frozen=True):
    inventory: Inventory
    content: bytes


class Depository:
    """An OCFL storage root with its objects."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.url = objects.url

    def prepare(self) -> None:
        """Create the storage root unless it exists; concurrent calls are harmless."""
        make_root(self._objects)

    def store(
        self,
        ark: str,
        key: str,
        files: Sequence[NewFile],
        *,
        update: bool,
        who: str,
        message: str,
        now: Micros,
        by_digest: bool = False,
    ) -> StoredVersion:
        """Store the object's next version, once for each deposit `key`.

        With `update` the files are added to those of the version before; without it they are all
        files of the version. Inherited files must be in the store with their size, and with their
        digest if `by_digest`; else the deposit is Invalid. Callers ensure that one process at a
        time stores to an ARK. If two do, the second gets a Conflict at the version's inventory.
        """
        ocfl_inventory.check_key(key)
        check_files(files)
        root = ocfl_inventory.object_root(ark)
        while True:
            before = self._finish_version(ark, root)
            if before and before.inventory.number_of(key):
                return self._stored(before, root, key)
            names = state_after(before.inventory if before and update else None, files)
            folder = ocfl_inventory.content_folder(key, ((f.name, f.sha512) for f in files))
            inventory = ocfl_inventory.next_inventory(
                before.inventory if before else None,
                ark,
                names,
                folder=folder,
                key=key,
                who=who,
                message=message,
                now=now,
            )
            if before is not None:
                self._check_earlier(root, before.inventory, names, files, by_digest=by_digest)
            if self._put_content(root, before.inventory if before else None, inventory, files):
                break
        new = _LoadedInventory(inventory, inventory.encode())
        if not self._decide(root, new, key):
            announced = self._finish_version(ark, root)
            return self._stored(announced or new, root, key)
        if not self._announce(root, new):
            self._withdraw(ark, f"{root}/{inventory.head}", key)
            raise Conflict(f"deposit {key} of {ark} was abandoned while it was being stored")
        return self._stored(new, root, key, is_new=True, files=files)

    def abandon(self, ark: str, key: str) -> None:
        """Remove the content of a deposit that will never be repeated.

        A version that the deposit has decided stays and is announced. After a crash, call this
        again.
        """
        root = ocfl_inventory.object_root(ark)
        current = self._load(ark, f"{root}/{INVENTORY}")
        if current is not None:
            self._clear(root, current.inventory)
        place = f"{root}/v{current.inventory.head_number + 1 if current else 1}"
        if list_deposit_content(self._objects, place, key):
            self._objects.put(abandoned_mark(place, key), b"")
            if not self._objects.exists(f"{place}/{INVENTORY}"):
                remove_deposit_content(self._objects, place, key)
            self._objects.delete(abandoned_mark(place, key))
        self._withdraw(ark, place, key)
        self._finish_version(ark, root)

    def read(self, ark: str) -> Inventory:
        """Read the inventory of an object, or raise NotFound."""
        current = self._load(ark, f"{ocfl_inventory.object_root(ark)}/{INVENTORY}")
        if current is None:
            raise NotFound(f"there is no object {ark} in {self._objects.url}")
        return current.inventory

    def find(self, ark: str, key: str) -> StoredVersion | None:
        """Return the version that a deposit made of an object, or None."""
        root = ocfl_inventory.object_root(ark)
        current = self._load(ark, f"{root}/{INVENTORY}")
        if current is None or current.inventory.number_of(key) is None:
            return None
        return self._stored(current, root, key)

    def is_free(self, ark: str, key: str) -> bool:
        """Whether the object's path is empty or has an object of this deposit."""
        root = ocfl_inventory.object_root(ark)
        if next(iter(self._objects.list(root)), None) is None:
            return True
        current = self._load(ark, f"{root}/{INVENTORY}") or self._load(
            ark, f"{root}/v1/{INVENTORY}"
        )
        return current is not None and current.inventory.number_of(key) is not None

    def finish_version(self, ark: str) -> None:
        """Announce a version that a killed writer decided, so that readers see it."""
        self._finish_version(ark, ocfl_inventory.object_root(ark))

    def described_files(self, ark: str, version: int | None = None) -> list[StoredFile]:
        """List the files of a version with the fields of the depositor's manifest.

        In comparison to `files` it costs one more request for each storage manifest that it reads.
        """
        files = self.files(ark, version)
        root, inventory = ocfl_inventory.object_root(ark), self.read(ark)
        missing = {(file.name, file.sha512) for file in files if file.name.startswith(_PRODUCER)}
        rows: dict[tuple[str, str], checkm.CheckmRow] = {}
        for row in listed_rows(self._objects, root, inventory, version):
            rows.setdefault((f"{_PRODUCER}{row.name}", row.digest or ""), row)
            if missing <= rows.keys():
                break
        return [_described(file, rows.get((file.name, file.sha512))) for file in files]

    def files(self, ark: str, version: int | None = None) -> list[StoredFile]:
        """List the files of a version, or of the newest, by name."""
        inventory = self.read(ark)
        names = _version(inventory, version).names()
        root = ocfl_inventory.object_root(ark)
        sizes = self._sizes(root)
        keys = {digest: f"{root}/{inventory.content_of(digest)}" for digest in names.values()}
        return [
            StoredFile(name, digest, sizes.get(keys[digest]), keys[digest])
            for name, digest in sorted(names.items())
        ]

    def open_file(
        self, ark: str, name: str, version: int | None = None
    ) -> AbstractContextManager[Iterator[bytes]]:
        """Open one file as a stream of chunks."""
        inventory = self.read(ark)
        digest = _version(inventory, version).names().get(name)
        if digest is None:
            raise NotFound(f"there is no file {name!r} in {ark}")
        root = ocfl_inventory.object_root(ark)
        return self._objects.get_stream(f"{root}/{inventory.content_of(digest)}")

    def read_file(self, ark: str, name: str, version: int | None = None) -> bytes | None:
        """Read one small file of a version, or of the newest; None if there is no object or file.

        Raises Invalid, which names the file, if its content is missing or damaged.
        """
        root = ocfl_inventory.object_root(ark)
        current = self._load(ark, f"{root}/{INVENTORY}")
        digest = _version(current.inventory, version).names().get(name) if current else None
        if current is None or digest is None:
            return None
        key = f"{root}/{current.inventory.content_of(digest)}"
        try:
            content = self._objects.get(key)
        except NotFound:
            content = b""
        if ocfl_inventory.sha512(content) != digest:
            raise Invalid(
                f"{name} of {ark} is missing or damaged ({key} in {self._objects.url}); restore it "
                "and resume the job"
            )
        return content

    def verify(self, ark: str) -> list[str]:
        """Read every byte of the object; return its faults."""
        return verify_object(self._objects, ark)

    def lost_files(self, ark: str, expected: Mapping[int, int]) -> list[str]:
        """List missing files and files of another size, without reading them.

        `expected` has the recorded bytes of each version.
        """
        return lost_files(self._objects, self.read(ark), expected)

    def _load(self, ark: str, key: str) -> _LoadedInventory | None:
        try:
            content = self._objects.get(key)
        except NotFound:
            return None
        return _LoadedInventory(ocfl_inventory.decode(content, ark, key), content)

    def _finish_version(self, ark: str, root: str) -> _LoadedInventory | None:
        """Announce a version that a killed writer decided; return the current object."""
        current = self._load(ark, f"{root}/{INVENTORY}")
        number = current.inventory.head_number + 1 if current else 1
        decided = self._load(ark, f"{root}/v{number}/{INVENTORY}")
        if decided is None:
            if current is not None:
                self._repair_sidecar(root, current)
            return current
        earlier = {**decided.inventory.versions}
        earlier.pop(f"v{number}", None)
        if earlier != (current.inventory.versions if current else {}):
            raise Invalid(
                f"{root}/v{number}/{INVENTORY} does not follow from the version before it; "
                f"verify {ark} and remove what does not belong to it"
            )
        if not self._announce(root, decided):
            raise Conflict(
                f"{root}/v{number}/{INVENTORY} names missing content, or is being abandoned at "
                f"this moment; if it stays so, verify {ark} and remove what does not belong to it"
            )
        return decided

    def _repair_sidecar(self, root: str, current: _LoadedInventory) -> None:
        expected = ocfl_inventory.sidecar(current.content)
        try:
            if self._objects.get(f"{root}/{SIDECAR}").split()[:1] == expected.split()[:1]:
                return
        except NotFound:
            pass
        copy = self._objects.get(f"{root}/{current.inventory.head}/{INVENTORY}")
        if copy != current.content:
            raise Invalid(
                f"{root}/{INVENTORY} is damaged: neither its digest nor the copy in "
                f"{current.inventory.head} agree with it; restore it before the next deposit"
            )
        self._objects.put(f"{root}/{SIDECAR}", expected)
        # A later version may have been announced meanwhile; its digest was just overwritten.
        now = self._load(current.inventory.id, f"{root}/{INVENTORY}")
        if now is not None and now.content != current.content:
            self._repair_sidecar(root, now)

    def _check_earlier(
        self,
        root: str,
        before: Inventory,
        names: Mapping[str, str],
        files: Sequence[NewFile],
        *,
        by_digest: bool,
    ) -> None:
        """Check the content of earlier versions that the next one inherits; costs one listing.

        Damaged content that the deposit brings again is stored again under the same key.
        """
        sizes = self._sizes(root)
        redeposited = {file.sha512: file for file in files if file.sha512 in before.manifest}
        for digest, file in redeposited.items():
            key = f"{root}/{before.content_of(digest)}"
            is_good = sizes.get(key) == file.size
            if not is_good or (by_digest and digest_of(self._objects, key) != digest):
                log.warning("stored damaged content again: key=%s ark=%s", key, before.id)
                self._objects.put(key, checked_bytes(file), size=file.size)
        old = {n: d for n, d in names.items() if d in before.manifest and d not in redeposited}
        check_inherited(self._objects, root, before, old, sizes, by_digest=by_digest)

    def _put_content(
        self, root: str, before: Inventory | None, after: Inventory, files: Sequence[NewFile]
    ) -> bool:
        """Store new content, and verify the digest of every file while reading it.

        Return False if the version was decided meanwhile: the caller has to start again.
        """
        old = before.manifest if before else {}
        new = {d: f"{root}/{after.content_of(d)}" for d in after.manifest if d not in old}
        existing_sizes = {
            entry.key: entry.size for entry in self._objects.list(f"{root}/{after.head}")
        }
        if f"{root}/{after.head}/{INVENTORY}" in existing_sizes:
            return False
        try:
            for file in files:
                key = new.pop(file.sha512, "")
                if not key:
                    for _ in checked_bytes(file):
                        pass
                elif (
                    existing_sizes.get(key) != file.size
                    or digest_of(self._objects, key) != file.sha512
                ):
                    self._objects.put(key, checked_bytes(file), size=file.size)
        except (PenstockError, OSError):
            # The files of a late writer may be missing: another worker stored and removed them.
            with suppress(PenstockError):
                self._yield_to(root, after)
            raise
        return True

    def _yield_to(self, root: str, inventory: Inventory) -> _LoadedInventory | None:
        """Return the version that was decided instead, and remove the content of this deposit."""
        decided = self._load(inventory.id, f"{root}/{inventory.head}/{INVENTORY}")
        if decided is not None:
            self._clear(root, decided.inventory)
        return decided

    def _decide(self, root: str, new: _LoadedInventory, key: str) -> bool:
        """Put the version's inventory; False if the same deposit has already put one."""
        where = f"{root}/{new.inventory.head}/{INVENTORY}"
        try:
            self._objects.put(where, new.content, if_absent=True)
        except Conflict as conflict:
            other = self._yield_to(root, new.inventory)
            if other and other.inventory.number_of(key):
                return False
            raise Conflict(
                f"another deposit is making version {new.inventory.head_number} of "
                f"{new.inventory.id}; run this one again when it has ended"
            ) from conflict
        return True

    def _announce(self, root: str, decided: _LoadedInventory) -> bool:
        """Make a decided version visible to readers, unless they see a later one already.

        A late writer must not make an older version visible again, so this reads the current
        inventory before, and checks for a later version after. False if the version is abandoned or
        incomplete.
        """
        inventory, sidecar = decided.inventory, ocfl_inventory.sidecar(decided.content)
        key = inventory.versions[inventory.head].key
        # Check the mark before the content: `abandon` removes the mark after the content.
        if key and self._objects.exists(abandoned_mark(f"{root}/{inventory.head}", key)):
            return False
        if not self._clear(root, inventory):
            return False
        self._objects.put(f"{root}/{inventory.head}/{SIDECAR}", sidecar)
        current = self._load(inventory.id, f"{root}/{INVENTORY}")
        if current is None or current.inventory.head_number <= inventory.head_number:
            self._objects.put(f"{root}/{INVENTORY}", decided.content)
            self._objects.put(f"{root}/{SIDECAR}", sidecar)
        later = f"{root}/v{inventory.head_number + 1}/{INVENTORY}"
        if (newer := self._load(inventory.id, later)) is not None:
            self._announce(root, newer)
        return True

    def _clear(self, root: str, inventory: Inventory) -> bool:
        """Remove content that killed or late writers left in decided versions.

        Return False, and remove nothing, if content of the newest version is missing.
        """
        entries = list(self._objects.list(root))
        if not is_whole(self._objects, root, inventory, entries):
            return False
        named_paths = {path for paths in inventory.manifest.values() for path in paths}
        for version in inventory.versions:
            named_paths |= {f"{version}/{INVENTORY}", f"{version}/{SIDECAR}"}
        is_declared = False
        for entry in entries:
            path = entry.key.removeprefix(f"{root}/")
            is_declared |= path == ocfl_inventory.DECLARATION
            if path.partition("/")[0] in inventory.versions and path not in named_paths:
                self._objects.delete(entry.key)
        if not is_declared:
            self._objects.put(
                f"{root}/{ocfl_inventory.DECLARATION}", ocfl_inventory.DECLARATION_BYTES
            )
        return True

    def _withdraw(self, ark: str, place: str, key: str) -> None:
        """Withdraw a version that a deposit decided while its content was being removed."""
        decided = self._load(ark, f"{place}/{INVENTORY}")
        if decided is None or decided.inventory.versions[decided.inventory.head].key != key:
            return
        root = ocfl_inventory.object_root(ark)
        if not is_whole(self._objects, root, decided.inventory, self._objects.list(root)):
            remove_deposit_content(self._objects, place, key)
            self._objects.delete(f"{place}/{INVENTORY}")

    def _stored(
        self,
        current: _LoadedInventory,
        root: str,
        key: str,
        *,
        is_new: bool = False,
        files: Sequence[NewFile] = (),
    ) -> StoredVersion:
        inventory = current.inventory
        number = inventory.number_of(key) or inventory.head_number
        names = _version(inventory, number).names()
        sizes = {file.sha512: file.size for file in files}
        if not sizes.keys() >= set(names.values()):
            listed = self._sizes(root)
            for digest in set(names.values()):
                sizes[digest] = listed.get(f"{root}/{inventory.content_of(digest)}", 0)
        content = current.content
        if number != inventory.head_number:
            content = self._objects.get(f"{root}/v{number}/{INVENTORY}")
        return StoredVersion(
            ark=inventory.id,
            version=number,
            location=root,
            digest=ocfl_inventory.sha512(content),
            size=sum(sizes[digest] for digest in names.values()),
            files=len(names),
            is_new=is_new,
            changed=dict(names.items() - _names_before(inventory, number).items()),
        )

    def _sizes(self, root: str) -> dict[str, int]:
        return {entry.key: entry.size for entry in self._objects.list(root)}


def _names_before(inventory: Inventory, number: int) -> dict[str, str]:
    version = inventory.version(number - 1)
    return {} if version is None else version.names()


def _described(file: StoredFile, row: checkm.CheckmRow | None) -> StoredFile:
    if row is None:
        return file
    return replace(file, modified=row.modified, mime=row.mime)


def _version(inventory: Inventory, number: int | None) -> Version:
    version = inventory.version(number)
    if version is None:
        raise NotFound(
            f"{inventory.id} has no version {number}; its newest is {inventory.head_number}"
        )
    return version
