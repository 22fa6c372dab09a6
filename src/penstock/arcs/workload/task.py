"""Tasks: one run of a workload on a lot or a part of it, and its view for the workload.

A task runs in other processes and on other machines. It uses the object store, not the database.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from penstock.arcs.engine.leases import TaskLease
from penstock.arcs.spec import ByName, Workload
from penstock.arcs.workload.shell import CommandRules
from penstock.catalog.events.known_facets import DatasetName
from penstock.clock import format_time, system_clock
from penstock.errors import Invalid, NotFound
from penstock.lots.manifests import (
    RETRY_MARK,
    DatasetRef,
    Item,
    Manifest,
    ManifestNote,
    QualityCheck,
    data_folder,
)
from penstock.objects import Objects
from penstock.objects.uris import find_object
from penstock.schema.lots import UriType
from penstock.states import ManifestState

ERROR_CHARS_MAX = 2000
_ALGORITHM = "sha-256"


class InputLot(Struct, frozen=True):
    """A lot to read: the version that the claim pinned, and its items."""

    namespace: str
    name: str
    version: str
    state: ManifestState
    uris: tuple[Item, ...]


class Task(Struct, frozen=True, kw_only=True):
    """A task with everything it needs, to be sent to a worker."""

    arc: str
    namespace: str
    lot: str
    part: str
    attempt: str
    run_id: str
    workload: Workload
    inputs: tuple[InputLot, ...]
    outputs: tuple[DatasetRef, ...]
    may_be_empty: tuple[DatasetRef, ...] = ()  # outputs that may be empty without a declaration
    checks: tuple[str, ...] = ()
    tries: int = 1
    objects: str  # the URL of the object store
    is_marked: bool = False  # a folder has the mark of an object store
    lease: TaskLease | None = None  # renewed by the task; None if the engine alone renews it
    rules: CommandRules = CommandRules()
    trace: str = ""  # the parent span as a `traceparent`; empty if traces are off


def task_for_another_worker(task: Task) -> Task:
    """Return the task for another worker, with an output location that the lost one does not
    use.
    """
    claim = task.attempt.partition(RETRY_MARK)[0]
    attempt = f"{claim}{RETRY_MARK}{task.tries}"
    return msgspec.structs.replace(task, attempt=attempt, tries=task.tries + 1)


class TaskResult(Struct, frozen=True):
    """The result of a task: its manifests and checks, or its error."""

    notes: tuple[tuple[DatasetName, ManifestNote], ...] = ()
    error: str = ""
    checks: tuple[tuple[DatasetName, tuple[QualityCheck, ...]], ...] = ()
    is_away: bool = False  # a service that it needs did not answer, so it costs no try


class Context:
    """The argument of a workload function: the lot, its inputs, and where to write."""

    def __init__(self, task: Task, store: Objects) -> None:
        self._task = task
        self._store = store
        self._items: dict[DatasetRef, dict[str, Item]] = {ref: {} for ref in task.outputs}
        self._checks: dict[DatasetRef, list[QualityCheck]] = {ref: [] for ref in task.outputs}
        self._listed: set[DatasetRef] = set()  # outputs that have only the added objects
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
        """The part to make; empty if the lot is not split."""
        return self._task.part

    @property
    def inputs(self) -> Mapping[str, InputLot]:
        """The lots to read, by dataset name; by NAMESPACE/NAME if two share a name."""
        return self._inputs

    @property
    def uris(self) -> Sequence[str]:
        """All URIs to read."""
        return [item.uri for lot in self._task.inputs for item in lot.uris]

    def location(self, output: str | None = None) -> str:
        """Return the URL under which to write; it ends in /."""
        return self._location(self._output(output))

    def locations(self) -> Sequence[tuple[DatasetRef, str]]:
        """Return each output, and the URL under which to write it."""
        return [(ref, self._location(ref)) for ref in self._task.outputs]

    def read(self, uri: str) -> bytes:
        """Read an object that a manifest names, in any store."""
        store, key = find_object(self._store, uri)
        return store.get(key)

    def path(self, uri: str) -> Path | None:
        """Return the file of a URI, if its store is a folder of this machine."""
        store, key = find_object(self._store, uri)
        return store.path(key.rstrip("/"))

    def write(
        self, name: str, data: bytes | Path | Iterable[bytes], output: str | None = None
    ) -> str:
        """Write an object of the output under a name; return its URI."""
        ref = self._output(output)
        key = f"{self._folder(ref)}{name}"
        self._store.put(key, data)
        uri = f"{self._store.url}/{key}"
        self._items[ref][uri] = Item(uri)
        return uri

    def add(self, uri: str, output: str | None = None) -> None:
        """Add an object that the workload wrote under the location."""
        self._items[self._output(output)][uri] = Item(uri)

    def only(self, uris: Iterable[str], output: str | None = None) -> None:
        """Declare that an output has these objects and no others.

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
        """Record the result of a check of the output. If it failed, the lot is held."""
        of_part = f"{name} in part {self.part}" if self.part else name
        ref = self._output(output or None)
        self._checks[ref].append(QualityCheck(of_part, bool(success), field, detail))
        return bool(success)

    def checks(self) -> tuple[tuple[DatasetName, tuple[QualityCheck, ...]], ...]:
        """Return the checks of each output."""
        return tuple(
            (DatasetName(ref.namespace, ref.name), tuple(checks))
            for ref, checks in self._checks.items()
            if checks
        )

    def made(self, output: str | None = None) -> Sequence[str]:
        """Return the URIs of the objects written so far."""
        return [item.uri for item in self._made(self._output(output))]

    def listed_uris(self, ref: DatasetRef) -> Sequence[str] | None:
        """Return the URIs that an output was declared to have; None if it has all its files."""
        return list(self._items[ref]) if ref in self._listed else None

    def manifests(self) -> list[Manifest]:
        """Return one manifest for each output; raise Invalid if one has no data."""
        return [self._manifest(ref) for ref in self._task.outputs]

    def _manifest(self, ref: DatasetRef) -> Manifest:
        measured = tuple(_measured(self._store, item) for item in self._made(ref))
        if not measured and ref not in self._empty:
            raise Invalid(
                f"the workload wrote nothing for output {ref.namespace}/{ref.name}; if there is "
                'rightly no data, call context.empty(), let a command write {"empty": true} to '
                '$PENSTOCK_MANIFEST, or declare the output with empty = "allow"'
            )
        checks = tuple(self._checks[ref])
        state = ManifestState.COMPLETE if measured else ManifestState.EMPTY
        return Manifest(
            state=state if all(check.success for check in checks) else ManifestState.PARTIAL,
            checks=checks,
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
            keys = list_keys(self._store, self._folder(ref).rstrip("/"))
            items = [Item(f"{self._store.url}/{key}") for key in keys]
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
            names = ", ".join(self._outputs)
            raise Invalid(
                f"{name!r} is no output of arc {self._task.arc}; its outputs are {names}"
            ) from None


def safe_text(text: str) -> str:
    """Return an error text that every database and object store accepts."""
    writable = text.encode(errors="backslashreplace").decode().replace("\x00", "")
    return writable[:ERROR_CHARS_MAX]


def list_keys(store: Objects, folder: str = "") -> list[str]:
    """Return the keys of all files in a folder; refuse names that cannot be keys."""
    for odd in store.nameless(folder):
        raise Invalid(f"the workload left a file that cannot be listed; {odd.words}")
    return sorted(entry.key for entry in store.list(folder))


def key_of(store: Objects, uri: str) -> str:
    """Return the key of a URI in the store."""
    base = f"{store.url}/"
    if not uri.startswith(base):
        raise Invalid(f"{uri} is not in the object store {store.url}")
    return uri.removeprefix(base)


def _measured(store: Objects, item: Item) -> Item:
    key = key_of(store, item.uri)
    size, digest = 0, hashlib.sha256()
    try:
        with store.get_stream(key) as chunks:
            for chunk in chunks:
                size += len(chunk)
                digest.update(chunk)
    except NotFound:
        raise NotFound(f"the workload lists {item.uri}, which does not exist") from None
    return msgspec.structs.replace(item, size=size, digest=f"{_ALGORITHM}:{digest.hexdigest()}")
