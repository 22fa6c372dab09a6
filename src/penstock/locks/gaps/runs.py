"""Ranges of consecutive lots with one condition, from counts, and lot by lot where they mix."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from penstock.db import Transaction
from penstock.locks.gaps.counts import MISSING, Condition, Tally, read_conditions
from penstock.locks.gaps.spans import Span

_AT_ONCE = 64  # stretches that are read lot by lot together


class LotRange(Struct, frozen=True):
    """Consecutive lots with one condition; None means plainly READY."""

    span: Span
    condition: Condition | None


def find_ranges(
    tx: Transaction,
    dataset_id: str,
    writers: Sequence[str],
    stretches: Sequence[Span],
    counts: Sequence[Tally],
) -> Iterator[LotRange]:
    """Yield the ranges of all stretches in order; read mixed stretches lot by lot."""
    pairs = list(zip(stretches, counts, strict=True))
    mixed = [(stretch, tally) for stretch, tally in pairs if len(tally) > 1]
    known: dict[str, Condition | None] = {}
    seen = 0
    for stretch, tally in pairs:
        if len(tally) == 1:
            yield LotRange(stretch, next(iter(tally)))
            continue
        if seen % _AT_ONCE == 0:
            some = dict(mixed[seen : seen + _AT_ONCE])
            known = read_conditions(tx, dataset_id, writers, some)
        seen += 1
        at, length = stretch.start, stretch.interval.length
        for condition, group in groupby(known.get(lot, MISSING) for lot in stretch.lots()):
            end = at + sum(1 for _ in group) * length
            yield LotRange(Span(stretch.interval, at, end), condition)
            at = end


def join_ranges(
    runs: Iterable[LotRange], alike: Callable[[Condition | None], object]
) -> Iterator[LotRange]:
    """Join adjacent ranges that are alike; the result has the condition of the first."""
    last: LotRange | None = None
    for run in runs:
        follows = last is not None and last.span.end == run.span.start
        if last is not None and follows and alike(last.condition) == alike(run.condition):
            last = LotRange(Span(run.span.interval, last.span.start, run.span.end), last.condition)
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last
