"""Versioned, immutable objects on an object store, as OCFL 1.1 describes them.

A version is written in this order, and each write is on disk before the next begins:

1. `vN/content/DEPOSIT/…`, what no earlier version has, in a folder of this deposit's own
2. `vN/inventory.json`, created only if absent: from here on the version is decided
3. `0=ocfl_object_1.1`, for a new object
4. `vN/inventory.json.sha512`
5. `inventory.json`: from here on readers see the version
6. `inventory.json.sha512`

Whoever is killed before 2 leaves content that no inventory names: the same deposit uses it when it
is done again, whoever announces this version or a later one removes it, and so does `give_up` when
the deposit will never be done again. Whoever is killed after 2 leaves a version that is whole but
not announced; the next call of `store`, by whichever deposit, announces it first. In between
readers see the version before. An object store cannot write six keys at once, so until then a
validator finds the traces of the killed version, and a first version is no object yet.

Whoever sleeps meanwhile and wakes late writes into its own folder, finds the version decided, and
removes what it wrote: it changes nothing that an inventory names. For the sake of sleepers nothing
else is removed from a version that is not decided: one may have found its content there and go on.
One whose deposit is given up meanwhile puts its inventory and then looks for a mark and for its
content; `give_up` puts the mark, and only then looks for an inventory and removes content. So one
of the two always sees the other.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress

from msgspec import Struct
from msgspec.structs import replace

from penstock.clock import Micros
from penstock.errors import Conflict, Invalid, NotFound, PenstockError
from penstock.ingest.archive.ocfl import inventory as ocfl_inventory
from penstock.ingest.archive.ocfl.inherited import check_inherited, listed_rows, lost_files
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
from penstock.ingest.archive.ocfl.verify import digest_of, make_root, verify_object
from penstock.ingest.intake import checkm
from penstock.objects import Entry, Objects


def mark_of(place: str, key: str) -> str:
    """What lies in a version while the content of a deposit that was given up is removed."""
    return f"{place}/content/{folder_start(key)}given-up"


def begun(objects: Objects, place: str, key: str) -> list[str]:
    """The content that a deposit has put into a version, and the mark if it was given up."""
    folder = f"{place}/content"
    start = f"{folder}/{folder_start(key)}"
    return [entry.key for entry in objects.list(folder) if entry.key.startswith(start)]


def remove_begun(objects: Objects, place: str, key: str) -> None:
    """Remove the content that a deposit has put into a version; the mark stays."""
    for content in begun(objects, place, key):
        if content != mark_of(place, key):
            objects.delete(content)


def is_whole(objects: Objects, root: str, inventory: Inventory, entries: Iterable[Entry]) -> bool:
    """Whether the content of the newest version is there.

    A listing may miss what is written again meanwhile: whatever it lacks is looked for by name.
    """
    listed = {entry.key for entry in entries}
    named = (f"{root}/{path}" for paths in inventory.manifest.values() for path in paths)
    newest = {key for key in named if key.startswith(f"{root}/{inventory.head}/")}
    return all(objects.exists(key) for key in newest - listed)


log = logging.getLogger(__name__)

_PRODUCER = "producer/"


class Stored(Struct, frozen=True):
    """A version that is stored. `location` is the key of the object's root, `digest` the sha512 of
    the version's inventory, `size` and `files` are what its state holds; `is_new` is False if the
    deposit had made it before. `changed` has the digests of the files that the version before
    does not have, by their names.
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
    """A file of a version; `size` is None if its content is missing from the store.

    `modified` and `mime` are what the depositor's manifest gave.
    """

    name: str
    sha512: str
    size: int | None
    key: str
    modified: str | None = None
    mime: str | None = None


class _Found(Struct, frozen=True):
    inventory: Inventory
    content: bytes


