"""Lots: listed, registered, held and released; their log, checks and holds."""

from typing import Annotated

from msgspec import Meta, structs

from penstock.access.keys import Key
from penstock.arcs.outputs.state_keys import follow_maker
from penstock.catalog.queries import catalog as catalog_reading
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.locks.acceptance import accept
from penstock.locks.commands import HoldDataset, HoldLot, RegisterLots
from penstock.locks.explain.facts import HoldEntry
from penstock.locks.queries import claims, holds, lots, visibility
from penstock.locks.queries import lots as reading_lots
from penstock.schema.admin import KeyRole
from penstock.schema.locks import HeldDataset, ReleasedDataset, WorkPage
from penstock.schema.lots import (
    DatasetChecks,
    Held,
    HeldLots,
    Log,
    Lot,
    LotChecks,
    LotHold,
    LotOnHold,
    Lots,
    Registered,
)
from penstock.schema.texts import LotName
from penstock.server import requests as activity_log
from penstock.server.content import Body, OwnBody, Paging
from penstock.server.requests import RequestContext
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route

LOTS_AT_ONCE_MAX = 10_000
PRIORITY_MAX = 1 << 31

Priority = Annotated[int, Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]
LotIds = Annotated[tuple[LotName, ...], Meta(min_length=1, max_length=LOTS_AT_ONCE_MAX)]


class LotsBody(Body, frozen=True):
    """Lots that come from outside; those of a higher priority are worked on first."""

    lots: LotIds
    priority: Priority = 0
    renew: bool = False


class WhyBody(OwnBody, frozen=True):
    """The reason of an administrator, for the audit log."""

    why: Annotated[str, Meta(min_length=1, max_length=2_000)]


class LotsQuery(Paging, frozen=True):
    """A page of a dataset's lots; with `named`, of those with free names."""

    named: bool = False


async def register_lots(
    context: RequestContext, namespace: str, dataset: str, body: LotsBody
) -> Registered:
    """Register lots that no job of Penstock made; they become READY.

    A lot that is READY stays as it is; with `renew` it gets a new version.
    """
    await context.require_dataset(namespace, dataset)
    who = context.key.name
    command = RegisterLots(namespace, dataset, body.lots, who, body.priority, body.renew)
    count = await context.submit(command)
    lots = body.lots[0] if len(body.lots) == 1 else ""
    activity_log.changed(
        context, f"{count} lots are registered", dataset=f"{namespace}/{dataset}", lot=lots
    )
    return Registered(count)


def list_lots(tx: Transaction, key: Key, namespace: str, dataset: str, query: LotsQuery) -> Lots:
    """List the lots of a dataset, by lot.

    Lots with free names (`named`) are searched among the first and the last thousand.
    """
    _require(tx, key, namespace, dataset)
    read = reading_lots.list_named_lots if query.named else reading_lots.list_lots
    page = read(tx, namespace, dataset, query.limit, query.offset)
    return Lots(
        [visibility.redact_lot(item, key.namespace) for item in page.items], page.total_count
    )


def get_lot(tx: Transaction, key: Key, namespace: str, dataset: str, lot: str) -> Lot:
    """Show a lot of a dataset: its producer, its locks and its consumers."""
    _require(tx, key, namespace, dataset)
    return visibility.redact_lot(reading_lots.get_lot(tx, namespace, dataset, lot), key.namespace)


def get_lot_hold(tx: Transaction, key: Key, namespace: str, dataset: str, lot: str) -> LotHold:
    """Show the hold of a lot, and the command that releases it."""
    _require(tx, key, namespace, dataset)
    return visibility.redact_hold(holds.get_lot_hold(tx, namespace, dataset, lot), key.namespace)


def list_lot_log(
    tx: Transaction, key: Key, namespace: str, dataset: str, lot: str, query: Paging
) -> Log:
    """List the log of a lot, in its dataset and in the jobs around it, newest first."""
    _require(tx, key, namespace, dataset)
    page = query.limit, query.offset
    entries = reading_lots.list_log_of_lot(tx, namespace, dataset, lot, *page)
    return Log(visibility.redact_log(entries, key.namespace))


def _require(tx: Transaction, key: Key, namespace: str, dataset: str) -> None:
    """Refuse a second name of another namespace's dataset to a key of one namespace."""
    if key.namespace is not None:
        row = catalog_reading.get_dataset(tx, namespace, dataset, include_deleted=True)
        key.require_own(row.namespace)


async def hold_dataset(
    context: RequestContext, namespace: str, dataset: str, body: WhyBody
) -> HeldDataset:
    """Hold a dataset: every job that reads or writes its lots stops until the hold is released."""
    await _hold_dataset(context, namespace, dataset, body, hold=True)
    return await context.read(claims.get_held_dataset, namespace, dataset)


async def release_dataset(
    context: RequestContext, namespace: str, dataset: str, body: WhyBody
) -> ReleasedDataset:
    """Release the hold of a dataset; the answer names the holds that still stop its jobs.

    If the dataset is not held, the answer is a conflict that names what stops its jobs.
    """
    await _hold_dataset(context, namespace, dataset, body, hold=False)
    only = context.key.namespace
    return await context.read(claims.get_released_dataset, namespace, dataset, only)


