"""A task: one run of a workload on a lot, or on a part of one, wherever the executor runs it.

This module is what goes to other processes and machines. It knows the object store and nothing of
the database, but for the one who keeps the lease.
"""

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct

from penstock import logs, tracing
from penstock.arcs.calling import call
from penstock.arcs.commanding import run_command
from penstock.arcs.declaration import Workload
from penstock.arcs.leases import Lease, kept
from penstock.arcs.stores import find_object, open_store
from penstock.catalog.known_facets import DatasetName
from penstock.clock import format_time, system_clock
from penstock.errors import Invalid, NotFound, PenstockError
from penstock.lots.files import put_manifest
from penstock.lots.manifests import (
    RETRY_MARK,
    Check,
    DatasetRef,
    Item,
    Manifest,
    ManifestNote,
    UriType,
    data_folder,
)
from penstock.objects import Objects
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
    checks: tuple[str, ...] = ()
    tries: int = 1
    objects: str  # the URL of the object store
    lease: Lease | None = None  # kept from where the task runs; None if the engine alone keeps it
    trace: str = ""  # the span that had it run, as a `traceparent`; nothing if traces are off


def again(task: Task) -> Task:
    """The task for another worker; it writes where a lost one that is not dead does not write."""
    claim = task.attempt.partition(RETRY_MARK)[0]
    attempt = f"{claim}{RETRY_MARK}{task.tries}"
    return msgspec.structs.replace(task, attempt=attempt, tries=task.tries + 1)


def run_apart(task: Task) -> "TaskResult":
    """Run a task in a place of its own, where it may be run twice without anybody's knowing."""
    claim = task.attempt.partition(RETRY_MARK)[0]
    attempt = f"{claim}{RETRY_MARK}{uuid4().hex[:12]}"
    return run_task(msgspec.structs.replace(task, attempt=attempt))


class TaskResult(Struct, frozen=True):
    """What became of a task: the manifests it wrote, or what went wrong, and what it left."""

    notes: tuple[tuple[DatasetName, ManifestNote], ...] = ()
    error: str = ""
    checks: tuple[tuple[DatasetName, tuple[Check, ...]], ...] = ()


class Context:
    """What a workload function is given: the lot, what to read, and where to write."""

    def __init__(self, task: Task, store: Objects) -> None:
        self._task = task
        self._store = store
        self._items: dict[DatasetRef, dict[str, Item]] = {ref: {} for ref in task.outputs}
        self._checks: dict[DatasetRef, list[Check]] = {ref: [] for ref in task.outputs}
        self._is_empty = False
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
        """The lots to read, by the names of their datasets."""
        return {lot.name: lot for lot in self._task.inputs}

    @property
    def uris(self) -> Sequence[str]:
        """Everything there is to read."""
        return [item.uri for lot in self._task.inputs for item in lot.uris]

    def location(self, output: str | None = None) -> str:
        """The URL under which to write; it ends in /."""
        return f"{self._store.url}/{self._folder(self._output(output))}"

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

    def empty(self) -> None:
        """Say that there is no data for this lot, and that this is right."""
        self._is_empty = True

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

    def manifests(self) -> list[Manifest]:
        """What was made, one manifest for each output."""
        return [self._manifest(ref) for ref in self._task.outputs]

    def _manifest(self, ref: DatasetRef) -> Manifest:
        measured = tuple(_measured(self._store, item) for item in self._made(ref))
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
        if not items and not self._is_empty:
            found = sorted(entry.key for entry in self._store.list(self._folder(ref).rstrip("/")))
            items = [Item(f"{self._store.url}/{key}") for key in found]
        return items

    def _folder(self, ref: DatasetRef) -> str:
        return data_folder(ref, self.lot, self._task.attempt, self.part)

    def _output(self, name: str | None) -> DatasetRef:
        outputs = self._task.outputs
        if name is None:
            return outputs[0]
        for ref in outputs:
            if name in (ref.name, f"{ref.namespace}/{ref.name}"):
                return ref
        known = ", ".join(ref.name for ref in outputs)
        raise Invalid(f"{name!r} is no output of arc {self._task.arc}; its outputs are {known}")


def run_task(task: Task) -> TaskResult:
    """Run a workload and write the manifests of what it made; it never raises for the workload."""
    ids = {
        "lot": task.lot,
        "part": task.part,
        "run": task.run_id,
        "job": f"{task.namespace}/{task.arc}",
        "arc": task.arc,
    }
    name = "arc.part" if task.part else "arc.task"
    with logs.about(**ids), tracing.span(name, under=task.trace, **ids):
        result = _run(task)
        if result.error:
            tracing.fail(result.error)
    return result


