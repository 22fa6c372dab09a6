"""Lots with data, made from each other at times that the test sets."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from penstock.arcs.commands import PublishLot
from penstock.catalog.commands import DatasetName
from penstock.clock import SECOND, Micros, parse_time
from penstock.config import Settings
from penstock.locks.commands import ClaimLots, ClaimRef, RegisterLots, ResubmitLots, WireJob
from penstock.locks.queries.claims import find_dataset
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import DatasetRef, Item, Manifest, ManifestNote, data_folder
from penstock.objects import Objects
from penstock.plane import Plane
from penstock.provenance.build import ArrivedObjects, ProvenanceBuilder
from penstock.provenance.checks.ingest import object_faults
from penstock.provenance.history import LotName, lot_at
from penstock.provenance.trace import FoundObject, walk_back
from penstock.provenance.verify import Verification, VerificationOrder
from penstock.schema.provenance import LotVersion, Provenance, VerifyStep
from penstock.server.routes.provenance import grounds
from penstock.states import ManifestState
from penstock.store.write_queue import Command

T = TypeVar("T")
NS = "ns"
START = parse_time("2026-11-15T12:00:00Z")
Files = Mapping[str, bytes]


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now: Micros = START

    def __call__(self) -> Micros:
        return self.now


@dataclass
class Site:
    """A site with everything in the namespace `ns`; each act takes a second."""

    plane: Plane
    clock: Clock

    @property
    def objects(self) -> Objects:
        return self.plane.objects

    def do(self, command: Command[T]) -> T:
        self.clock.now += SECOND
        return self.plane.catalog.submit(command).result()

    def wire(self, job: str, reads: tuple[str, ...], writes: str) -> None:
        inputs = tuple(DatasetName(NS, name) for name in reads)
        self.do(WireJob(NS, job, inputs, (DatasetName(NS, writes),)))

    def register(self, dataset: str, *lots: str) -> Micros:
        """Register external lots without manifests; return the time after it."""
        self.do(RegisterLots(NS, dataset, lots, "ann", renew=True))
        return self.clock.now

    def feed(self, dataset: str, lot: str, files: Files) -> Micros:
        """Register an external lot with a manifest; return the time after it."""
        note = self._written(dataset, lot, f"outside-{self.clock.now}", files)
        self.do(RegisterLots(NS, dataset, (lot,), "ann", renew=True, manifests=(note[1],)))
        return self.clock.now

    def make(self, job: str, lot: str, files: Files, owner: str = "w1") -> str:
        """Claim a lot, write it and publish it; return the run."""
        [claim] = self.do(ClaimLots(NS, job, owner, lots=(lot,)))
        notes = tuple(self._written(o.name, lot, claim.id, files) for o in claim.outputs)
        self.do(PublishLot(ClaimRef(claim.id, claim.token), notes))
        return claim.id

    def again(self, job: str, lot: str) -> None:
        self.do(ResubmitLots("ann", "bad", NS, job, (lot,)))

    def _written(
        self, dataset: str, lot: str, attempt: str, files: Files
    ) -> tuple[DatasetName, ManifestNote]:
        ref = DatasetRef(NS, dataset)
        items = []
        for name, data in files.items():
            key = f"{data_folder(ref, lot, attempt)}{name}"
            self.objects.put(key, data)
            digest = f"sha-256:{hashlib.sha256(data).hexdigest()}"
            items.append(Item(f"{self.objects.url}/{key}", len(data), digest))
        state = ManifestState.COMPLETE if files else ManifestState.EMPTY
        manifest = Manifest(state=state, lot=lot, dataset=ref, uris=tuple(items), attempt=attempt)
        return put_manifest(self.objects, manifest)

    def name(self, dataset: str, lot: str = "") -> LotName:
        return name_of(self.plane, NS, dataset, lot)

    def provenance(
        self,
        dataset: str,
        lot: str,
        as_of: Micros | None = None,
        depth: int | None = None,
        files: int = 20,
    ) -> Provenance:
        return provenance(self.plane, self.name(dataset, lot), as_of, depth, files)

    def verify(self, dataset: str, **order: object) -> list[VerifyStep]:
        return verify(self.plane, self.name(dataset), **order)


def name_of(plane: Plane, namespace: str, dataset: str, lot: str = "") -> LotName:
    with plane.catalog.read() as tx:
        return LotName(find_dataset(tx, namespace, dataset), namespace, dataset, lot)


def provenance(
    plane: Plane,
    name: LotName,
    as_of: Micros | None = None,
    depth: int | None = None,
    files: int = 20,
) -> Provenance:
    """Return the provenance of a lot."""

    def stored(arks: Sequence[str]) -> list[FoundObject]:
        with plane.catalog.read() as tx:
            return tx.rows(FoundObject, "objects_by_arks", arks=list(arks))

    with plane.catalog.read() as tx:
        asked = lot_at(tx, name, as_of)
        walk = walk_back(tx, {asked.version_id: name.lot}, depth)
        arrivals = ArrivedObjects(tx, walk, files)
    return ProvenanceBuilder(walk, arrivals, plane.objects, stored, files).build(asked)


def verify(plane: Plane, name: LotName, **order: object) -> list[VerifyStep]:
    """Return the steps of a verification."""
    found = grounds(plane)
    verification = Verification(
        plane.database,
        plane.objects,
        lambda ark, collection: object_faults(found, ark, collection),
        name,
        VerificationOrder(**order),  # type: ignore[arg-type]
    )
    return list(verification.steps())


def tree(found: Provenance) -> dict[str, set[str]]:
    """Return the inputs of each version, as DATASET/LOT V1."""
    named = {version.id: title(version) for version in found.versions}
    return {
        title(version): {named[each] for each in version.inputs if each in named}
        for version in found.versions
    }


def title(version: LotVersion) -> str:
    return f"{version.dataset}/{version.lot} V{version.number}"


@contextmanager
def open_site(url: str, folder: Path) -> Iterator[Site]:
    """Open a site on an empty database."""
    clock = Clock()
    settings = Settings(
        database=url,
        objects=str(folder / "objects"),
        ingest_folder=str(folder / "ingest"),
        sweep_seconds=3600,
    )
    with Plane.open(settings, clock) as plane:
        yield Site(plane, clock)