class Depository:
    """An OCFL storage root with its objects."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.url = objects.url

    def prepare(self) -> None:
        """Make the storage root; nothing happens if it is there, and racing is harmless."""
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
    ) -> Stored:
        """Make the object's next version, once for each deposit `key`, however often it is called.

        With `update` the files are added to those of the version before; without it they are all
        that the version holds. Files that are taken over must be in the store with their size, and
        with their digest if `by_digest`; else the deposit is Invalid. Callers see to it that one
        process at a time stores to an ARK: a second one is refused with Conflict where the two
        meet, at the version's inventory.
        """
        ocfl_inventory.check_key(key)
        check_files(files)
        root = ocfl_inventory.object_root(ark)
        while True:
            before = self._settle(ark, root)
            if before and before.inventory.number_of(key):
                return self._stored(before, root, key)
            names = state_after(before.inventory if before and update else None, files)
            folder = ocfl_inventory.content_folder(key, ((f.name, f.sha512) for f in files))
            inventory = ocfl_inventory.next_inventory(
                before.inventory if before else None,
                ark, names, folder=folder, key=key, who=who, message=message, now=now,
            )  # fmt: skip
            if before is not None:
                self._check_earlier(root, before.inventory, names, files, by_digest=by_digest)
            if self._put_content(root, before.inventory if before else None, inventory, files):
                break
        made = _Found(inventory, inventory.encode())
        if not self._decide(root, made, key):
            settled = self._settle(ark, root)
            return self._stored(settled or made, root, key)
        if not self._announce(root, made):
            self._withdraw(ark, f"{root}/{inventory.head}", key)
            raise Conflict(f"deposit {key} of {ark} was given up while it was being stored")
        return self._stored(made, root, key, is_new=True, files=files)

    def give_up(self, ark: str, key: str) -> None:
        """Remove what a deposit that will never be done again has begun to store.

        What it has decided stays, and is announced. Killed half-way, it is to be called again.
        """
        root = ocfl_inventory.object_root(ark)
        current = self._load(ark, f"{root}/{INVENTORY}")
        if current is not None:
            self._clear(root, current.inventory)
        place = f"{root}/v{current.inventory.head_number + 1 if current else 1}"
        if begun(self._objects, place, key):
            self._objects.put(mark_of(place, key), b"")
            if not self._objects.exists(f"{place}/{INVENTORY}"):
                remove_begun(self._objects, place, key)
            self._objects.delete(mark_of(place, key))
        self._withdraw(ark, place, key)
        self._settle(ark, root)

    def read(self, ark: str) -> Inventory:
        """What the object is, with every version."""
        found = self._load(ark, f"{ocfl_inventory.object_root(ark)}/{INVENTORY}")
        if found is None:
            raise NotFound(f"there is no object {ark} in {self._objects.url}")
        return found.inventory

    def find(self, ark: str, key: str) -> Stored | None:
        """The version that a deposit has made of an object, if it has."""
        root = ocfl_inventory.object_root(ark)
        found = self._load(ark, f"{root}/{INVENTORY}")
        if found is None or found.inventory.number_of(key) is None:
            return None
        return self._stored(found, root, key)

    def is_free(self, ark: str, key: str) -> bool:
        """Whether nothing lies where the object would be, or if so, what this deposit has made."""
        root = ocfl_inventory.object_root(ark)
        if next(iter(self._objects.list(root)), None) is None:
            return True
        found = self._load(ark, f"{root}/{INVENTORY}") or self._load(ark, f"{root}/v1/{INVENTORY}")
        return found is not None and found.inventory.number_of(key) is not None

    def settle(self, ark: str) -> None:
        """Finish a version that a killed writer had decided, so that readers see it."""
        self._settle(ark, ocfl_inventory.object_root(ark))

    def described_files(self, ark: str, version: int | None = None) -> list[StoredFile]:
        """List the files of a version with what their depositor's manifest gave about them.

        Costs one request more than `files` for each storage manifest that it reads.
        """
        files = self.files(ark, version)
        root, inventory = ocfl_inventory.object_root(ark), self.read(ark)
        missing = {(file.name, file.sha512) for file in files if file.name.startswith(_PRODUCER)}
        rows: dict[tuple[str, str], checkm.Row] = {}
        for row in listed_rows(self._objects, root, inventory, version):
            rows.setdefault((f"{_PRODUCER}{row.name}", row.digest or ""), row)
            if missing <= rows.keys():
                break
        return [_described(file, rows.get((file.name, file.sha512))) for file in files]

    def files(self, ark: str, version: int | None = None) -> list[StoredFile]:
        """The files of a version, or of the newest, by name."""
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
        """The bytes of one file, in chunks."""
        inventory = self.read(ark)
        digest = _version(inventory, version).names().get(name)
        if digest is None:
            raise NotFound(f"there is no file {name!r} in {ark}")
        root = ocfl_inventory.object_root(ark)
        return self._objects.get_stream(f"{root}/{inventory.content_of(digest)}")

    def read_file(self, ark: str, name: str, version: int | None = None) -> bytes | None:
        """Read one small file of a version, or the newest; None if there is no object or file.

        Raises Invalid, which names the file, if the store does not have its content any more.
        """
        root = ocfl_inventory.object_root(ark)
        found = self._load(ark, f"{root}/{INVENTORY}")
        digest = _version(found.inventory, version).names().get(name) if found else None
        if found is None or digest is None:
            return None
        key = f"{root}/{found.inventory.content_of(digest)}"
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
        """Read every byte of the object again, and say what is wrong with it."""
        return verify_object(self._objects, ark)

    def lost_files(self, ark: str, expected: Mapping[int, int]) -> list[str]:
        """List the files that are missing or have another size, without reading any.

        `expected` has the bytes that each version was recorded with.
        """
        return lost_files(self._objects, self.read(ark), expected)

    def _load(self, ark: str, key: str) -> _Found | None:
        try:
            content = self._objects.get(key)
        except NotFound:
            return None
        return _Found(ocfl_inventory.decode(content, ark, key), content)

    def _settle(self, ark: str, root: str) -> _Found | None:
        """Finish what a killed writer had decided; give the object as it is then."""
        current = self._load(ark, f"{root}/{INVENTORY}")
        number = current.inventory.head_number + 1 if current else 1
        decided = self._load(ark, f"{root}/v{number}/{INVENTORY}")
        if decided is None:
            if current is not None:
                self._mend_sidecar(root, current)
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
                f"{root}/v{number}/{INVENTORY} names content that is not there, or is given up at "
                f"this moment; if it stays so, verify {ark} and remove what does not belong to it"
            )
        return decided

    def _mend_sidecar(self, root: str, current: _Found) -> None:
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
        # A later version may have been announced meanwhile, with the digest just overwritten.
        now = self._load(current.inventory.id, f"{root}/{INVENTORY}")
        if now is not None and now.content != current.content:
            self._mend_sidecar(root, now)

    def _check_earlier(
        self,
        root: str,
        before: Inventory,
        names: Mapping[str, str],
        files: Sequence[NewFile],
        *,
        by_digest: bool,
    ) -> None:
        """Check the content of earlier versions that the next one lists; costs one listing.

        Content that the deposit brings again, and that is damaged, is stored again in its place.
        """
        sizes = self._sizes(root)
        brought = {file.sha512: file for file in files if file.sha512 in before.manifest}
        for digest, file in brought.items():
            key = f"{root}/{before.content_of(digest)}"
            is_good = sizes.get(key) == file.size
            if not is_good or (by_digest and digest_of(self._objects, key) != digest):
                log.warning("%s was damaged, and is stored again: ark=%s", key, before.id)
                self._objects.put(key, checked_bytes(file), size=file.size)
        old = {n: d for n, d in names.items() if d in before.manifest and d not in brought}
        check_inherited(self._objects, root, before, old, sizes, by_digest=by_digest)

    def _put_content(
        self, root: str, before: Inventory | None, after: Inventory, files: Sequence[NewFile]
    ) -> bool:
        """Store what is new, reading every file again: only the bytes of its digest are kept.

        False if the version has been decided meanwhile: whoever slept over that must begin anew.
        """
        old = before.manifest if before else {}
        new = {d: f"{root}/{after.content_of(d)}" for d in after.manifest if d not in old}
        left = {entry.key: entry.size for entry in self._objects.list(f"{root}/{after.head}")}
        if f"{root}/{after.head}/{INVENTORY}" in left:
            return False
        try:
            for file in files:
                key = new.pop(file.sha512, "")
                if not key:
                    for _ in checked_bytes(file):
                        pass
                elif left.get(key) != file.size or digest_of(self._objects, key) != file.sha512:
                    self._objects.put(key, checked_bytes(file), size=file.size)
        except (PenstockError, OSError):
            # Whoever slept finds its files gone: another has done it all, and cleared up before.
            with suppress(PenstockError):
                self._yield_to(root, after)
            raise
        return True

    def _yield_to(self, root: str, inventory: Inventory) -> _Found | None:
        """What was decided in place of this, without what this one wrote beside it."""
        decided = self._load(inventory.id, f"{root}/{inventory.head}/{INVENTORY}")
        if decided is not None:
            self._clear(root, decided.inventory)
        return decided

    def _decide(self, root: str, made: _Found, key: str) -> bool:
        """Put the version's inventory; False if this same deposit has put one already."""
        where = f"{root}/{made.inventory.head}/{INVENTORY}"
        try:
            self._objects.put(where, made.content, if_absent=True)
        except Conflict as conflict:
            other = self._yield_to(root, made.inventory)
            if other and other.inventory.number_of(key):
                return False
            raise Conflict(
                f"another deposit is making version {made.inventory.head_number} of "
                f"{made.inventory.id}; run this one again when that has ended"
            ) from conflict
        return True

    def _announce(self, root: str, found: _Found) -> bool:
        """Let readers see a version that is decided, unless they see a later one already.

        Whoever slept meanwhile, and comes last, must not take them back: so it looks before, and
        once more after. False if the version was given up, or is not whole.
        """
        inventory, sidecar = found.inventory, ocfl_inventory.sidecar(found.content)
        key = inventory.versions[inventory.head].key
        # First the mark, then the content: the mark is gone only after the content is.
        if key and self._objects.exists(mark_of(f"{root}/{inventory.head}", key)):
            return False
        if not self._clear(root, inventory):
            return False
        self._objects.put(f"{root}/{inventory.head}/{SIDECAR}", sidecar)
        current = self._load(inventory.id, f"{root}/{INVENTORY}")
        if current is None or current.inventory.head_number <= inventory.head_number:
            self._objects.put(f"{root}/{INVENTORY}", found.content)
            self._objects.put(f"{root}/{SIDECAR}", sidecar)
        later = f"{root}/v{inventory.head_number + 1}/{INVENTORY}"
        if (newer := self._load(inventory.id, later)) is not None:
            self._announce(root, newer)
        return True

    def _clear(self, root: str, inventory: Inventory) -> bool:
        """Remove what others, who were killed or came late, have left in decided versions.

        False, and nothing is removed, if content of the newest version is not there.
        """
        entries = list(self._objects.list(root))
        if not is_whole(self._objects, root, inventory, entries):
            return False
        named = {path for paths in inventory.manifest.values() for path in paths}
        for version in inventory.versions:
            named |= {f"{version}/{INVENTORY}", f"{version}/{SIDECAR}"}
        is_declared = False
        for entry in entries:
            path = entry.key.removeprefix(f"{root}/")
            is_declared |= path == ocfl_inventory.DECLARATION
            if path.partition("/")[0] in inventory.versions and path not in named:
                self._objects.delete(entry.key)
        if not is_declared:
            self._objects.put(
                f"{root}/{ocfl_inventory.DECLARATION}", ocfl_inventory.DECLARATION_BYTES
            )
        return True

    def _withdraw(self, ark: str, place: str, key: str) -> None:
        """Take back what a deposit decided when its content was already being removed."""
        decided = self._load(ark, f"{place}/{INVENTORY}")
        if decided is None or decided.inventory.versions[decided.inventory.head].key != key:
            return
        root = ocfl_inventory.object_root(ark)
        if not is_whole(self._objects, root, decided.inventory, self._objects.list(root)):
            remove_begun(self._objects, place, key)
            self._objects.delete(f"{place}/{INVENTORY}")

    def _stored(
        self,
        found: _Found,
        root: str,
        key: str,
        *,
        is_new: bool = False,
        files: Sequence[NewFile] = (),
    ) -> Stored:
        inventory = found.inventory
        number = inventory.number_of(key) or inventory.head_number
        names = _version(inventory, number).names()
        sizes = {file.sha512: file.size for file in files}
        if not sizes.keys() >= set(names.values()):
            listed = self._sizes(root)
            for digest in set(names.values()):
                sizes[digest] = listed.get(f"{root}/{inventory.content_of(digest)}", 0)
        content = found.content
        if number != inventory.head_number:
            content = self._objects.get(f"{root}/v{number}/{INVENTORY}")
        return Stored(
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


def _described(file: StoredFile, row: checkm.Row | None) -> StoredFile:
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