def _run(task: Task) -> TaskResult:
    try:
        store = open_store(task.objects)
        context = Context(task, store)
        with kept(task.lease, context.lost.set):
            if task.workload.function is not None:
                call(task.workload.function, context, task.workload.timeout_seconds)
            else:
                _run_command(task, context)
            for function in task.checks:
                _run_check(function, context, task.workload.timeout_seconds)
        notes = tuple(put_manifest(store, manifest) for manifest in context.manifests())
        return TaskResult(notes, checks=context.checks())
    except PenstockError as error:
        return TaskResult(error=str(error)[:ERROR_CHARS_MAX])
    except Exception as error:
        return TaskResult(error=f"{type(error).__name__}: {error}"[:ERROR_CHARS_MAX])


def _run_check(function: str, context: Context, timeout_seconds: int | None) -> None:
    """Have a function look at what was made; one that asserts in vain has said no."""
    name, before = function.rpartition(":")[2], context.checks()
    try:
        said = call(function, context, timeout_seconds)
    except AssertionError as error:
        context.check(name, False, detail=str(error))
        return
    if said is not None or context.checks() == before:
        context.check(name, said is None or bool(said))


def key_of(store: Objects, uri: str) -> str:
    """The key of an object in the store that a URI names."""
    base = f"{store.url}/"
    if not uri.startswith(base):
        raise Invalid(f"{uri} is not in the object store {store.url}")
    return uri.removeprefix(base)


def _run_command(task: Task, context: Context) -> None:
    """Run a command; it learns of its task by the environment, a JSON file and its arguments."""
    with tempfile.TemporaryDirectory(prefix="penstock-task-") as folder:
        manifest = Path(folder) / "manifest.json"
        described = Path(folder) / "task.json"
        location = context.location()
        local = context.path(location)
        if local is not None:
            local.mkdir(parents=True, exist_ok=True)
        variables = {
            "PENSTOCK_ARC": task.arc,
            "PENSTOCK_NAMESPACE": task.namespace,
            "PENSTOCK_LOT": task.lot,
            "PENSTOCK_PART": task.part,
            "PENSTOCK_ATTEMPT": task.attempt,
            "PENSTOCK_RUN": task.run_id,
            "PENSTOCK_OUTPUT": str(local) if local is not None else location,
            "PENSTOCK_OUTPUT_URL": location,
            "PENSTOCK_MANIFEST": str(manifest),
            "PENSTOCK_TASK": str(described),
            **({"TRACEPARENT": trace} if (trace := tracing.header()) else {}),
            **task.workload.environment,
        }
        described.write_text(json.dumps(_described(task, context, str(manifest)), indent=1))
        placeholders = {
            "{lot}": task.lot,
            "{part}": task.part,
            "{output}": variables["PENSTOCK_OUTPUT"],
            "{manifest}": str(manifest),
            "{task}": str(described),
        }
        arguments = [_filled(text, placeholders) for text in task.workload.command]
        environment = {**os.environ, **variables}
        run_command(arguments, environment, task.workload.timeout_seconds, context.lost)
        if manifest.exists():
            _take_manifest(manifest.read_bytes(), context)


def _described(task: Task, context: Context, manifest: str) -> dict[str, Any]:
    """The task as a program in another language reads it."""
    return {
        "arc": task.arc,
        "namespace": task.namespace,
        "lot": task.lot,
        "part": task.part,
        "attempt": task.attempt,
        "runId": task.run_id,
        "inputs": [_described_lot(lot, context) for lot in task.inputs],
        "outputs": [
            {"namespace": ref.namespace, "name": ref.name, "location": context.location(ref.name)}
            for ref in task.outputs
        ],
        "manifest": manifest,
    }


def _described_lot(lot: InputLot, context: Context) -> dict[str, Any]:
    described: dict[str, Any] = msgspec.to_builtins(lot)
    for item in described["uris"]:
        path = context.path(item["uri"])
        if path is not None:
            item["path"] = str(path)
    return described


class _Listed(Struct, frozen=True):
    """What a command may say it has made: URIs, or names below its output's location."""

    uris: tuple[str, ...] = ()
    output: str | None = None
    empty: bool = False
    checks: tuple[Check, ...] = ()


_decode_listed = msgspec.json.Decoder(_Listed | tuple[_Listed, ...]).decode


def _take_manifest(content: bytes, context: Context) -> None:
    """Take in what a command says it has made."""
    try:
        listed = _decode_listed(content)
    except msgspec.DecodeError as error:
        raise Invalid(
            f"the manifest that the command wrote cannot be read: {error}; "
            'write {"uris": ["name", …]} or {"empty": true}'
        ) from None
    for each in (listed,) if isinstance(listed, _Listed) else listed:
        if each.empty:
            context.empty()
        for said in each.checks:
            context.check(
                said.name,
                said.success,
                field=said.field,
                detail=said.detail,
                output=each.output or "",
            )
        for uri in each.uris:
            context.add(uri if "://" in uri else context.location(each.output) + uri, each.output)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return values.get(text, text)


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
