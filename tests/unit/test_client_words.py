"""What the client reads and shows without a server: names, documents, the package itself."""

import inspect

import msgspec
import pytest

import penstock
from penstock.arcs import overview
from penstock.arcs.outputs import state_keys
from penstock.client import ClaimLost, Client, request
from penstock.client.documents import arcs, arrivals, lots
from penstock.client.documents.catalog import EntityId
from penstock.client.names import Name, read_name
from penstock.errors import Invalid
from penstock.locks import shapes
from penstock.locks.gaps import causes, gaps
from penstock.operations.backfills import plan
from penstock.operations.backfills import service as backfill
from penstock.server import arcs_shapes
from penstock.server.content import Body
from penstock.server.parameters import Paging
from penstock.server.routes import arcs as arcs_api
from penstock.server.routes import backfills, manifests
from penstock.server.routes import claims as locks_api
from penstock.server.routes import lots as lots_api
from penstock.server.routes import work as work_api


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
    mine = getattr(lots, name)
    assert mine.__struct_encode_fields__ == SERVED[name].__struct_encode_fields__


ARC_DOCUMENTS = {
    arcs_shapes.ShownArc: arcs.Arc,
    arcs_shapes.ArcInput: arcs.ArcInput,
    arcs_shapes.ArcOutput: arcs.ArcOutput,
    arcs_shapes.ArcWorkload: arcs.ArcWorkload,
    arcs_shapes.ArcParts: arcs.ArcParts,
    arcs_shapes.ArcRetry: arcs.ArcRetry,
    arcs_shapes.ShownArrival: arrivals.Arrival,
    arcs_shapes.RefusedObject: arrivals.RefusedObject,
    arcs_shapes.ArrivalFailure: arrivals.ArrivalFailure,
    arcs_shapes.UntakenObjects: arrivals.UntakenObjects,
    overview.ArcCounts: arcs.ArcCounts,
    overview.ArcLot: arcs.ArcLot,
    overview.ArcLotDetail: arcs.ArcLotDetail,
    overview.ArcPart: arcs.ArcPart,
    overview.FailedAttempt: arcs.FailedAttempt,
    overview.ManifestLine: arcs.ManifestLine,
    arcs_api.Arcs: arcs.Arcs,
    arcs_api.ArcLots: arcs.ArcLots,
    state_keys.Synced: arcs.Synced,
    manifests.LotManifest: arcs.LotManifest,
    manifests.ManifestItem: arcs.ManifestItem,
    manifests.ManifestPart: arcs.ManifestPart,
    gaps.Gaps: arcs.Gaps,
    gaps.Gap: arcs.Gap,
    causes.Cause: arcs.Cause,
    causes.Root: arcs.Root,
    plan.BackfillPlan: arcs.Plan,
    plan.BackfillLine: arcs.PlanLine,
    backfill.BackfillProgress: arcs.Backfill,
    backfill.BackfillFailure: arcs.Failure,
    backfills.Begun: arcs.Begun,
    backfills.BackfillList: arcs.Backfills,
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
