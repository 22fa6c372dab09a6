"""Surveying the lots of an arc for a backfill."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.arcs.queries import find_arc
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.locks.gaps.counts import Condition, count_conditions
from penstock.locks.gaps.spans import Span
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.rows import LotJobRow, StatusRow, WorkRow
from penstock.lots.rows import ManifestRow
from penstock.operations.backfills.lots import LotList, Range, WantedLots, dataset_names, find_range
from penstock.operations.backfills.rules import (
    LotFacts,
    LotRows,
    LotVerdict,
    cause,
    gather_facts,
    judge,
)
from penstock.schema.catalog import EntityId
from penstock.schema.gaps import GapKind
from penstock.schema.operations import BackfillAction, BackfillPlan, PlanLine, Scope, Standing

LINES_MAX = 10_000
_AT_ONCE = 200  # stretches counted in one statement
_GOOD = LotVerdict(Standing.GOOD, BackfillAction.LEAVE)


class SurveyedLot(NamedTuple):
    """A surveyed lot, or a stretch of good lots without facts.

    Positions are times, or indexes in a list of lots.
    """

    start: Micros
    end: Micros
    lots: int  # how many
    facts: LotFacts | None
    verdict: LotVerdict


def plan(
    tx: Transaction,
    namespace: str,
    arc: str,
    wanted: WantedLots,
    now: Micros,
    *,
    scope: Scope = Scope.FAILED_AND_MISSING,
    newest_first: bool = False,
) -> BackfillPlan:
    """Return what a backfill of an arc would do now, lot by lot."""
    job = get_lot_job(tx, namespace, find_arc(tx, namespace, arc).name)
    span = find_range(tx, job, EntityId(namespace, arc), wanted, scope, now)
    names = dataset_names(tx, job)
    reads = [_shown(names[dataset]) for dataset in job.input_ids]
    writes = [_shown(names[dataset]) for dataset in job.output_ids]
    totals: Counter[Standing] = Counter()
    actions: Counter[BackfillAction] = Counter()
    lines: list[PlanLine] = []
    count = 0
    for look in survey(tx, job, span, scope, newest_first=newest_first):
        condition, action = look.verdict
        totals[condition] += look.lots
        actions[action] += look.lots
        if look.facts is None or _is_unremarkable(look.verdict):
            continue
        count += 1
        if count <= LINES_MAX:
            text = cause(look.facts, look.verdict, reads, writes)
            lines.append(PlanLine(look.facts.lot, condition, action, text))
    return BackfillPlan(
        namespace=namespace,
        arc=arc,
        interval=span.interval if isinstance(span, Span) else None,
        first=span.first,
        last=span.last,
        count=span.count,
        totals=dict(totals),
        actions=dict(actions),
        lines=lines,
        is_cut=count > LINES_MAX or (isinstance(span, LotList) and span.is_cut),
    )


def _is_unremarkable(verdict: LotVerdict) -> bool:
    return verdict.action is BackfillAction.LEAVE and verdict.condition in (
        Standing.GOOD,
        Standing.STALE,
    )


def _shown(name: EntityId) -> str:
    return f"{name.namespace}/{name.name}"


def survey(
    tx: Transaction, job: LotJobRow, span: Range, scope: Scope, *, newest_first: bool
) -> Iterator[SurveyedLot]:
    """Survey every lot of a range in order; if only gaps matter, whole stretches at once."""
    if isinstance(span, LotList):
        yield from _listed(tx, job, span, scope, newest_first=newest_first)
        return
    stretches = span.stretches()
    if newest_first:
        stretches.reverse()
    for begin in range(0, len(stretches), _AT_ONCE):
        part = stretches[begin : begin + _AT_ONCE]
        whole = _whole(tx, job, part) if scope is Scope.FAILED_AND_MISSING else ()
        for stretch in part:
            if stretch in whole:
                yield SurveyedLot(stretch.start, stretch.end, stretch.count, None, _GOOD)
            else:
                yield from _each(tx, job, stretch, scope, newest_first=newest_first)


def _listed(
    tx: Transaction, job: LotJobRow, listed: LotList, scope: Scope, *, newest_first: bool
) -> Iterator[SurveyedLot]:
    positions = range(listed.start, listed.end)[:: -1 if newest_first else 1]
    for begin in range(0, len(positions), _AT_ONCE):
        part = positions[begin : begin + _AT_ONCE]
        yield from _judged(tx, job, [(listed.lots[index], index) for index in part], 1, scope)


def _whole(tx: Transaction, job: LotJobRow, stretches: Sequence[Span]) -> set[Span]:
    whole = set(stretches) if job.output_ids else set()
    for dataset in job.output_ids:
        counts = count_conditions(tx, dataset, (), stretches)
        pairs = zip(stretches, counts, strict=True)
        whole &= {stretch for stretch, tally in pairs if all(map(_is_whole, tally))}
    return whole


def _is_whole(condition: Condition | None) -> bool:
    return condition is None or condition.kind is GapKind.EMPTY


def _each(
    tx: Transaction, job: LotJobRow, span: Span, scope: Scope, *, newest_first: bool
) -> Iterator[SurveyedLot]:
    length = span.interval.length
    starts = range(span.start, span.end, length)
    lots = sorted(zip(span.lots(), starts, strict=True), reverse=newest_first)
    yield from _judged(tx, job, lots, length, scope)


def _judged(
    tx: Transaction, job: LotJobRow, lots: Sequence[tuple[str, int]], length: int, scope: Scope
) -> Iterator[SurveyedLot]:
    rows = _load(tx, job, [lot for lot, _ in lots])
    for lot, start in lots:
        facts = gather_facts(job, lot, rows)
        yield SurveyedLot(start, start + length, 1, facts, judge(facts, scope))


def _load(tx: Transaction, job: LotJobRow, lots: Sequence[str]) -> LotRows:
    datasets = list(dict.fromkeys((*job.input_ids, *job.output_ids)))
    of_job = {"job_id": job.job_id, "lots": lots}
    asks: list[Ask] = [("lot_work_by_lots", of_job)]
    asks += [("lot_outputs", {"dataset_id": dataset, "lots": lots}) for dataset in datasets]
    asks += [("lot_inputs", {"dataset_id": dataset, **of_job}) for dataset in job.input_row_ids]
    works, *others = tx.fetch_many(asks)
    work = {(row[0], row[1]): WorkRow(*row) for row in works}
    output_rows = [StatusRow(*row) for rows in others[: len(datasets)] for row in rows]
    input_rows = [StatusRow(*row) for rows in others[len(datasets) :] for row in rows]
    versions = [
        r.version_id for r in output_rows if r.dataset_id in job.output_ids and r.version_id
    ]
    manifests = tx.rows(ManifestRow, "lot_manifests_by_versions", ids=versions)
    return LotRows(
        work=work.get,
        outputs={(row.dataset_id, row.lot): row for row in output_rows}.get,
        inputs={(row.dataset_id, row.job_id, row.lot): row for row in input_rows}.get,
        manifests={row.version_id: row for row in manifests}.get,
    )
