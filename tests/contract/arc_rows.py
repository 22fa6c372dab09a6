"""Rows that two busy arcs leave behind: lots, attempts, backfills, arrivals, events."""

from collections.abc import Iterator
from functools import cache

import msgspec

from penstock import ids
from penstock.arcs.arrivals.arrival import ArrivedRow, Placed
from penstock.arcs.arrivals.rows import ArrivalRow
from penstock.arcs.rows import ArcRow, AttemptRow, PartRow, UnsettledRow
from penstock.catalog.entities.runs import lot_facets
from penstock.catalog.rows import DatasetRow, JobRow, replace
from penstock.db import Transaction
from penstock.locks.commands.wiring import default_wiring
from penstock.locks.rows import EXTERNAL_JOB, LogRow, LotJobDatasetRow, StatusRow
from penstock.locks.work_state import new_work
from penstock.lots.rows import LotDatasetRow, LotEventRow, ManifestRow, RunEndRow, SubscriberRow
from penstock.operations.backfills.rows import BackfillLotRow, BackfillRow, LotOutcome
from penstock.schema.arcs import PartState
from penstock.schema.catalog import DatasetRole
from penstock.schema.lots import Status
from penstock.schema.operations import BackfillAction
from penstock.schema.subscribers import SubscriberKind
from penstock.states import BackfillState, ManifestState, WorkState
from tests.contract.catalog_rows import NAMESPACE, NOW, dataset, job, run

DONE = 20_000
OPEN = 5  # in each other state: PostgreSQL may rather read all attempts once than look up many
OVER = 1_000  # backfills
RAW, CLEAN, TOP = DATASETS = [dataset(name) for name in ("raw", "clean", "top")]
ARCS = [job("clean"), job("top")]  # each reads the dataset before the one it writes
BACKFILL = ids.derived_id("the backfill that goes")
STATES = [WorkState.DONE] * DONE + [state for state in WorkState if state != "DONE"] * OPEN
# What is rare comes last by name: whoever looks for it among all the others passes all of them.
LOTS = [f"lot {number:05}" for number in range(len(STATES))]
RARE = range(DONE - 200, DONE)


def fill(tx: Transaction) -> None:
    """Write all rows."""
    tx.write("put_datasets", DATASETS)
    tx.write("put_jobs", ARCS)
    tx.write("put_lot_datasets", [LotDatasetRow(d.id, "", "1", 0, NOW) for d in DATASETS])
    _fill_manifests(tx, RAW, None)
    for of, reads, writes in zip(ARCS, DATASETS, DATASETS[1:], strict=False):
        declared = ArcRow(of.id, of.namespace, of.name, "shop", "{}", NOW, NOW)
        tx.write("put_arcs", [declared])
        _wire(tx, of, reads, writes)
        _fill_work(tx, of)
        _fill_runs(tx, of)
        _fill_manifests(tx, writes, of)
        _fill_status(tx, of, reads, writes)
        _fill_attempts(tx, of)
    _fill_arrivals(tx)
    _fill_backfills(tx)
    _fill_subscribers(tx)


@cache
def run_of(of: JobRow, number: int, part: str = "") -> str:
    """Return the last run of an arc on a lot, or of a part of it."""
    return ids.derived_id("run", of.name, str(number), part)


@cache
def version_of(of: DatasetRow, number: int) -> str:
    """Return the version of a lot."""
    return ids.derived_id("version", of.name, str(number))


def uri_of(number: int) -> str:
    """Return the object of a lot."""
    return f"s3://shop/raw/{number:05}"


def backfill_of(number: int) -> str:
    """Return a backfill that has ended."""
    return ids.derived_id("backfill", str(number))


def _wire(tx: Transaction, of: JobRow, reads: DatasetRow, writes: DatasetRow) -> None:
    inputs, outputs = (msgspec.json.encode([row.id]).decode() for row in (reads, writes))
    tx.write("put_lot_jobs", [replace(default_wiring(of.id, NOW), inputs=inputs, outputs=outputs)])
    wires = [(reads.id, DatasetRole.INPUT), (writes.id, DatasetRole.OUTPUT)]
    tx.write("put_lot_job_datasets", [LotJobDatasetRow(d, role, of.id) for d, role in wires])


def _fill_work(tx: Transaction, of: JobRow) -> None:
    """One open lot of three was never tried."""
    work, log = [], []
    for number, (lot, state) in enumerate(zip(LOTS, STATES, strict=True)):
        is_tried = state in (WorkState.DONE, WorkState.RUNNING) or number % 3 > 0
        run_id = run_of(of, number) if is_tried else None
        made = new_work(of.id, lot, 0, state, NOW)
        at = NOW + number
        work.append(
            replace(made, tries=int(is_tried), run_id=run_id, lease_until=at, not_before=at)
        )
        log.append(LogRow(NOW, "complete", lot, of.id, None, run_id, "RUNNING", state, "w", ""))
    tx.write("put_lot_work", work)
    tx.write("add_lot_log", log)


def _fill_runs(tx: Transaction, of: JobRow) -> None:
    runs = [
        replace(run(of, number), id=run_of(of, number), facets=lot_facets(LOTS[number], 1))
        for number in range(DONE)
    ]
    tx.write("put_runs", runs)
    tx.write("add_run_ends", [RunEndRow(NOW + place, each.id) for place, each in enumerate(runs)])


