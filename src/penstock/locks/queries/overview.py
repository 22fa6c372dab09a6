"""How everything stands now: open work by job, what is stuck, what is held, and how much flows."""

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
    """The datasets that are late, the last to become so first."""
    found = [one for row in rows if (one := _late(row, now)) is not None]
    return sorted(found, key=lambda one: one.since, reverse=True)


def _late(row: Row, now: Micros) -> LateDataset | None:
    """One dataset, by its newest lot that is READY, or else by the oldest that was looked at."""
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
JOBS_LOOKED_AT = 5000  # that have open lots, of any namespace
DATASETS_MAX = 500
NEWEST_LOOKED_AT = 100  # lots of a dataset, for one that is READY
STUCK_LOOKED_AT = 2000
SHOWN_MAX = 50
EVENTS_MAX = 50_000
HOURS = 24


def get_overview(tx: Transaction, namespace: str | None, now: Micros) -> SystemOverview:
    """How everything stands, or what is of one namespace."""
    own = {"namespace": namespace}
    of_jobs = {**own, "looked_at": JOBS_LOOKED_AT}
    states, work, stuck, holds, newest = tx.fetch_many(
        [
            _tallies(namespace),
            ("standing_of_jobs", {**of_jobs, "most": COUNTED_MAX, "jobs": JOBS_MAX}),
            ("stuck_lots", {**of_jobs, "most": STUCK_LOOKED_AT, "limit": SHOWN_MAX}),
            ("whole_holds", {**own, "limit": SHOWN_MAX}),
            ("newest_lots", {**own, "most": NEWEST_LOOKED_AT, "datasets": DATASETS_MAX}),
        ]
    )
    looked_at = work[0][0]
    jobs = [JobStanding(*found) for _, *found in work if found[0] is not None]
    return SystemOverview(
        jobs={RunState(state): count for state, count in states if state and count},
        work=sorted(jobs, key=lambda job: (-job.open, job.namespace, job.job)),
        stuck=_list_stuck(tx, stuck),
        holds=[show_hold(WholeHold(*row[1:])) for row in holds],
        late=find_late_datasets(newest, now)[:SHOWN_MAX],
        hours=_hours(tx, namespace, now),
        at_least=looked_at >= JOBS_LOOKED_AT
        or len(jobs) == JOBS_MAX
        or any(COUNTED_MAX in _counts(job) for job in jobs),
    )


def _tallies(namespace: str | None) -> Ask:
    """How many jobs ended, or are, in which state with their latest run."""
    if namespace is None:
        return "read_tallies", {"kind": "JOB"}
    return "read_tallies_of_namespace", {"kind": "JOB", "namespace": namespace}


def _list_stuck(tx: Transaction, rows: Sequence[Row]) -> list[StuckLot]:
    """Lots that are stuck; of jobs that read nothing, with the lot whose hold keeps them so."""
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
    return job.ready, job.waiting, job.later, job.held


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
    WorkState.LATER,
    WorkState.HELD,
    WorkState.RUNNING,
)


class Backlog(Struct, frozen=True):
    """Open lots by state, up to a thousand of a job in each, and how long the oldest are so.

    A lot that is ready counts as the next of its job. With none there is no age, but 0.
    """

    lots: Mapping[WorkState, int]
    ready_seconds: float
    running_seconds: float


def get_backlog(tx: Transaction, now: Micros) -> Backlog:
    """What jobs have to do."""
    most = {"looked_at": JOBS_LOOKED_AT, "most": COUNTED_MAX, "jobs": JOBS_MAX, "namespace": None}
    jobs, [[ready, running]] = tx.fetch_many(
        [("standing_of_jobs", most), ("oldest_work", {"looked_at": JOBS_LOOKED_AT})]
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
