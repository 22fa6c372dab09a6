"""Lots from the files of a test, and arcs run on them in the thread of the test."""

import hashlib
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from penstock import ids
from penstock.arcs.engine.single import run_lot
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.files import MARK, read_arc
from penstock.arcs.spec import ByName
from penstock.client import Client
from penstock.client.names import Name, read_name
from penstock.clock import format_time
from penstock.errors import Conflict, Invalid, PenstockError
from penstock.locks.commands.lots import RegisterLots
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import DatasetRef, Item, Manifest, data_folder
from penstock.objects.uris import find_object
from penstock.plane import Plane
from penstock.schema.catalog import EntityId
from penstock.states import ManifestState

P = ParamSpec("P")
T = TypeVar("T")

OWNER = "penstock.testing"
_PAGE = 1000
_NAME = re.compile(r"/attempt=[^/]+/(?:part=[^/]+/)?(.+)")


class ArcFailed(PenstockError):
    """A workload failed; the message is its error."""


class MadeLot(Struct, frozen=True):
    """The outputs of an arc for a lot: for each output, the files by name.

    Outputs that share a name are under NAMESPACE/NAME.
    """

    lot: str
    outputs: Mapping[str, Mapping[str, bytes]]

    @property
    def files(self) -> Mapping[str, bytes]:
        """The files of the first output."""
        return next(iter(self.outputs.values()))


class Inline(TaskExecutor):
    """An executor that runs tasks in the caller's thread: breakpoints and coverage work."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Run a function, and return its result as a finished future."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def put_lot(
    plane: Plane, client: Client, dataset: Name, lot: str, files: Mapping[str, bytes]
) -> None:
    """Write files and their manifest, and publish the lot, also again."""
    named = read_name(dataset)
    ref, attempt, store = DatasetRef(named.namespace, named.name), ids.new_id(), plane.objects
    items = []
    for name, content in files.items():
        key = f"{data_folder(ref, lot, attempt)}{name}"
        store.put(key, content)
        digest = f"sha-256:{hashlib.sha256(content).hexdigest()}"
        items.append(Item(f"{store.url}/{key}", len(content), digest))
    _, note = put_manifest(
        store,
        Manifest(
            state=ManifestState.COMPLETE if items else ManifestState.EMPTY,
            lot=lot,
            dataset=ref,
            uris=tuple(items),
            attempt=attempt,
            created=format_time(plane.clock()),
        ),
    )
    client.emit(_declaration(plane, named))
    at = (named.namespace, named.name)
    plane.catalog.submit(RegisterLots(*at, (lot,), OWNER, renew=True, manifests=(note,))).result()


def _declaration(plane: Plane, name: EntityId) -> dict[str, object]:
    return {
        "eventTime": format_time(plane.clock()),
        "producer": OWNER,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
        "dataset": {"namespace": name.namespace, "name": name.name},
    }


def read_lot(plane: Plane, client: Client, dataset: Name, lot: str) -> dict[str, bytes]:
    """Return the files of a lot by name; those of a part are below the part's name."""
    named = read_name(dataset)
    files: dict[str, bytes] = {}
    offset = 0
    while True:
        page = client.manifest(named.namespace, named.name, lot, limit=_PAGE, offset=offset)
        for item in page.uris:
            store, key = find_object(plane.objects, item.uri)
            match = _NAME.search(item.uri)
            name = match[1] if match else item.uri
            files[f"{item.part}/{name}" if item.part else name] = store.get(key)
        offset += len(page.uris)
        if offset >= page.total_count or not page.uris:
            return files


def declare(client: Client, function: Callable[..., object]) -> EntityId:
    """Declare the arc of a function, and return its name."""
    marked = getattr(function, MARK, None)
    if marked is None:
        raise Invalid(f"{function!r} is no arc; put @penstock.arc(inputs=…, outputs=…) above it")
    arc = read_arc(marked, f"{function.__module__}.{function.__qualname__}")
    client.put_arc(arc.namespace, arc.name, msgspec.json.decode(msgspec.json.encode(arc)))
    return EntityId(arc.namespace, arc.name)


def run_arc(plane: Plane, client: Client, arc: Callable[..., object] | str, lot: str) -> MadeLot:
    """Run one lot of an arc, and return its outputs."""
    named = read_name(arc) if isinstance(arc, str) else declare(client, arc)
    at = named.namespace, named.name
    store = plane.catalog, plane.objects, Inline(), plane.clock
    try:
        is_published = run_lot(*store, *at, lot, owner=OWNER)
    except Conflict:
        raise Conflict(client.why(*at, lot).sentence) from None
    if not is_published:
        raise ArcFailed(client.arc_lot(*at, lot).error or f"lot {lot} was not published")
    written = [(out.namespace or at[0], out.dataset) for out in client.arc(*at).outputs]
    outputs = ByName((*name, read_lot(plane, client, name, lot)) for name in written)
    return MadeLot(lot, outputs)