def _fill_manifests(tx: Transaction, of: DatasetRow, by: JobRow | None) -> None:
    """Every tenth lot has two versions; a few failed a check. All are in the outbox."""
    manifests, events = [], []
    for number, lot in enumerate(LOTS[:DONE]):
        version_id = version_of(of, number)
        state = ManifestState.PARTIAL if by and number in RARE else ManifestState.COMPLETE
        made = ManifestRow(version_id, of.id, lot, state, "key", 1, 1, "0" * 64, "", NOW)
        manifests.append(made)
        if number % 10 == 0:
            before = ids.derived_id("before", version_id)
            manifests.append(replace(made, version_id=before, state=ManifestState.REMOVED))
        job_id, run_id = (None, None) if by is None else (by.id, run_of(by, number))
        events.append(
            LotEventRow(NOW + number, "published", of.id, lot, state, version_id, job_id, run_id)
        )
    tx.write("put_lot_manifests", manifests)
    tx.write("add_lot_events", events)


def _fill_status(tx: Transaction, of: JobRow, reads: DatasetRow, writes: DatasetRow) -> None:
    status = []
    for number, lot in enumerate(LOTS[:DONE]):
        run_id, read = run_of(of, number), version_of(reads, number)
        made = version_of(writes, number)
        status += [
            StatusRow(reads.id, lot, DatasetRole.INPUT, of.id, Status.DONE, "", run_id, read, NOW),
            StatusRow(
                writes.id, lot, DatasetRole.OUTPUT, of.id, Status.READY, "", run_id, made, NOW
            ),
        ]
        if reads is RAW:
            status.append(
                StatusRow(
                    RAW.id, lot, DatasetRole.OUTPUT, EXTERNAL_JOB, Status.READY, "", None, read, NOW
                )
            )
    tx.write("put_lot_status", status)


def _fill_attempts(tx: Transaction, of: JobRow) -> None:
    """Every other lot failed once, and all open lots twice; their parts remain."""
    attempts, parts = [], []
    for number in (*range(0, DONE, 2), *range(DONE, len(LOTS))):
        lot, is_open = LOTS[number], number >= DONE
        state = ManifestState.PARTIAL if is_open and number % 2 else ManifestState.REMOVED
        for time in ("first", "second")[: 1 + is_open]:
            run_id = ids.derived_id(time, of.name, str(number))
            attempts.append(AttemptRow(run_id, of.id, lot, state, '["key"]', NOW))
        for part in ("a", "b"):
            made = run_of(of, number, part)
            parts.append(
                PartRow(of.id, lot, part, PartState.FAILED, "", run_id, made, "[]", "lost", NOW)
            )
    tx.write("put_arc_attempts", attempts)
    tx.write("put_arc_parts", parts)
    few = LOTS[DONE - 10 : DONE]  # whose keys an engine is just writing
    tx.write("put_unsettled_keys", [UnsettledRow(of.id, lot, run_of(of, 0)) for lot in few])


def _fill_arrivals(tx: Transaction) -> None:
    """Every object makes a lot, except a few late ones."""
    declared = ArrivalRow(RAW.id, NAMESPACE, RAW.name, "{}", 0, NOW, 1, NOW, NOW)
    tx.write("put_arrivals", [declared])
    objects = []
    for number in range(DONE):
        state, refused = (Placed.REFUSED, "m") if number in RARE else (Placed.ASSIGNED, "")
        objects.append(
            ArrivedRow(RAW.id, uri_of(number), LOTS[number], state, 1, "m", refused, NOW, NOW)
        )
    tx.write("put_arrived_objects", objects)


def _fill_backfills(tx: Transaction) -> None:
    """One is half done, with a few going and failed lots; the others have ended."""
    arc = ARCS[0].id
    state = BackfillState.RUNNING
    goes = BackfillRow(BACKFILL, arc, state, "{}", NOW, "{}", "ann", "", 0, NOW, NOW)
    over = [
        replace(
            goes, id=backfill_of(number), state=BackfillState.DONE, since=NOW - number,
            created_at=NOW - number,
        )
        for number in range(OVER)
    ]  # fmt: skip
    tx.write("put_backfills", [goes, *over])
    tx.write("put_backfill_lots", list(_backfill_lots()))


def _backfill_lots() -> Iterator[BackfillLotRow]:
    for number in range(DONE):
        state = LotOutcome.DONE if number < DONE // 2 else LotOutcome.WAITING
        if number in RARE:
            state = LotOutcome.GOING if number % 2 else LotOutcome.FAILED
        yield BackfillLotRow(BACKFILL, LOTS[number], state, BackfillAction.RUN, NOW)
    for number in range(OVER):
        for lot in LOTS[:10]:
            yield BackfillLotRow(backfill_of(number), lot, LotOutcome.DONE, BackfillAction.RUN, NOW)


def _fill_subscribers(tx: Transaction) -> None:
    """Some of each kind have received everything, and one has received little."""
    events, ends = 3 * DONE, 2 * DONE
    told = {
        "behind": (SubscriberKind.WEBHOOK, 100),
        "first": (SubscriberKind.WEBHOOK, events),
        "lineage": (SubscriberKind.OPENLINEAGE, ends),
        "second": (SubscriberKind.WEBHOOK, events),
    }
    tx.write(
        "put_subscribers",
        [
            SubscriberRow(
                name=name, kind=kind, url="http://there", secret=None, namespace="", dataset="",
                cursor=cursor, token=1, owner="", lease_until=0, failures=0, next_try_at=0,
                error="", failed_at=None, delivered_at=NOW, created_at=NOW, updated_at=NOW,
            )
            for name, (kind, cursor) in told.items()
        ],
    )  # fmt: skip
    for outbox in ("lots", "runs"):
        tx.execute("put_pruned_upto", outbox=outbox, upto=0)