async def _hold_dataset(
    context: RequestContext, namespace: str, dataset: str, body: WhyBody, *, hold: bool
) -> None:
    await context.require_dataset(namespace, dataset)
    who, only = context.key.name, context.key.namespace
    await context.submit(HoldDataset(who, body.why, namespace, dataset, hold, only))
    what = f"a dataset is {'held' if hold else 'let go'} ({body.why})"
    activity_log.changed(context, what, dataset=f"{namespace}/{dataset}")


async def hold_lot(
    context: RequestContext, namespace: str, dataset: str, lot: str, body: WhyBody
) -> LotOnHold:
    """Hold a lot of a dataset for all jobs. A held lot gets another reason."""
    before = await _hold_lot(context, namespace, dataset, lot, body, hold=True)
    shown = await context.read(reading_lots.show_lot, namespace, dataset, lot)
    visible = visibility.redact_lot(shown, context.key.namespace)
    held = Held(before.who, before.why, format_time(before.at)) if before is not None else None
    return LotOnHold(*structs.astuple(visible), held_before=held)


async def release_lot(
    context: RequestContext, namespace: str, dataset: str, lot: str, body: WhyBody
) -> Lot:
    """Release the hold of a lot; its earlier status returns.

    If the lot is not held, the answer is a conflict that names what stops it instead.
    """
    await _hold_lot(context, namespace, dataset, lot, body, hold=False)
    row = await context.read(reading_lots.show_lot, namespace, dataset, lot)
    return visibility.redact_lot(row, context.key.namespace)


async def _hold_lot(
    context: RequestContext, namespace: str, dataset: str, lot: str, body: WhyBody, *, hold: bool
) -> HoldEntry | None:
    await context.require_dataset(namespace, dataset)
    who, only = context.key.name, context.key.namespace
    before = await context.submit(HoldLot(who, body.why, namespace, dataset, lot, hold, only))
    what = f"a lot is {'held' if hold else 'let go'} ({body.why})"
    activity_log.changed(context, what, dataset=f"{namespace}/{dataset}", lot=lot)
    return before


_DATASET = f"{BASE}/namespaces/{{namespace}}/datasets/{{dataset}}"
_LOT = f"{_DATASET}/lots/{{lot}}"


class StaleQuery(Paging, frozen=True):
    """The selection of stale work: by namespace and job."""

    namespace: str | None = None
    job: str | None = None


class ChecksQuery(Paging, frozen=True):
    """A page of check results; with `failed`, of failures only."""

    failed: bool = False


def list_checks(tx: Transaction, namespace: str, dataset: str, query: ChecksQuery) -> DatasetChecks:
    """List the check results of a dataset's lots, newest first."""
    page = query.limit, query.offset
    return lots.list_dataset_checks(tx, namespace, dataset, *page, failed=query.failed)


def get_checks(tx: Transaction, namespace: str, dataset: str, lot: str) -> LotChecks:
    """Show the check results of a lot, newest first."""
    return lots.list_lot_checks(tx, namespace, dataset, lot)


async def accept_lot(
    context: RequestContext, namespace: str, dataset: str, lot: str, body: WhyBody
) -> Lot:
    """Accept a lot whose checks failed, so that jobs can read it."""
    await context.require_dataset(namespace, dataset)
    plane, who = context.plane, context.key.name

    def work() -> None:
        accept(plane.catalog, plane.objects, namespace, dataset, lot, who=who, why=body.why)
        follow_maker(plane.catalog, plane.objects, namespace, dataset, lot)

    await context.state.in_thread(work)
    row = await context.read(lots.show_lot, namespace, dataset, lot)
    return visibility.redact_lot(row, context.key.namespace)


async def list_stale(context: RequestContext, query: StaleQuery) -> WorkPage:
    """List stale work: lots that were made from inputs that have newer versions."""
    only = context.key.namespace or query.namespace
    return await context.read(lots.list_stale, only, query.job, query.limit, query.offset)


class HeldQuery(Paging, frozen=True):
    """The selection of held lots: by namespace, or only those with failed checks."""

    namespace: str | None = None
    for_checks: bool = False


def list_held_lots(tx: Transaction, key: Key, query: HeldQuery) -> HeldLots:
    """List the held lots, last held first, with the reason and the producer of each."""
    page = holds.list_held_lots(
        tx,
        key.namespace or query.namespace,
        for_checks=query.for_checks,
        limit=query.limit,
        offset=query.offset,
    )
    return HeldLots(
        [visibility.redact_held_lot(item, key.namespace) for item in page.items], page.total_count
    )


ROUTES = (
    Route(READ, "GET", f"{_DATASET}/lots", list_lots),
    Route(ASYNC, "POST", f"{_DATASET}/lots", register_lots, role=KeyRole.WRITER),
    Route(READ, "GET", _LOT, get_lot),
    Route(READ, "GET", f"{_LOT}/log", list_lot_log),
    Route(READ, "GET", f"{_LOT}/hold", get_lot_hold),
    Route(ASYNC, "POST", f"{_LOT}/hold", hold_lot, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_LOT}/release", release_lot, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_DATASET}/hold", hold_dataset, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_DATASET}/release", release_dataset, role=KeyRole.ADMIN),
    Route(READ, "GET", f"{_DATASET}/checks", list_checks),
    Route(READ, "GET", f"{_LOT}/checks", get_checks),
    Route(ASYNC, "POST", f"{_LOT}/accept", accept_lot, role=KeyRole.ADMIN),
    Route(ASYNC, "GET", f"{BASE}/stale", list_stale, Reach.OWN),
    Route(READ, "GET", f"{BASE}/held-lots", list_held_lots, Reach.OWN),
)
