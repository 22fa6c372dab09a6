"""What the client reads and shows without a server: names, documents, the package itself."""

import inspect

import msgspec
import pytest

import penstock
from penstock.api import arcs as arcs_api
from penstock.api import arcs_shapes, backfills, manifests
from penstock.api import locks as locks_api
from penstock.api import lots as lots_api
from penstock.api import work as work_api
from penstock.api.bodies import Body
from penstock.api.parameters import Paging
from penstock.arcs import backfill, backfill_plan, overview, syncing
from penstock.client import (
    ClaimLost,
    Client,
    arc_documents,
    arrival_documents,
    lot_documents,
    request,
)
from penstock.client.documents import EntityId
from penstock.client.names import Name, read_name
from penstock.errors import Invalid
from penstock.locks import gap_causes, gaps, shapes


@pytest.mark.parametrize(
    ("given", "namespace", "meant"),
    [
        ("shop/orders", None, ("shop", "orders")),
        ("orders", "shop", ("shop", "orders")),
        ("other/orders", "shop", ("other", "orders")),
        ("s3://lake/raw/orders", None, ("s3://lake", "raw/orders")),
        ("postgres://db:5432/public.orders", "shop", ("postgres://db:5432", "public.orders")),
        ("shop/a/b", None, ("shop", "a/b")),
        (("a/b", "c/d"), "shop", ("a/b", "c/d")),
    ],
)
def test_names_are_read_as_people_write_them(
    given: Name, namespace: str | None, meant: tuple[str, str]
) -> None:
    assert read_name(given, namespace) == EntityId(*meant)


@pytest.mark.parametrize("given", ["orders", "", "shop/"])
def test_a_name_without_a_namespace_is_refused(given: str) -> None:
    with pytest.raises(Invalid, match="NAMESPACE/NAME"):
        read_name(given)


def test_the_package_shows_the_client_and_nothing_that_is_not_there() -> None:
    assert penstock.Client is Client
    assert penstock.ClaimLost is ClaimLost
    with pytest.raises(AttributeError, match="nothing_like_this"):
        penstock.nothing_like_this  # type: ignore[attr-defined]  # noqa: B018


SERVED = {
    name: kind
    for module in (shapes, locks_api, lots_api, work_api)
    for name, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, msgspec.Struct)
    and not issubclass(kind, Body | Paging)
    and kind.__module__ == module.__name__
}


@pytest.mark.parametrize("name", sorted(SERVED))
def test_the_client_keeps_everything_that_the_server_shows(name: str) -> None:
    mine = getattr(lot_documents, name)
    assert mine.__struct_encode_fields__ == SERVED[name].__struct_encode_fields__


ARC_DOCUMENTS = {
    arcs_shapes.ShownArc: arc_documents.Arc,
    arcs_shapes.ArcInput: arc_documents.ArcInput,
    arcs_shapes.ArcOutput: arc_documents.ArcOutput,
    arcs_shapes.ArcWorkload: arc_documents.ArcWorkload,
    arcs_shapes.ArcParts: arc_documents.ArcParts,
    arcs_shapes.ArcRetry: arc_documents.ArcRetry,
    arcs_shapes.ShownArrival: arrival_documents.Arrival,
    arcs_shapes.RefusedObject: arrival_documents.RefusedObject,
    arcs_shapes.ArrivalFailure: arrival_documents.ArrivalFailure,
    arcs_shapes.UntakenObjects: arrival_documents.UntakenObjects,
    overview.ArcCounts: arc_documents.ArcCounts,
    overview.ArcLot: arc_documents.ArcLot,
    overview.ArcLotDetail: arc_documents.ArcLotDetail,
    overview.ArcPart: arc_documents.ArcPart,
    overview.FailedAttempt: arc_documents.FailedAttempt,
    overview.ManifestLine: arc_documents.ManifestLine,
    arcs_api.Arcs: arc_documents.Arcs,
    arcs_api.ArcLots: arc_documents.ArcLots,
    syncing.Synced: arc_documents.Synced,
    manifests.LotManifest: arc_documents.LotManifest,
    manifests.ManifestItem: arc_documents.ManifestItem,
    manifests.ManifestPart: arc_documents.ManifestPart,
    gaps.Gaps: arc_documents.Gaps,
    gaps.Gap: arc_documents.Gap,
    gap_causes.Cause: arc_documents.Cause,
    gap_causes.Root: arc_documents.Root,
    backfill_plan.Plan: arc_documents.Plan,
    backfill_plan.Line: arc_documents.PlanLine,
    backfill.Progress: arc_documents.Backfill,
    backfill.Failure: arc_documents.Failure,
    backfills.Begun: arc_documents.Begun,
    backfills.BackfillList: arc_documents.Backfills,
}


@pytest.mark.parametrize("served", ARC_DOCUMENTS, ids=lambda kind: kind.__name__)
def test_the_client_keeps_everything_that_is_shown_of_arcs(served: type[msgspec.Struct]) -> None:
    mine = ARC_DOCUMENTS[served]
    assert set(mine.__struct_encode_fields__) == set(served.__struct_encode_fields__)


@pytest.mark.parametrize("name", [".", "..", "", "\ud800"])
def test_a_path_holds_each_name_or_is_not_made(name: str) -> None:
    """httpx would make `/namespaces/food/datasets/..` the path of the namespace."""
    with pytest.raises(Invalid, match="name"):
        request.delete(request.Empty, "namespaces", "food", "datasets", name)
