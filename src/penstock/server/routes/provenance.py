"""Provenance of lots, verification of their bytes, and checks of invariants."""

import threading
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.locks.queries.claims import find_dataset
from penstock.plane import Plane
from penstock.provenance.build import ArrivedObjects, ProvenanceBuilder
from penstock.provenance.checks import Grounds
from penstock.provenance.checks.ingest import object_faults
from penstock.provenance.checks.run import check
from penstock.provenance.history import LotAt, LotName, lot_at
from penstock.provenance.prov import to_prov
from penstock.provenance.trace import FoundObject, Walk, walk_back
from penstock.provenance.verify import Verification, VerificationOrder
from penstock.schema.admin import KeyRole
from penstock.schema.lot_ids import check_lot
from penstock.schema.provenance import Provenance
from penstock.schema.texts import Time
from penstock.server.content import DEPTH_MAX, Query, moment
from penstock.server.requests import RequestContext
from penstock.server.responses import NDJSON, Flow, lines
from penstock.server.routing import ASYNC, BASE, Reach, Route

FILES_MAX = 100_000
Files = Annotated[
    int, Meta(ge=0, le=FILES_MAX, description="how many files of each version to show at most")
]
RunsBack = Annotated[
    int,
    Meta(ge=0, le=DEPTH_MAX, description="how many runs to go back at most, each to what it read"),
]


class ProvenanceQuery(Query, frozen=True):
    """The time, the depth, and the number of files of each version."""

    as_of: Time | None = None
    depth: RunsBack | None = None
    files: Files = 20


class VerifyQuery(Query, frozen=True):
    """The lot and the versions to verify; with `upstream`, also their inputs."""

    lot: str | None = None
    all_versions: bool = False
    upstream: bool = False


async def get_provenance(
    context: RequestContext, namespace: str, dataset: str, lot: str, query: ProvenanceQuery
) -> Provenance:
    """Show the provenance of a lot, down to deposits, files and digests.

    It is the version that the lot has, or had at `asOf`. `versions` begin with that one and have
    each version behind it once; `inputs` say which runs read which.
    """
    as_of = moment(query.as_of, "asOf")
    name = await context.read(_name, namespace, dataset, lot)
    asked, walk, arrivals = await context.read(_walk, name, as_of, query)

    def work() -> Provenance:
        plane = context.plane

        def find(arks: Sequence[str]) -> list[FoundObject]:
            with plane.catalog.read() as tx:
                return tx.rows(FoundObject, "objects_by_arks", arks=list(arks))

        return ProvenanceBuilder(walk, arrivals, plane.objects, find, query.files).build(asked)

    return await context.state.in_thread(work)


async def get_prov(
    context: RequestContext, namespace: str, dataset: str, lot: str, query: ProvenanceQuery
) -> dict[str, Any]:
    """Show the provenance of a lot as a W3C PROV-JSON document."""
    provenance = await get_provenance(context, namespace, dataset, lot, query)
    return dict(to_prov(provenance))


async def verify_lots(
    context: RequestContext, namespace: str, dataset: str, query: VerifyQuery
) -> Flow:
    """Read the bytes of lots again and compare them with their manifests, line by line.

    Each line is a JSON document: a `fault`, the `progress`, or the `end` with the
    totals; without an `end` the check was cut off. Stored objects behind the lots are read as well.
    """
    plane = context.plane
    name = await context.read(_name, namespace, dataset, query.lot)
    ground = grounds(plane)
    stop = threading.Event()
    order = VerificationOrder(query.lot, query.all_versions, query.upstream)
    verification = Verification(
        plane.database,
        plane.objects,
        lambda ark, collection: object_faults(ground, ark, collection),
        name,
        order,
        stop,
    )
    return lines(verification.steps(), stop)


def _name(tx: Transaction, namespace: str, dataset: str, lot: str | None) -> LotName:
    dataset_id = find_dataset(tx, namespace, dataset)
    if lot is None:
        return LotName(dataset_id, namespace, dataset, "")
    name = LotName(dataset_id, namespace, dataset, check_lot(lot))
    if tx.fetch_one("lot_now", dataset_id=dataset_id, lot=lot) is None:
        raise NotFound(f"there is no {name}; `penstock lots list {namespace}/{dataset}` lists them")
    return name


def _walk(
    tx: Transaction, name: LotName, as_of: Micros | None, query: ProvenanceQuery
) -> tuple[LotAt, Walk, ArrivedObjects]:
    asked = lot_at(tx, name, as_of)
    walk = walk_back(tx, {asked.version_id: name.lot}, query.depth)
    return asked, walk, ArrivedObjects(tx, walk, query.files)


class CheckQuery(Query, frozen=True):
    """Whether to read every byte of manifests and inventories."""

    deep: bool = False


def grounds(plane: Plane, *, deep: bool = False) -> Grounds:
    """Return what the invariants of this server read."""
    return Grounds(plane.database, lambda: plane.objects, plane.context, plane.clock, deep=deep)


async def check_invariants(context: RequestContext, query: CheckQuery) -> Flow:
    """Check every invariant, line by line, each a JSON document.

    It only reads, in snapshots, and no writer waits for it. `first` names the first violations.
    """
    ground = grounds(context.plane, deep=query.deep)
    return lines(check(ground), ground.stop)


_DATASET = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}"

ROUTES = (
    Route(ASYNC, "GET", f"{_DATASET}/lots/{{lot}}/provenance", get_provenance, Reach.EVERYTHING),
    Route(ASYNC, "GET", f"{_DATASET}/lots/{{lot}}/prov", get_prov, Reach.EVERYTHING),
    Route(
        ASYNC,
        "GET",
        f"{_DATASET}/verify",
        verify_lots,
        Reach.EVERYTHING,
        KeyRole.WRITER,
        media=NDJSON,
    ),
    Route(
        ASYNC,
        "GET",
        f"{BASE}/check",
        check_invariants,
        Reach.EVERYTHING,
        KeyRole.ADMIN,
        media=NDJSON,
    ),
)
