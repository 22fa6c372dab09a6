"""Reading how arcs stand with their lots, for people."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from penstock.arcs.queries import arc_states, attempts_of, find_arc, parts_of
from penstock.arcs.rows import ArcRow, PartRow
from penstock.clock import format_time
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.locks.explain.text import ask_why
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.rows import LotJobRow, WorkRow
from penstock.lots.rows import ManifestRow
from penstock.schema.arcs import (
    ArcCounts,
    ArcLot,
    ArcLotDetail,
    ArcPart,
    FailedAttempt,
    ManifestLine,
    PartState,
)
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import check_lot
from penstock.schema.lots import Status
from penstock.schema.shape import time_or_none
from penstock.states import ArcState, ManifestState, WorkState

COUNTED_MAX = 1000  # lots of each kind
DONE_COUNTED_MAX = 10_000
_PAGES = {
    None: "arc_lots_after",
    ArcState.RUNNING: "running_arc_lots_after",
    ArcState.COMPLETE: "done_arc_lots_after",
    ArcState.PARTIAL: "partial_arc_lots_after",
    ArcState.MISSING: "missing_arc_lots_after",
}


def count_lots(tx: Transaction, arcs: Sequence[ArcRow]) -> dict[str, ArcCounts]:
    """Count the lots of each arc by state, by the ids of their jobs."""
    if not arcs:
        return {}
    running = Counter(job_id for job_id, _ in tx.fetch("running_lots"))
    rows = tx.fetch(
        "arc_counts",
        ids=[row.job_id for row in arcs],
        most=COUNTED_MAX,
        lots=DONE_COUNTED_MAX,
    )
    gated = _count_gated(tx, [row.job_id for row in arcs])
    counts = {}
    for job_id, ready, waiting, retryable, held, tried, kept, failed, unmade, done, known in rows:
        bounded = {"ready": ready, "waiting": waiting, "retryable": retryable, "held": held}
        cut = [name for name, number in bounded.items() if number >= COUNTED_MAX]
        cut += ["partial"] if max(tried, gated.total()) >= COUNTED_MAX else []
        cut += ["missing"] if max(tried, unmade) >= COUNTED_MAX else []
        cut += ["complete"] if known >= DONE_COUNTED_MAX else []
        counts[job_id] = ArcCounts(
            running=running[job_id],
            complete=max(done + kept - gated[job_id], 0),
            partial=tried - kept - failed + gated[job_id],
            missing=failed + unmade,
            **bounded,
            at_least=cut,
        )
    return counts


def _count_gated(tx: Transaction, job_ids: Sequence[str]) -> Counter[str]:
    jobs = tx.rows(LotJobRow, "lot_jobs_by_ids", ids=list(job_ids))
    outputs = sorted({dataset for job in jobs for dataset in job.output_ids})
    return Counter(dict(tx.fetch("count_gated_lots", outputs=outputs, most=COUNTED_MAX)))


def list_arc_lots(
    tx: Transaction, namespace: str, name: str, state: ArcState | None, after: str, most: int
) -> list[ArcLot]:
    """Return a page of the lots of an arc after a lot, all or in one state."""
    arc = find_arc(tx, namespace, name)
    job = get_lot_job(tx, namespace, name)
    which = {"job_id": arc.job_id, "after": after, "most": most}
    if state in (ArcState.COMPLETE, ArcState.PARTIAL):
        which["outputs"] = list(job.output_ids)
    rows = tx.rows(WorkRow, _PAGES[state], **which)
    states = arc_states(tx, job, rows)
    return [_shown(row, job, states[row.lot]) for row in rows]


def _shown(row: WorkRow, job: LotJobRow, state: ArcState | None) -> ArcLot:
    live = row.state == WorkState.RUNNING
    return ArcLot(
        lot=row.lot,
        state=state,
        work=WorkState(row.state),
        attempts=row.tries,
        attempts_max=job.tries_max,
        error=row.error or None,
        since=format_time(row.since),
        not_before=time_or_none(row.not_before or None),
        run=row.run_id,
        owner=row.owner if live else None,
    )


def find_work(tx: Transaction, namespace: str, name: str, lot: str) -> tuple[ArcRow, WorkRow]:
    """Return an arc and its work on a lot, or raise NotFound."""
    arc = find_arc(tx, namespace, name)
    rows = tx.rows(WorkRow, "lot_work_by_lots", job_id=arc.job_id, lots=[check_lot(lot)])
    if not rows:
        raise NotFound(
            f"arc {namespace}/{name} has no work on lot {lot}; {ask_why(namespace, name, lot)}"
        )
    return arc, rows[0]


def get_arc_lot(tx: Transaction, namespace: str, name: str, lot: str) -> ArcLotDetail:
    """Return everything about a lot of an arc; parts are known until it is published."""
    arc, row = find_work(tx, namespace, name, lot)
    job = get_lot_job(tx, namespace, name)
    attempts = attempts_of(tx, arc.job_id, lot)
    parts = _shown(row, job, arc_states(tx, job, [row])[lot])
    return ArcLotDetail(
        **msgspec.structs.asdict(parts),
        parts=[_part(each) for each in parts_of(tx, arc.job_id, lot).values()],
        failed_attempts=[
            FailedAttempt(
                a.run_id, ManifestState(a.state), msgspec.json.decode(a.keys), format_time(a.at)
            )
            for a in attempts
        ],
        manifests=_manifests(tx, job, lot),
    )


def _part(row: PartRow) -> ArcPart:
    notes = [note for _, note in row.named_notes]
    return ArcPart(
        part=row.part,
        state=PartState(row.state),
        run=row.run_id,
        attempt=row.attempt,
        error=row.error or None,
        uris=sum(note.uris for note in notes),
        bytes=sum(note.bytes for note in notes),
    )


def _manifests(tx: Transaction, job: LotJobRow, lot: str) -> list[ManifestLine]:
    names = tx.fetch("read_dataset_names", ids=list(job.output_ids))
    lines = []
    for dataset_id, namespace, name in names:
        lines += manifest_lines(tx, dataset_id, EntityId(namespace, name), lot)
    return lines


def manifest_lines(
    tx: Transaction, dataset_id: str, name: EntityId, lot: str
) -> list[ManifestLine]:
    """Return the manifests of a lot of a dataset, newest first."""
    current = tx.fetch_one("read_lot", dataset_id=dataset_id, lot=lot)
    version = current[4] if current is not None and current[2] == Status.READY else None
    rows = tx.rows(ManifestRow, "lot_manifests_of_lot", dataset_id=dataset_id, lot=lot)
    return [
        ManifestLine(
            namespace=name.namespace,
            dataset=name.name,
            version=row.version_id,
            state=ManifestState(row.state),
            key=row.key,
            uris=row.uris,
            bytes=row.bytes,
            digest=row.digest,
            attempt=row.attempt,
            at=format_time(row.at),
            is_current=row.version_id == version,
        )
        for row in rows
    ]
