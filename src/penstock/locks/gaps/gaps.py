"""Gaps: the ranges of lots of a dataset that are not plainly READY, each with its cause.

All lots are counted in the database. Only stretches with several conditions are read lot by lot,
and no more of them than the answer has ranges.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.gaps.causes import Causes, Upstream
from penstock.locks.gaps.counts import Condition, Tally, count_conditions
from penstock.locks.gaps.runs import LotRange, find_ranges, join_ranges
from penstock.locks.gaps.spans import Bound, Span, find_span
from penstock.locks.queries.claims import find_dataset
from penstock.schema.catalog import EntityId
from penstock.schema.gaps import Cause, Gap, GapKind, Gaps
from penstock.schema.lot_ids import Interval

RANGES_MAX = 1000


def load_gaps(
    tx: Transaction,
    namespace: str,
    dataset: str,
    first: Bound,
    last: Bound,
    now: Micros,
    *,
    with_causes: bool = True,
    interval: Interval | None = None,
    only: str | None = None,
) -> Gaps:
    """Find the gaps of a dataset between two times or lots, oldest first.

    Times are half-open; a lot includes its whole interval; None means the first or last lot. With
    `only`, causes are followed inside that namespace.
    """
    dataset_id = find_dataset(tx, namespace, dataset)
    name = EntityId(namespace, dataset)
    span = find_span(tx, dataset_id, name, first, last, now, interval)
    writers = tx.fetch("read_writers_of_datasets", ids=[dataset_id])
    jobs = [job_id for _, job_id, *_ in writers]
    stretches = span.stretches()
    counts = count_conditions(tx, dataset_id, jobs, stretches)
    totals: Counter[GapKind | None] = Counter()
    for tally in counts:
        for condition, count in tally.items():
            totals[_kind(condition)] += count
    if with_causes:
        runs = _ranges(tx, dataset_id, jobs, stretches, counts, _itself)
        upstream = Upstream(tx, stretches, now, only, RANGES_MAX)
        runs = upstream.split(dataset_id, runs)
        makers = [EntityId(space, job) for _, _, space, job, hidden in writers if not hidden]
        causes = Causes(tx, dataset_id, name, makers, now, only)
        ranges = _with_causes(runs[:RANGES_MAX], causes, upstream)
    else:
        runs = _ranges(tx, dataset_id, jobs, stretches, counts, _kind)
        ranges = [_gap(run) for run in runs[:RANGES_MAX]]
    return Gaps(
        namespace=namespace,
        dataset=dataset,
        interval=span.interval,
        first=span.first,
        last=span.last,
        count=span.count,
        there=totals[None],
        totals={kind: totals[kind] for kind in GapKind if totals[kind]},
        ranges=ranges,
        is_cut=len(runs) > RANGES_MAX,
    )


def _gap(run: LotRange, cause: Cause | None = None, *, is_alike: bool = True) -> Gap:
    span, condition = run.span, run.condition
    assert condition is not None
    return Gap(span.first, span.last, span.count, condition.kind, cause, is_alike)


def _with_causes(runs: Sequence[LotRange], causes: Causes, upstream: Upstream) -> list[Gap]:
    found = causes.of_all({gap.first: gap.kind for gap in map(_gap, runs)})
    return [_gap(run, found[run.span.first], is_alike=upstream.is_alike(run.span)) for run in runs]


def _ranges(
    tx: Transaction,
    dataset_id: str,
    jobs: Sequence[str],
    stretches: Sequence[Span],
    counts: Sequence[Tally],
    alike: Callable[[Condition | None], object],
) -> list[LotRange]:
    """Return the ranges that are not plainly READY: at most one more than the answer lists."""
    runs = join_ranges(find_ranges(tx, dataset_id, jobs, stretches, counts), alike)
    return list(islice((run for run in runs if run.condition is not None), RANGES_MAX + 1))


def _kind(condition: Condition | None) -> GapKind | None:
    return condition.kind if condition is not None else None


def _itself(condition: Condition | None) -> Condition | None:
    return condition
