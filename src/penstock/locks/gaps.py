"""Gaps: which lots of a dataset are not simply there, in ranges, each with its cause.

All lots are counted in the database. Only stretches in which lots are of several kinds are read
lot by lot, and no more of them than there are ranges to tell.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from penstock.catalog.shapes import EntityId, Shape
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.gap_causes import Cause, Causes
from penstock.locks.gap_counts import GapKind, Tally, kinds_of_lots, tallies
from penstock.locks.reading import find_dataset
from penstock.locks.spans import Bound, Span, find_span
from penstock.lots.ids import Interval

RANGES_MAX = 1000
_AT_ONCE = 64  # stretches that are read lot by lot together


class Gap(Shape, frozen=True):
    """Lots in a row that are of one kind; the cause is that of the first."""

    first: str
    last: str
    count: int
    kind: GapKind
    cause: Cause | None


class Gaps(Shape, frozen=True):
    """What is there of a dataset between two lots, and what is not.

    `totals` are of all lots. Of ranges there are RANGES_MAX at most: `is_cut` says that there are
    more of them, after the last one here.
    """

    namespace: str
    dataset: str
    interval: Interval
    first: str
    last: str
    count: int
    there: int
    totals: Mapping[GapKind, int]
    ranges: Sequence[Gap]
    is_cut: bool

    @property
    def is_whole(self) -> bool:
        """Whether nothing is amiss: what is empty is rightly so."""
        return self.there + self.totals.get(GapKind.EMPTY, 0) == self.count


class _Run(Struct, frozen=True):
    """Lots in a row that are of one kind."""

    kind: GapKind | None
    count: int


def gaps(
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
    """Name the gaps of a dataset between two times or lots, oldest first.

    Times are half-open, a lot is meant with its whole interval; None is as far as there is
    anything. With `only`, causes are followed as far as they are in that namespace.
    """
    dataset_id = find_dataset(tx, namespace, dataset)
    name = EntityId(namespace, dataset)
    span = find_span(tx, dataset_id, name, first, last, now, interval)
    writers = tx.fetch("read_writers_of_datasets", ids=[dataset_id])
    jobs = [job_id for _, job_id, *_ in writers]
    stretches = span.stretches()
    counts = tallies(tx, dataset_id, jobs, stretches)
    totals = Tally()
    for tally in counts:
        totals.update(tally)
    found, is_cut = _ranges(tx, dataset_id, jobs, stretches, counts)
    ranges = [Gap(each.first, each.last, each.count, kind, None) for each, kind in found]
    if with_causes:
        makers = [EntityId(space, job) for _, _, space, job, hidden in writers if not hidden]
        causes = Causes(tx, dataset_id, name, makers, now, only)
        found_causes = causes.of_all({gap.first: gap.kind for gap in ranges})
        ranges = [
            Gap(gap.first, gap.last, gap.count, gap.kind, found_causes[gap.first]) for gap in ranges
        ]
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
        is_cut=is_cut,
    )


def _ranges(
    tx: Transaction,
    dataset_id: str,
    jobs: Sequence[str],
    stretches: Sequence[Span],
    counts: Sequence[Tally],
) -> tuple[list[tuple[Span, GapKind]], bool]:
    """The ranges that are not simply there, and whether there are more of them."""
    found: list[tuple[Span, GapKind]] = []
    at, length = stretches[0].start, stretches[0].interval.length
    runs = _joined(_runs(tx, dataset_id, jobs, stretches, counts))
    for run in runs:
        end = at + run.count * length
        if run.kind is not None:
            if len(found) == RANGES_MAX:
                return found, True
            found.append((Span(stretches[0].interval, at, end), run.kind))
        at = end
    return found, False


def _runs(
    tx: Transaction,
    dataset_id: str,
    jobs: Sequence[str],
    stretches: Sequence[Span],
    counts: Sequence[Tally],
) -> Iterator[_Run]:
    """Run lengths of all lots in their order; lot by lot where a stretch is of several kinds."""
    pairs = list(zip(stretches, counts, strict=True))
    mixed = [(stretch, tally) for stretch, tally in pairs if len(tally) > 1]
    kinds: dict[str, GapKind | None] = {}
    seen = 0
    for stretch, tally in pairs:
        if len(tally) == 1:
            yield _Run(next(iter(tally)), stretch.count)
            continue
        if seen % _AT_ONCE == 0:
            kinds = kinds_of_lots(tx, dataset_id, jobs, dict(mixed[seen : seen + _AT_ONCE]))
        seen += 1
        of_lots = (kinds.get(lot, GapKind.MISSING) for lot in stretch.lots())
        for kind, group in groupby(of_lots):
            yield _Run(kind, sum(1 for _ in group))


def _joined(runs: Iterator[_Run]) -> Iterator[_Run]:
    """Runs of one kind that follow each other, as one."""
    for kind, group in groupby(runs, key=lambda run: run.kind):
        yield _Run(kind, sum(run.count for run in group))
