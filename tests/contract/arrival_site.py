"""A location where objects arrive, and the lots that were made of them."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from penstock.arcs.arrivals.arrival import Arrival, ArrivedRow
from penstock.arcs.arrivals.commands import ApplyArrival
from penstock.arcs.arrivals.rows import all_arrivals, find_arrival, refused_objects
from penstock.arcs.arrivals.scan import RoundResult
from penstock.arcs.arrivals.watcher import Watcher
from penstock.arcs.queries import manifest_rows, read_manifest
from penstock.catalog.writes import open_write_queue
from penstock.clock import SECOND, Micros, parse_time
from penstock.db import open_database
from penstock.locks.rows import StatusRow
from penstock.lots.manifests import Manifest, encode, manifest_key, note
from penstock.objects import Objects, StoredEntry
from penstock.schema.arrivals import OnMissing
from penstock.store.write_queue import WriteQueue

NOON = parse_time("2026-11-15T12:00:00Z")
MINUTE = 60 * SECOND


class Site:
    """A catalog with a settable clock, an object store, and a folder that others write to."""

    def __init__(self, url: str, folder: Path) -> None:
        self.now = NOON
        self.landing = folder / "landing place"
        self.landing.mkdir(exist_ok=True)
        self.objects = Objects.open(str(folder / "own"))
        self._database = open_database(url)
        self._database.migrate()
        self.catalog = open_write_queue(
            self._database, clock=lambda: self.now, batch_events_max=64, queue_length_max=64
        )
        self.catalog.start()

    def close(self) -> None:
        self.catalog.stop()
        self._database.close()

    def do(self, command: Any) -> Any:
        return self.catalog.submit(command).result()

    def declare(self, dataset: str = "raw", **changes: Any) -> Arrival:
        said: dict[str, Any] = {
            "interval": "PT5M",
            "location": str(self.landing),
            "missing": OnMissing.EMPTY,
            **changes,
        }
        arrival = Arrival(dataset=dataset, namespace="ns", **said)
        self.do(ApplyArrival("me", arrival))
        return arrival

    def watcher(self) -> Watcher:
        return Watcher(self.catalog, self.objects, lambda: self.now)

    def later(self, minutes: int) -> RoundResult:
        """Advance the clock, and run a round."""
        self.now = NOON + minutes * MINUTE
        return self.watcher().go_round(self.now)

    def put(self, key: str, at: Micros, content: bytes = b"x") -> str:
        """Write an object at a time."""
        path = self.landing / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(at * 1000, at * 1000))
        return path.as_uri()

    def lots(self, dataset: str = "raw") -> dict[str, Manifest]:
        """Return the contents of each readable lot, after all checks."""
        with self.catalog.read() as tx:
            dataset_id = find_arrival(tx, "ns", dataset).dataset_id
            names = tx.fetch("ready_lots_of_dataset", dataset_id=dataset_id, after="", most=10**6)
            wanted = [lot for (lot,) in names]
            rows = tx.rows(StatusRow, "lot_outputs", dataset_id=dataset_id, lots=wanted)
            noted = manifest_rows(tx, [str(row.version_id) for row in rows])
        found = {}
        for row in rows:
            kept = noted[str(row.version_id)]
            manifest = read_manifest(self.objects, kept.key)
            assert kept.digest == note(manifest, kept.key, self.objects.get(kept.key)).digest
            assert (kept.uris, kept.bytes) == (manifest.count, manifest.bytes)
            assert (kept.state, row.lot) == (manifest.state, manifest.lot)
            assert (manifest.state == "empty") == (not manifest.uris)
            found[row.lot] = manifest
        return dict(sorted(found.items()))

    def names(self, dataset: str = "raw") -> dict[str, list[str]]:
        """Return the last parts of the URIs in each lot."""
        lots = self.lots(dataset).items()
        return {lot: [i.uri.rpartition("/")[2] for i in manifest.uris] for lot, manifest in lots}

    def refused(self, dataset: str = "raw") -> dict[str, ArrivedRow]:
        with self.catalog.read() as tx:
            row = find_arrival(tx, "ns", dataset)
            return {each.uri: each for each in refused_objects(tx, row.dataset_id)}

    def check(self) -> None:
        """Check that every object is in one lot, and every closed interval has a lot."""
        with self.catalog.read() as tx:
            arrivals = all_arrivals(tx)
        for row in arrivals:
            lots = self.lots(row.name)
            items = [(i.uri, lot, i.size) for lot, each in lots.items() for i in each.uris]
            uris = [uri for uri, _, _ in items]
            assert len(uris) == len(set(uris))
            with self.catalog.read() as tx:
                kept = tx.rows(
                    ArrivedRow, "arrived_objects_of_lots", dataset_id=row.dataset_id, lots=[*lots]
                )
            assert sorted(items) == sorted((each.uri, each.lot, each.size) for each in kept)
            arrival = row.arrival
            if arrival.cut is not None and arrival.has_empty_lots:
                assert set(arrival.cut.lots(row.start, row.open_from)) <= lots.keys()

    def check_keys(self, dataset: str = "raw") -> None:
        """Check that the well-known keys hold the last published manifests."""
        for lot, manifest in self.lots(dataset).items():
            for state in ("complete", "empty"):
                key = manifest_key(manifest.dataset, lot, manifest.state)
                is_it = state == manifest.state
                other = key.replace(f"state={manifest.state}", f"state={state}")
                assert self.objects.exists(other) == is_it
                if is_it:
                    assert self.objects.get(other) == encode(manifest)


class Killed(BaseException):
    """The watcher is dead; no code may catch this."""


class Fuse:
    """A counter of calls that raises at one of them."""

    def __init__(self, after: int, tell: Callable[[], None] = lambda: None) -> None:
        self._left = after
        self._tell = tell

    def burn(self) -> None:
        self._tell()
        self._left -= 1
        if self._left < 0:
            raise Killed


class FusedObjects(Objects):
    """A store whose calls count for a fuse after they are done."""

    def __init__(self, store: Objects, fuse: Fuse) -> None:
        super().__init__(store.url, store._store, store._folder)
        self._fuse = fuse

    def get(self, key: str) -> bytes:
        content = super().get(key)
        self._fuse.burn()
        return content

    def put(self, key: str, data: Any, **how: Any) -> None:
        super().put(key, data, **how)
        self._fuse.burn()

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[StoredEntry]:
        self._fuse.burn()
        yield from super().list(prefix, after=after)
        self._fuse.burn()

    def delete(self, key: str) -> None:
        super().delete(key)
        self._fuse.burn()


class FusedCatalog:
    """A write queue whose calls count for a fuse after the commit."""

    def __init__(self, catalog: WriteQueue, fuse: Fuse) -> None:
        self._catalog = catalog
        self._fuse = fuse

    def read(self) -> Any:
        self._fuse.burn()
        return self._catalog.read()

    def submit(self, command: Any) -> "Future[Any]":
        self._fuse.burn()
        future = self._catalog.submit(command)
        future.exception()
        self._fuse.burn()
        return future


def fused_watcher(site: Site, fuse: Fuse) -> Watcher:
    """Return a watcher that dies when the fuse blows."""
    catalog: Any = FusedCatalog(site.catalog, fuse)
    return Watcher(
        catalog,
        FusedObjects(site.objects, fuse),
        lambda: site.now,
        open_at=lambda url: FusedObjects(Objects.open(url), fuse),
    )
