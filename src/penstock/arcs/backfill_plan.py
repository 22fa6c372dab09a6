"""Looking through the lots of an arc for those that a backfill is for."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from penstock.arcs.backfill_rules import (
    Action,
    Facts,
    Rows,
    Scope,
    Standing,
    Verdict,
    cause,
    facts_of,
    judge,
)
from penstock.arcs.reading import find_arc
from penstock.catalog.shapes import EntityId, Shape
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.errors import Invalid
from penstock.locks.gap_counts import Condition, GapKind, tallies
from penstock.locks.reading import get_lot_job
from penstock.locks.rows import LotJobRow, StatusRow, WorkRow
from penstock.locks.spans import Bound, Span, find_interval, find_span
from penstock.lots.ids import Interval
from penstock.lots.rows import ManifestRow

T = TypeVar("T")

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
    """What a backfill would do; of its lines there are LINES_MAX at most, `is_cut` says if more."""

    namespace: str
    arc: str
    interval: Interval
    first: str
    last: str
    count: int
    totals: Mapping[Standing, int]
    actions: Mapping[Action, int]
    lines: Sequence[Line]
    is_cut: bool


class Look(NamedTuple):
    """A lot that was looked at, or a stretch in which nothing is amiss: then without facts."""

    start: Micros
    end: Micros
    facts: Facts | None
    verdict: Verdict


def plan(
    tx: Transaction,
    namespace: str,
    arc: str,
    first: Bound,
    last: Bound,
    now: Micros,
    *,
    scope: Scope = Scope.FAILED_AND_MISSING,
    newest_first: bool = False,
    interval: Interval | None = None,
) -> Plan:
    """What a backfill of an arc over a range would do, lot by lot, as things stand."""
    job = get_lot_job(tx, namespace, find_arc(tx, namespace, arc).name)
    span = span_of(tx, job, first, last, now, interval)
    names = _names(tx, job)
    reads = [_shown(names[dataset]) for dataset in job.input_ids]
    writes = [_shown(names[dataset]) for dataset in job.output_ids]
    totals: Counter[Standing] = Counter()
    actions: Counter[Action] = Counter()
    lines: list[Line] = []
    wanted = 0
    for look in survey(tx, job, span, scope, newest_first=newest_first):
        count = (look.end - look.start) // span.interval.length
        standing, action = look.verdict
        totals[standing] += count
        actions[action] += count
        if look.facts is None or _is_dull(look.verdict):
            continue
        wanted += 1
        if wanted <= LINES_MAX:
            said = cause(look.facts, look.verdict, reads, writes)
            lines.append(Line(look.facts.lot, standing, action, said))
    return Plan(
        namespace=namespace,
        arc=arc,
        interval=span.interval,
        first=span.first,
        last=span.last,
        count=span.count,
        totals=dict(totals),
        actions=dict(actions),
        lines=lines,
        is_cut=wanted > LINES_MAX,
    )


def _is_dull(verdict: Verdict) -> bool:
    """Whether a lot is there and stays as it is."""
    return verdict.action is Action.LEAVE and verdict.standing in (Standing.GOOD, Standing.STALE)


def span_of(
    tx: Transaction,
    job: LotJobRow,
    first: Bound,
    last: Bound,
    now: Micros,
    interval: Interval | None,
) -> Span:
    """The lots of an arc between two bounds; what its outputs do not tell, its inputs may."""
    names = _names(tx, job)
    datasets = (*job.output_ids, *job.input_ids)
    cut = interval or _first_told(lambda d: find_interval(tx, d, names[d]), datasets)
    if first is not None:
        return find_span(tx, datasets[0], names[datasets[0]], first, last, now, cut)
    return _first_told(lambda d: find_span(tx, d, names[d], None, last, now, cut), datasets)


def _first_told(ask: Callable[[str], T], datasets: Sequence[str]) -> T:
    """What the first dataset tells that can; if none can, what is wrong with the first."""
    refusals = []
    for dataset in datasets:
        try:
            return ask(dataset)
        except Invalid as refusal:
            refusals.append(refusal)
    raise refusals[0]


def _names(tx: Transaction, job: LotJobRow) -> dict[str, EntityId]:
    rows = tx.fetch("read_dataset_names", ids=[*job.output_ids, *job.input_ids])
    return {dataset: EntityId(space, name) for dataset, space, name in rows}


def _shown(name: EntityId) -> str:
    return f"{name.namespace}/{name.name}"


def survey(
    tx: Transaction, job: LotJobRow, span: Span, scope: Scope, *, newest_first: bool
) -> Iterator[Look]:
    """Look at every lot of a span, in order; where only gaps matter, what is whole at a glance."""
    stretches = span.stretches()
    if newest_first:
        stretches.reverse()
    for begin in range(0, len(stretches), _AT_ONCE):
        part = stretches[begin : begin + _AT_ONCE]
        whole = _whole(tx, job, part) if scope is Scope.FAILED_AND_MISSING else ()
        for stretch in part:
            if stretch in whole:
                yield Look(stretch.start, stretch.end, None, _NOTHING)
            else:
                yield from _each(tx, job, stretch, scope, newest_first=newest_first)


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
    lots = list(span.lots())
    rows = _load(tx, job, lots)
    length = span.interval.length
    starts = list(range(span.start, span.end, length))
    for lot, start in sorted(zip(lots, starts, strict=True), reverse=newest_first):
        facts = facts_of(job, lot, rows)
        yield Look(start, start + length, facts, judge(facts, scope))


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
