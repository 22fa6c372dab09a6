"""The overview of the system: open work by job, stuck lots, holds, late datasets and throughput."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from penstock.clock import HOUR, SECOND, Micros, format_time
from penstock.db import Transaction
from penstock.db.database import Ask, Row
from penstock.locks.explain.facts import WholeHold
from penstock.locks.queries.claims import show_hold
from penstock.locks.rows import HOLD_SENTINEL
from penstock.schema.admin import JobStanding, LateDataset, LotHour, StuckLot, SystemOverview
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import Interval, IntervalLot, parse_interval
from penstock.schema.shape import time_or_none
from penstock.states import RunState, WorkState


def find_late_datasets(rows: list[Row], now: Micros) -> list[LateDataset]:
    """Return the late datasets, the most recent first."""
    found = [one for row in rows if (one := _late(row, now)) is not None]
    return sorted(found, key=lambda one: one.since, reverse=True)


def _late(row: Row, now: Micros) -> LateDataset | None:
    """Check one dataset by its newest READY lot, or by the oldest lot that was read."""
    namespace, dataset, declared, ready, oldest = row
    interval = Interval(declared)
    known = parse_interval(ready or oldest or "")
    if known is None or known.interval is not interval:
        return None
    length = interval.length
    first = known.end if ready else known.start
    count = (now - first) // length - 1
    if count < 1:
        return None
    lot = IntervalLot(interval, first).id
    since = format_time(first + 2 * length)
    return LateDataset(namespace, dataset, interval, lot, count, since)


_decode_ids = msgspec.json.Decoder(tuple[str, ...]).decode
COUNTED_MAX = 1000  # lots of a job in each state
JOBS_MAX = 500
JOBS_READ_MAX = 5000  # jobs with open lots, in all namespaces
DATASETS_MAX = 500
NEWEST_READ_MAX = 100  # lots of a dataset that are read to find a READY one
STUCK_READ_MAX = 2000
SHOWN_MAX = 50
EVENTS_MAX = 50_000
HOURS = 24


def get_overview(tx: Transaction, namespace: str | None, now: Micros) -> SystemOverview:
    """Load the overview of all namespaces, or of one."""
    scope = {"namespace": namespace}
    of_jobs = {**scope, "looked_at": JOBS_READ_MAX}
    states, work, stuck, holds, newest = tx.fetch_many(
        [
            _tallies(namespace),
            ("standing_of_jobs", {**of_jobs, "most": COUNTED_MAX, "jobs": JOBS_MAX}),
            ("stuck_lots", {**of_jobs, "most": STUCK_READ_MAX, "limit": SHOWN_MAX}),
            ("whole_holds", {**scope, "limit": SHOWN_MAX}),
            ("newest_lots", {**scope, "most": NEWEST_READ_MAX, "datasets": DATASETS_MAX}),
        ]
    )
    jobs_read = work[0][0]
    jobs = [JobStanding(*found) for _, *found in work if found[0] is not None]
    return SystemOverview(
        jobs={RunState(state): count for state, count in states if state and count},
        work=sorted(jobs, key=lambda job: (-job.open, job.namespace, job.job)),
        stuck=_list_stuck(tx, stuck),
        holds=[show_hold(WholeHold(*row[1:])) for row in holds],
        late=find_late_datasets(newest, now)[:SHOWN_MAX],
        hours=_hours(tx, namespace, now),
        at_least=jobs_read >= JOBS_READ_MAX
        or len(jobs) == JOBS_MAX
        or any(COUNTED_MAX in _counts(job) for job in jobs),
    )


def _tallies(namespace: str | None) -> Ask:
    """Return the query that counts jobs by the state of their latest run."""
    if namespace is None:
        return "read_tallies", {"kind": "JOB"}
    return "read_tallies_of_namespace", {"kind": "JOB", "namespace": namespace}


def _list_stuck(tx: Transaction, rows: Sequence[Row]) -> list[StuckLot]:
    """Load stuck lots; for jobs without inputs, with the output whose hold stops them."""
    keys = [
        dataset + job_id + lot
        for _, _, lot, state, *_, job_id, inputs, outputs, _, _ in rows
        if state == WorkState.HELD and not _decode_ids(inputs)
        for dataset in _decode_ids(outputs)
    ]
    found = tx.fetch("held_outputs", keys=keys, nowhere=HOLD_SENTINEL) if keys else ()
    held = {(job_id, lot): EntityId(space, name) for job_id, lot, space, name in found}
    return [_stuck(row, held) for row in rows]


def _stuck(row: Row, held_lots: Mapping[tuple[str, str], EntityId]) -> StuckLot:
    *known, since, not_before, run, job_id, _, _, who, why = row
    space, job, lot, state, tries, tries_max, error = known
    return StuckLot(
        namespace=space,
        job=job,
        lot=lot,
        state=WorkState(state),
        attempts=tries,
        attempts_max=tries_max,
        error=error,
        since=format_time(since),
        not_before=time_or_none(not_before or None),
        run=run,
        held=f"{who}: {why}" if who and state == WorkState.HELD else None,
        held_lot_of=held_lots.get((job_id, lot)),
    )


def _counts(job: JobStanding) -> tuple[int, ...]:
    return job.ready, job.waiting, job.retryable, job.held


def _hours(tx: Transaction, namespace: str | None, now: Micros) -> list[LotHour]:
    first = now // HOUR - HOURS + 1
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for hour, kind, count in tx.fetch(
        "lots_by_hour", namespace=namespace, slot=HOUR, after=first * HOUR, most=EVENTS_MAX
    ):
        found[hour][kind] = count
    return [
        LotHour(format_time(hour * HOUR), found.get(hour, {}))
        for hour in range(first, first + HOURS)
    ]


_COUNTED = (
    WorkState.READY,
    WorkState.WAITING,
    WorkState.RETRYABLE,
    WorkState.HELD,
    WorkState.RUNNING,
)


class Backlog(Struct, frozen=True):
    """The open lots by state, up to a thousand per job and state, and the age of the oldest.

    The age of READY work is that of the next lot of each job; without lots, the age is 0.
    """

    lots: Mapping[WorkState, int]
    ready_seconds: float
    running_seconds: float


def get_backlog(tx: Transaction, now: Micros) -> Backlog:
    """Load the backlog of all jobs."""
    most = {"looked_at": JOBS_READ_MAX, "most": COUNTED_MAX, "jobs": JOBS_MAX, "namespace": None}
    jobs, [[ready, running]] = tx.fetch_many(
        [("standing_of_jobs", most), ("oldest_work", {"looked_at": JOBS_READ_MAX})]
    )
    counts = [row[3:] for row in jobs if row[1] is not None]
    totals = map(sum, zip(*counts, strict=True)) if counts else [0] * len(_COUNTED)
    return Backlog(
        lots=dict(zip(_COUNTED, totals, strict=True)),
        ready_seconds=_age(ready, now),
        running_seconds=_age(running, now),
    )


def _age(since: Micros | None, now: Micros) -> float:
    return 0.0 if since is None else max(0.0, (now - since) / SECOND)
