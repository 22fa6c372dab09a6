"""Looking through the lots of an arc for those that a backfill is for."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.arcs.queries import find_arc
from penstock.catalog.shapes import EntityId, Shape
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.locks.gaps.counts import Condition, GapKind, tallies
from penstock.locks.gaps.spans import Span
from penstock.locks.queries.claims import get_lot_job
from penstock.locks.rows import LotJobRow, StatusRow, WorkRow
from penstock.lots.ids import Interval
from penstock.lots.rows import ManifestRow
from penstock.operations.backfills.rules import (
    Action,
    Facts,
    LotList,
    Range,
    Rows,
    Scope,
    Standing,
    Verdict,
    WantedLots,
    cause,
    dataset_names,
    facts_of,
    find_range,
    judge,
)

LINES_MAX = 10_000
_AT_ONCE = 200  # stretches that are counted together
_NOTHING = Verdict(Standing.GOOD, Action.LEAVE)


class Line(Shape, frozen=True):
    """A lot that is not good, or would be made anew: what it is, and what would be done."""

    lot: str
    now: Standing
    action: Action
    cause: str


class Plan(Shape, frozen=True):
    """What a backfill would do, with at most LINES_MAX lines; `is_cut` if there are more lots.

    Without an interval, the lots are a list.
    """

    namespace: str
    arc: str
    interval: Interval | None
    first: str
    last: str
    count: int
    totals: Mapping[Standing, int]
    actions: Mapping[Action, int]
    lines: Sequence[Line]
    is_cut: bool


class Look(NamedTuple):
    """A lot that was looked at, or a stretch in which nothing is amiss: then without facts.

    Places are times, or positions in a list of lots.
    """

    start: Micros
    end: Micros
    lots: int  # how many
    facts: Facts | None
    verdict: Verdict


def plan(
    tx: Transaction,
    namespace: str,
    arc: str,
    wanted: WantedLots,
    now: Micros,
    *,
    scope: Scope = Scope.FAILED_AND_MISSING,
    newest_first: bool = False,
) -> Plan:
    """What a backfill of an arc would do, lot by lot, as things stand."""
    job = get_lot_job(tx, namespace, find_arc(tx, namespace, arc).name)
    span = find_range(tx, job, EntityId(namespace, arc), wanted, scope, now)
    names = dataset_names(tx, job)
    reads = [_shown(names[dataset]) for dataset in job.input_ids]
    writes = [_shown(names[dataset]) for dataset in job.output_ids]
    totals: Counter[Standing] = Counter()
    actions: Counter[Action] = Counter()
    lines: list[Line] = []
    count = 0
    for look in survey(tx, job, span, scope, newest_first=newest_first):
        standing, action = look.verdict
        totals[standing] += look.lots
        actions[action] += look.lots
        if look.facts is None or _is_dull(look.verdict):
            continue
        count += 1
        if count <= LINES_MAX:
            said = cause(look.facts, look.verdict, reads, writes)
            lines.append(Line(look.facts.lot, standing, action, said))
    return Plan(
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


def _is_dull(verdict: Verdict) -> bool:
    """Whether a lot is there and stays as it is."""
    return verdict.action is Action.LEAVE and verdict.standing in (Standing.GOOD, Standing.STALE)


def _shown(name: EntityId) -> str:
    return f"{name.namespace}/{name.name}"


def survey(
    tx: Transaction, job: LotJobRow, span: Range, scope: Scope, *, newest_first: bool
) -> Iterator[Look]:
    """Look at every lot of a range, in order; where only gaps matter, what is whole at a glance."""
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
                yield Look(stretch.start, stretch.end, stretch.count, None, _NOTHING)
            else:
                yield from _each(tx, job, stretch, scope, newest_first=newest_first)


def _listed(
    tx: Transaction, job: LotJobRow, listed: LotList, scope: Scope, *, newest_first: bool
) -> Iterator[Look]:
    places = range(listed.start, listed.end)[:: -1 if newest_first else 1]
    for begin in range(0, len(places), _AT_ONCE):
        part = places[begin : begin + _AT_ONCE]
        yield from _judged(tx, job, [(listed.lots[at], at) for at in part], 1, scope)


def _whole(tx: Transaction, job: LotJobRow, stretches: Sequence[Span]) -> set[Span]:
    """Stretches of which every output has every lot."""
    found = set(stretches) if job.output_ids else set()
    for dataset in job.output_ids:
        counts = tallies(tx, dataset, (), stretches)
        pairs = zip(stretches, counts, strict=True)
        found &= {stretch for stretch, tally in pairs if all(map(_is_whole, tally))}
    return found


def _is_whole(condition: Condition | None) -> bool:
    return condition is None or condition.kind is GapKind.EMPTY


def _each(
    tx: Transaction, job: LotJobRow, span: Span, scope: Scope, *, newest_first: bool
) -> Iterator[Look]:
    length = span.interval.length
    starts = range(span.start, span.end, length)
    lots = sorted(zip(span.lots(), starts, strict=True), reverse=newest_first)
    yield from _judged(tx, job, lots, length, scope)


def _judged(
    tx: Transaction, job: LotJobRow, lots: Sequence[tuple[str, int]], length: int, scope: Scope
) -> Iterator[Look]:
    """Judge lots, each with its place."""
    rows = _load(tx, job, [lot for lot, _ in lots])
    for lot, start in lots:
        facts = facts_of(job, lot, rows)
        yield Look(start, start + length, 1, facts, judge(facts, scope))


def _load(tx: Transaction, job: LotJobRow, lots: Sequence[str]) -> Rows:
    """The rows of lots that matter to an arc, in two trips."""
    datasets = list(dict.fromkeys((*job.input_ids, *job.output_ids)))
    of_job = {"job_id": job.job_id, "lots": lots}
    asks: list[Ask] = [("lot_work_by_lots", of_job)]
    asks += [("lot_outputs", {"dataset_id": dataset, "lots": lots}) for dataset in datasets]
    asks += [("lot_inputs", {"dataset_id": dataset, **of_job}) for dataset in job.own_ids]
    works, *others = tx.fetch_many(asks)
    work = {(row[0], row[1]): WorkRow(*row) for row in works}
    made = [StatusRow(*row) for rows in others[: len(datasets)] for row in rows]
    read = [StatusRow(*row) for rows in others[len(datasets) :] for row in rows]
    versions = [r.version_id for r in made if r.dataset_id in job.output_ids and r.version_id]
    noted = tx.rows(ManifestRow, "lot_manifests_by_versions", ids=versions)
    return Rows(
        work=work.get,
        outputs={(row.dataset_id, row.lot): row for row in made}.get,
        inputs={(row.dataset_id, row.job_id, row.lot): row for row in read}.get,
        manifests={row.version_id: row for row in noted}.get,
    )
