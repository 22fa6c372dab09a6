"""Manifests of lots, the removal of lots, and the gaps of datasets."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from msgspec import Meta, field

from penstock import ids
from penstock.access.keys import Key
from penstock.arcs.outputs.removal import remove_lot
from penstock.arcs.queries import manifest_rows, read_manifest
from penstock.catalog.queries import catalog as catalog_reading
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Conflict, NotFound
from penstock.locks.gaps import gaps as lot_gaps
from penstock.locks.queries.claims import find_dataset
from penstock.locks.queries.lots import get_lot
from penstock.lots.manifests import Item, Manifest, PartLine
from penstock.lots.rows import ManifestRow
from penstock.objects import Objects
from penstock.schema.admin import KeyRole
from penstock.schema.gaps import Gaps
from penstock.schema.lot_ids import Interval
from penstock.schema.lots import LotManifest, ManifestItem, ManifestPart, RemovedLot
from penstock.schema.shape import Shape
from penstock.server import requests as activity_log
from penstock.server.content import Paging, Query
from penstock.server.requests import RequestContext
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import ASYNC, BASE, READ, Route
from penstock.states import ManifestState

Bound = Annotated[str, Meta(description="a time, or a lot that is meant with its whole interval")]


class ManifestQuery(Paging, frozen=True):
    """The version of the lot, and the page of its items."""

    version: str | None = None


class GapsQuery(Query, frozen=True):
    """The range of a gap search, in times or lots; an open end goes as far as lots exist."""

    first: Bound | None = field(name="from", default=None)
    last: Bound | None = field(name="to", default=None)
    interval: Interval | None = None
    causes: bool = True


class _CurrentManifest(Shape, frozen=True):
    """A manifest as the database has it."""

    row: ManifestRow
    is_current: bool


async def get_manifest(
    context: RequestContext, namespace: str, dataset: str, lot: str, query: ManifestQuery
) -> LotManifest:
    """Show the manifest of a lot's current version, or of another; items come in pages."""
    await context.require_dataset(namespace, dataset)
    manifest = await context.read(_find, namespace, dataset, lot, query.version)

    def work() -> LotManifest:
        try:
            return _show(context.plane.objects, namespace, dataset, manifest, query)
        except NotFound as error:
            raise Conflict(
                f"the manifest of lot {lot} of {namespace}/{dataset} should be there, and is not: "
                f"{error}. `penstock verify {namespace}/{dataset} {lot}` says what else is wrong; "
                "restore it from a backup, or resubmit the lot"
            ) from None

    return await context.state.in_thread(work)


class RemoveBody(WhyBody, frozen=True):
    """The reason of a removal; `force` removes a lot without a manifest that jobs have read."""

    force: bool = False


async def remove(
    context: RequestContext, namespace: str, dataset: str, lot: str, body: RemoveBody
) -> RemovedLot:
    """Remove the data of a lot; no job can read it until it is made again.

    The answer has the manifest of the removed data. Data that no arc wrote must be deleted
    before. A repeated request finishes an interrupted removal. A lot without a manifest and without
    readers is deleted; one with readers is marked as removed, with `force`.
    """
    await context.require_dataset(namespace, dataset)
    plane, who = context.plane, context.key.name

    def work() -> None:
        target = (namespace, dataset, lot)
        remove_lot(plane.catalog, plane.objects, who, body.why, *target, force=body.force)

    await context.state.in_thread(work)
    activity_log.changed(
        context, f"a lot is removed ({body.why})", dataset=f"{namespace}/{dataset}", lot=lot
    )
    try:
        manifest = await get_manifest(context, namespace, dataset, lot, ManifestQuery())
    except NotFound:
        manifest = None
    return RemovedLot(namespace, dataset, lot, manifest)


def _find(
    tx: Transaction, namespace: str, dataset: str, lot: str, version: str | None
) -> _CurrentManifest:
    lot_row = get_lot(tx, namespace, dataset, lot)
    wanted = ids.run_id(version) if version is not None else lot_row.version
    row = manifest_rows(tx, [wanted]).get(wanted) if wanted is not None else None
    if row is None or (row.dataset_id, row.lot) != (find_dataset(tx, namespace, dataset), lot):
        which = f"version {version} of lot {lot}" if version is not None else f"lot {lot}"
        raise NotFound(
            f"{which} of {namespace}/{dataset} has no manifest: it was registered without one, or "
            "was never made"
        )
    return _CurrentManifest(row, row.version_id == lot_row.version)


def _show(
    objects: Objects, namespace: str, dataset: str, manifest: _CurrentManifest, query: ManifestQuery
) -> LotManifest:
    row = manifest.row
    root = read_manifest(objects, row.key)
    items = islice(_items(objects, root, query.offset), query.limit)
    return LotManifest(
        namespace=namespace,
        dataset=dataset,
        lot=row.lot,
        version=row.version_id,
        is_current=manifest.is_current,
        state=ManifestState(row.state),
        uri_type=root.uri_type,
        label=root.dataset.version,
        key=row.key,
        url=f"{objects.url}/{row.key}",
        digest=row.digest,
        attempt=row.attempt,
        comment=root.comment,
        created=root.created,
        published_at=format_time(row.at),
        total_count=row.uris,
        bytes=row.bytes,
        parts=[_part(line) for line in root.parts],
        uris=list(items),
    )


def _part(line: PartLine) -> ManifestPart:
    return ManifestPart(line.part, line.key, line.state, line.uris, line.bytes)


def _items(objects: Objects, root: Manifest, offset: int) -> Iterator[ManifestItem]:
    """Return a page of items of a manifest and its parts; parts before the page are not read."""
    yield from (_item(item, None) for item in root.uris[offset:])
    left = max(0, offset - len(root.uris))
    for line in root.parts:
        if left >= line.uris:
            left -= line.uris
            continue
        for item in read_manifest(objects, line.key).uris[left:]:
            yield _item(item, line.part)
        left = 0


def _item(item: Item, part: str | None) -> ManifestItem:
    return ManifestItem(item.uri, item.size, item.digest, item.created, item.format, item.ark, part)


def get_gaps(
    tx: Transaction, key: Key, now: Micros, namespace: str, dataset: str, query: GapsQuery
) -> Gaps:
    """List the gaps of a dataset: ranges of lots that are missing or incomplete, with the cause.

    `from` and `to` are times, half-open, or lots, which belong to the range with their whole
    interval. Without `from` it begins with the first lot, without `to` it ends now. The lots
    of a range have one cause, that of the first, and `roots` are the lots upstream that must
    come first; where `isAlike` is false, others after the first may have other causes.
    """
    if key.namespace is not None:
        found = catalog_reading.get_dataset(tx, namespace, dataset, include_deleted=True)
        key.require_own(found.namespace)
    return lot_gaps.load_gaps(
        tx,
        namespace,
        dataset,
        query.first,
        query.last,
        now,
        with_causes=query.causes,
        interval=query.interval,
        only=key.namespace,
    )


_DATASET = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}"

ROUTES = (
    Route(ASYNC, "GET", f"{_DATASET}/lots/{{lot}}/manifest", get_manifest),
    Route(ASYNC, "POST", f"{_DATASET}/lots/{{lot}}/remove", remove, role=KeyRole.ADMIN),
    Route(READ, "GET", f"{_DATASET}/gaps", get_gaps),
)
