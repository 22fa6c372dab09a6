"""Where a lot comes from, and whether its bytes are still what they were."""

import threading
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from penstock.access.keys import Role
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.locks.queries.claims import find_dataset
from penstock.lots.ids import check_lot
from penstock.provenance.build import ArrivedObjects, ProvenanceBuilder
from penstock.provenance.checks.ingest import object_faults
from penstock.provenance.history import LotAt, LotName, lot_at
from penstock.provenance.prov import to_prov
from penstock.provenance.shapes import Provenance
from penstock.provenance.trace import FoundObject, Walk, walk_back
from penstock.provenance.verify import Verification, VerificationOrder
from penstock.server.parameters import DEPTH_MAX, Query, Time, moment
from penstock.server.requests import Call
from penstock.server.responses import NDJSON, Flow, lines
from penstock.server.routes.admin import grounds
from penstock.server.routing import BASE, Reach, Route

FILES_MAX = 100_000
Files = Annotated[
    int, Meta(ge=0, le=FILES_MAX, description="how many files of each version to show at most")
]
RunsBack = Annotated[
    int,
    Meta(ge=0, le=DEPTH_MAX, description="how many runs to go back at most, each to what it read"),
]


class ProvenanceQuery(Query, frozen=True):
    """As of when, how far back, and how many files of each version."""

    as_of: Time | None = None
    depth: RunsBack | None = None
    files: Files = 20


class VerifyQuery(Query, frozen=True):
    """Which lot, of which versions, and whether with all that it was made from."""

    lot: str | None = None
    all_versions: bool = False
    upstream: bool = False


async def get_provenance(
    call: Call, namespace: str, dataset: str, lot: str, query: ProvenanceQuery
) -> Provenance:
    """Show what a version of a lot was made from, down to deposits, files and digests.

    It is the version that the lot has, or had at `asOf`. `versions` begin with that one and have
    each version behind it once; `inputs` say which runs read which.
    """
    as_of = moment(query.as_of, "asOf")
    name = await call.read(_name, namespace, dataset, lot)
    asked, walk, arrivals = await call.read(_walk, name, as_of, query)

    def work() -> Provenance:
        plane = call.door.plane

        def find(arks: Sequence[str]) -> list[FoundObject]:
            with plane.catalog.read() as tx:
                return tx.rows(FoundObject, "objects_by_arks", arks=list(arks))

        return ProvenanceBuilder(walk, arrivals, plane.objects, find, query.files).build(asked)

    return await call.door.in_thread(work)


async def get_prov(
    call: Call, namespace: str, dataset: str, lot: str, query: ProvenanceQuery
) -> dict[str, Any]:
    """Show the same in the words of W3C PROV, as PROV-JSON."""
    found = await get_provenance(call, namespace, dataset, lot, query)
    return dict(to_prov(found))


async def verify_lots(call: Call, namespace: str, dataset: str, query: VerifyQuery) -> Flow:
    """Read the bytes of lots again and compare them with their manifests, line by line.

    Each line is a JSON document: a `fault`, how far it is (`progress`), or the `end` with what it
    came to; without an `end` it was broken off. Stored objects behind the lots are read as well.
    """
    plane = call.door.plane
    name = await call.read(_name, namespace, dataset, query.lot)
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


_DATASET = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}"

ROUTES = (
    Route("GET", f"{_DATASET}/lots/{{lot}}/provenance", get_provenance, Reach.EVERYTHING),
    Route("GET", f"{_DATASET}/lots/{{lot}}/prov", get_prov, Reach.EVERYTHING),
    Route("GET", f"{_DATASET}/verify", verify_lots, Reach.EVERYTHING, Role.WRITER, media=NDJSON),
)
