"""A task: one run of a workload on a lot, or on a part of one, and what the workload sees of it.

It goes to other processes and machines: it knows the object store, and nothing of the database.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from penstock.arcs.engine.leases import Lease
from penstock.arcs.spec import ByName, Workload
from penstock.arcs.workload.shell import CommandRules
from penstock.catalog.events.known_facets import DatasetName
from penstock.clock import format_time, system_clock
from penstock.errors import Invalid, NotFound
from penstock.lots.manifests import (
    RETRY_MARK,
    Check,
    DatasetRef,
    Item,
    Manifest,
    ManifestNote,
    data_folder,
)
from penstock.objects import Objects
from penstock.objects.uris import find_object
from penstock.schema.lots import UriType
from penstock.states import ManifestState

ERROR_CHARS_MAX = 2000
_ALGORITHM = "sha-256"


class InputLot(Struct, frozen=True):
    """A lot to read: the version that the claim pinned, and what it consists of."""

    namespace: str
    name: str
    version: str
    state: ManifestState
    uris: tuple[Item, ...]


class Task(Struct, frozen=True, kw_only=True):
    """What is to be run, and all it needs; it can be sent anywhere."""

    arc: str
    namespace: str
    lot: str
    part: str
    attempt: str
    run_id: str
    workload: Workload
    inputs: tuple[InputLot, ...]
    outputs: tuple[DatasetRef, ...]
    may_be_empty: tuple[DatasetRef, ...] = ()  # the outputs that need no word for no data
    checks: tuple[str, ...] = ()
    tries: int = 1
    objects: str  # the URL of the object store
    is_marked: bool = False  # where that is a folder, it has the mark of a store of ours
    lease: Lease | None = None  # kept from where the task runs; None if the engine alone keeps it
    rules: CommandRules = CommandRules()
    trace: str = ""  # the span that had it run, as a `traceparent`; nothing if traces are off


def again(task: Task) -> Task:
    """The task for another worker; it writes where a lost one that is not dead does not write."""
    claim = task.attempt.partition(RETRY_MARK)[0]
    attempt = f"{claim}{RETRY_MARK}{task.tries}"
    return msgspec.structs.replace(task, attempt=attempt, tries=task.tries + 1)


class TaskResult(Struct, frozen=True):
    """What became of a task: the manifests it wrote, or what went wrong, and what it left."""

    notes: tuple[tuple[DatasetName, ManifestNote], ...] = ()
    error: str = ""
    checks: tuple[tuple[DatasetName, tuple[Check, ...]], ...] = ()
    is_away: bool = False  # it is not the workload's fault: something that it needs did not answer


class Context:
    """What a workload function is given: the lot, what to read, and where to write."""

    def __init__(self, task: Task, store: Objects) -> None:
        self._task = task
        self._store = store
        self._items: dict[DatasetRef, dict[str, Item]] = {ref: {} for ref in task.outputs}
        self._checks: dict[DatasetRef, list[Check]] = {ref: [] for ref in task.outputs}
        self._listed: set[DatasetRef] = set()  # outputs that consist of the named objects only
        self._empty: set[DatasetRef] = set(task.may_be_empty)  # outputs that may have no data
        self._inputs = ByName((lot.namespace, lot.name, lot) for lot in task.inputs)
        self._outputs = ByName((ref.namespace, ref.name, ref) for ref in task.outputs)
        self.lost = threading.Event()

    @property
    def lot(self) -> str:
        """The lot to make."""
        return self._task.lot

    @property
    def part(self) -> str:
        """The part of it; nothing, if it is not split."""
        return self._task.part

    @property
    def inputs(self) -> Mapping[str, InputLot]:
        """The lots to read, by the names of their datasets; by NAMESPACE/NAME if two share one."""
        return self._inputs

    @property
    def uris(self) -> Sequence[str]:
        """Everything there is to read."""
        return [item.uri for lot in self._task.inputs for item in lot.uris]

    def location(self, output: str | None = None) -> str:
        """The URL under which to write; it ends in /."""
        return self._location(self._output(output))

    def locations(self) -> Sequence[tuple[DatasetRef, str]]:
        """Each output, and the URL under which to write it."""
        return [(ref, self._location(ref)) for ref in self._task.outputs]

    def read(self, uri: str) -> bytes:
        """An object that a manifest names, in whatever store it is."""
        store, key = find_object(self._store, uri)
        return store.get(key)

    def path(self, uri: str) -> Path | None:
        """The file that a URI names, if its store is a folder of this machine."""
        store, key = find_object(self._store, uri)
        return store.path(key.rstrip("/"))

    def write(
        self, name: str, data: bytes | Path | Iterable[bytes], output: str | None = None
    ) -> str:
        """Write an object of the output under a name; gives its URI."""
        ref = self._output(output)
        key = f"{self._folder(ref)}{name}"
        self._store.put(key, data)
        uri = f"{self._store.url}/{key}"
        self._items[ref][uri] = Item(uri)
        return uri

    def add(self, uri: str, output: str | None = None) -> None:
        """Name an object that the workload has put under the location by itself."""
        self._items[self._output(output)][uri] = Item(uri)

    def only(self, uris: Iterable[str], output: str | None = None) -> None:
        """Declare that an output consists of these objects and of nothing else.

        An empty list does not make an output empty: `empty` does.
        """
        self._listed.add(self._output(output))
        for uri in uris:
            self.add(uri, output)

    def empty(self, output: str | None = None) -> None:
        """Declare that this lot, or one output of it, rightly has no data.

        A workload that writes nothing and does not call this fails.
        """
        refs = self._task.outputs if output is None else (self._output(output),)
        self._listed.update(refs)
        self._empty.update(refs)

    def check(
        self, name: str, success: bool, *, field: str = "", detail: str = "", output: str = ""
    ) -> bool:
        """Say what a check of the output said; if it failed, the lot is held for a person."""
        of_part = f"{name} in part {self.part}" if self.part else name
        ref = self._output(output or None)
        self._checks[ref].append(Check(of_part, bool(success), field, detail))
        return bool(success)

    def checks(self) -> tuple[tuple[DatasetName, tuple[Check, ...]], ...]:
        """What was said about each output."""
        return tuple(
            (DatasetName(ref.namespace, ref.name), tuple(said))
            for ref, said in self._checks.items()
            if said
        )

    def made(self, output: str | None = None) -> Sequence[str]:
        """The URIs of what was made so far."""
        return [item.uri for item in self._made(self._output(output))]

    def told(self, ref: DatasetRef) -> Sequence[str] | None:
        """The URIs of which an output is said to consist; None if it is all that is there."""
        return list(self._items[ref]) if ref in self._listed else None

    def manifests(self) -> list[Manifest]:
        """What was made, one manifest for each output; raises Invalid if one has no data."""
        return [self._manifest(ref) for ref in self._task.outputs]

    def _manifest(self, ref: DatasetRef) -> Manifest:
        measured = tuple(_measured(self._store, item) for item in self._made(ref))
        if not measured and ref not in self._empty:
            raise Invalid(
                f"the workload wrote nothing for output {ref.namespace}/{ref.name}; if there is "
                'rightly no data, call context.empty(), let a command write {"empty": true} to '
                '$PENSTOCK_MANIFEST, or declare the output with empty = "allow"'
            )
        said = tuple(self._checks[ref])
        state = ManifestState.COMPLETE if measured else ManifestState.EMPTY
        return Manifest(
            state=state if all(check.success for check in said) else ManifestState.PARTIAL,
            checks=said,
            lot=self.lot,
            dataset=ref,
            uri_type=UriType.IDENTIFIER,
            uris=measured,
            attempt=self._task.attempt,
            part=self.part,
            created=format_time(system_clock()),
        )

    def _made(self, ref: DatasetRef) -> list[Item]:
        items = list(self._items[ref].values())
        if not items and ref not in self._listed:
            found = listed_keys(self._store, self._folder(ref).rstrip("/"))
            items = [Item(f"{self._store.url}/{key}") for key in found]
        return items

    def _folder(self, ref: DatasetRef) -> str:
        return data_folder(ref, self.lot, self._task.attempt, self.part)

    def _location(self, ref: DatasetRef) -> str:
        return f"{self._store.url}/{self._folder(ref)}"

    def _output(self, name: str | None) -> DatasetRef:
        if name is None:
            return self._task.outputs[0]
        try:
            return self._outputs[name]
        except KeyError:
            known = ", ".join(self._outputs)
            raise Invalid(
                f"{name!r} is no output of arc {self._task.arc}; its outputs are {known}"
            ) from None


def plain(text: str) -> str:
    """What went wrong, in a text that every database and object store takes."""
    writable = text.encode(errors="backslashreplace").decode().replace("\x00", "")
    return writable[:ERROR_CHARS_MAX]


def listed_keys(store: Objects, folder: str = "") -> list[str]:
    """The keys of all that a workload has left in a folder; a name that cannot be one is told."""
    for odd in store.nameless(folder):
        raise Invalid(f"the workload left a file that cannot be listed; {odd.words}")
    return sorted(entry.key for entry in store.list(folder))


def key_of(store: Objects, uri: str) -> str:
    """The key of an object in the store that a URI names."""
    base = f"{store.url}/"
    if not uri.startswith(base):
        raise Invalid(f"{uri} is not in the object store {store.url}")
    return uri.removeprefix(base)


def _measured(store: Objects, item: Item) -> Item:
    """The item with its size and digest, if it is there."""
    key = key_of(store, item.uri)
    size, digest = 0, hashlib.sha256()
    try:
        with store.get_stream(key) as chunks:
            for chunk in chunks:
                size += len(chunk)
                digest.update(chunk)
    except NotFound:
        raise NotFound(f"the workload names {item.uri}, which is not there") from None
    return msgspec.structs.replace(item, size=size, digest=f"{_ALGORITHM}:{digest.hexdigest()}")
