"""A site where arcs run: a database, an object store, engines, and orders for workloads."""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from penstock.arcs.commands import ApplyArc
from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.overview import get_arc_lot
from penstock.arcs.queries import manifest_rows, read_items
from penstock.arcs.spec import Arc, Input, Output, Retry, Workload
from penstock.config import Settings
from penstock.errors import NotFound
from penstock.locks.commands import RegisterLots
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import DatasetRef, Item, Manifest
from penstock.lots.outbox import events_after
from penstock.objects import Objects
from penstock.plane import Plane
from penstock.schema.arcs import ArcLotDetail
from penstock.schema.subscribers import LotEvent
from penstock.states import ArcState, ManifestState
from penstock.store.write_queue import Command, WriteQueue
from tests.acceptance import arc_workloads
from tests.clocks import AdjustableClock
from tests.databases import sqlite_database
from tests.patience import HANG_SECONDS

T = TypeVar("T")
NS = "ns"
LOOK_SECONDS = 0.02
SWEEP_SECONDS = 0.05
AT_ONCE = Retry(tries=3, back_off_seconds=0, lease_seconds=60)
ONCE = Retry(tries=1, back_off_seconds=0, lease_seconds=60)

Content = Mapping[str, bytes]  # by name


@dataclass
class ArcSite:
    """A site with everything in the namespace `ns`."""

    plane: Plane
    objects: Objects
    folder: Path  # for orders
    clock: AdjustableClock
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def catalog(self) -> WriteQueue:
        return self.plane.catalog

    def do(self, command: Command[T]) -> T:
        return self.catalog.submit(command).result()

    def arc(
        self,
        name: str,
        reads: str | tuple[Input, ...],
        writes: str,
        workload: str | Workload = "shout",
        **how: Any,
    ) -> Arc:
        """Declare an arc; a workload is a function of arc_workloads, or a whole one."""
        if isinstance(workload, str):
            workload = Workload(function=f"{arc_workloads.__name__}:{workload}")
        inputs = (Input(dataset=reads),) if isinstance(reads, str) else reads
        arc = Arc(
            name=name,
            namespace=NS,
            inputs=inputs,
            outputs=how.pop("outputs", (Output(dataset=writes),)),
            workload=workload,
            **{"retry": AT_ONCE, **how},
        )
        self.do(ApplyArc("ann", arc))
        return arc

    def feed(self, dataset: str, lot: str, content: Content) -> None:
        """Publish an external lot with a manifest: `empty` if there is no content."""
        where = f"incoming/{dataset}/{lot}/{next(self.numbers)}"
        for name, data in content.items():
            self.objects.put(f"{where}/{name}", data)
        items = (Item(f"{self.objects.url}/{where}/{n}", len(d)) for n, d in content.items())
        manifest = Manifest(
            state=ManifestState.COMPLETE if content else ManifestState.EMPTY,
            lot=lot,
            dataset=DatasetRef(NS, dataset),
            uris=tuple(items),
            attempt=f"outside-{next(self.numbers)}",
        )
        _, note = put_manifest(self.objects, manifest)
        self.do(RegisterLots(NS, dataset, (lot,), "ann", renew=True, manifests=(note,)))

    def order(self, lot: str, *orders: str, part: str = "") -> None:
        """Set orders for the next runs of a workload on a lot, one for each run."""
        path = self.folder / arc_workloads.order_name(lot, part)
        path.write_text("\n".join(orders))

    def go(self) -> None:
        """Let waiting workloads continue."""
        (self.folder / "go").touch()

    def ran(self) -> list[tuple[str, str]]:
        """Return the lot and the part of every run of a workload."""
        return [(line["lot"], line["part"]) for line in arc_workloads.ran(self.folder)]

    @contextmanager
    def engine(self, executor: TaskExecutor | None = None, **how: Any) -> Iterator[Engine]:
        """Run an engine, on threads of this process by default."""
        with LocalThreads(8) as threads:
            how = {"owner": "engine", "sweep_seconds": SWEEP_SECONDS, **how}
            clock = self.clock
            with Engine(self.catalog, self.objects, executor or threads, clock, **how) as engine:
                try:
                    yield engine
                except BaseException:
                    self.go()  # the engine ends when what it runs has ended
                    raise

    def lot(self, arc: str, lot: str) -> ArcLotDetail:
        with self.catalog.read() as tx:
            return get_arc_lot(tx, NS, arc, lot)

    def state(self, arc: str, lot: str) -> ArcState | None:
        """Return the state of an arc with a lot."""
        try:
            return self.lot(arc, lot).state
        except NotFound:
            return None

    def keys(self, folder: str) -> list[str]:
        """Return the keys below a folder, without it."""
        found = (entry.key for entry in self.objects.list(folder))
        return sorted(key.removeprefix(f"{folder}/") for key in found)

    def shown(self, arc: str, lot: str) -> list[str]:
        """Return what the state keys of a lot show."""
        return self.keys(f"arcs/namespace={NS}/project=default/version=1/arc={arc}/lot={lot}")

    def data(self, dataset: str, lot: str) -> list[str]:
        """Return all objects that attempts wrote for a lot, by the last part of the key."""
        folder = f"data/namespace={NS}/name={dataset}/version=1/lot={lot}"
        return sorted(key.rpartition("/")[2] for key in self.keys(folder))

    def manifests(self, dataset: str, lot: str) -> list[str]:
        """Return the keys of manifests of a lot."""
        return self.keys(f"datasets/namespace={NS}/name={dataset}/version=1/lot={lot}")

    def content(self, arc: str, lot: str) -> dict[str, bytes]:
        """Return the objects that the published manifests of a lot list, by name."""
        found = {}
        with self.catalog.read() as tx:
            versions = [line.version for line in self.lot(arc, lot).manifests if line.is_current]
            rows = manifest_rows(tx, versions).values()
        for item in (item for row in rows for item in read_items(self.objects, row)):
            data = self.objects.get(item.uri.removeprefix(f"{self.objects.url}/"))
            assert len(data) == item.size
            found[item.uri.rpartition("/")[2]] = data
        return found

    def events(self) -> list[LotEvent]:
        """Return the events that subscribers get."""
        with self.catalog.read() as tx:
            return list(events_after(tx, 0, 1000))

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for an effect of an engine."""
        deadline = time.monotonic() + HANG_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "what was waited for did not happen"
            time.sleep(LOOK_SECONDS)

    def until_state(self, arc: str, lot: str, state: ArcState) -> None:
        """Wait for a state, and for its key."""
        self.until(
            lambda: self.state(arc, lot) == state and self.shown(arc, lot) == [f"{state}.arc"]
        )


@contextmanager
def open_site(
    database_url: str, objects_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ArcSite]:
    """Open a site on an empty database and an empty object store."""
    orders = folder / "orders"
    orders.mkdir()
    monkeypatch.setenv(arc_workloads.FOLDER, str(orders))
    settings = Settings(
        database=database_url,
        objects=objects_url,
        ingest_folder=str(folder / "ingest"),
        sweep_seconds=1,
    )
    clock = AdjustableClock()
    with Plane.open(settings, clock) as plane:
        yield ArcSite(plane, plane.objects, orders, clock)


@contextmanager
def open_local_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    """Open a site on SQLite with local files."""
    url = sqlite_database(folder / "penstock.db")
    with open_site(url, str(folder / "objects"), folder, monkeypatch) as opened:
        yield opened


@pytest.fixture
def local_arcs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    """SQLite with local files, for tests of folders."""
    with open_local_site(tmp_path, monkeypatch) as opened:
        yield opened


@pytest.fixture(params=["sqlite and a folder", "postgresql and s3"])
def arcs(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ArcSite]:
    """SQLite with local files, and PostgreSQL with an S3 server."""
    if request.param.startswith("sqlite"):
        with open_local_site(tmp_path, monkeypatch) as opened:
            yield opened
        return
    url = request.getfixturevalue("postgres_url")
    bucket: str = request.getfixturevalue("bucket_url")
    with open_site(url, f"{bucket}/site", tmp_path, monkeypatch) as opened:
        yield opened
