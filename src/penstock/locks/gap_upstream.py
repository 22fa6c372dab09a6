"""Where the causes of gaps change: lots in a row have one cause while all stands alike upstream.

It is walked level by level from the lots that are not there to those that they wait for, and only
where these are not there either. What stands alike is found by counts, as gaps themselves are.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.locks.chains import DEPTH_MAX
from penstock.locks.gap_counts import Condition, GapKind, tallies
from penstock.locks.gap_runs import Run, find_runs, joined
from penstock.locks.rows import OUTSIDE, LotJobRow
from penstock.locks.spans import Span, common, merged, touching, without
from penstock.lots.ids import CLOCK

LOOKS_MAX = 2_000_000  # lots that are counted upstream for one answer, over all datasets
_ENDS_HERE = (GapKind.RUNNING, GapKind.EMPTY, GapKind.REMOVED)  # nothing upstream is the cause

_Spans = Mapping[str, Sequence[Span]]  # by dataset


class Upstream:
    """Looks where lots upstream of one dataset stand alike, as far as `most` ranges."""

    def __init__(
        self,
        tx: Transaction,
        stretches: Sequence[Span],
        now: Micros,
        only: str | None,
        most: int,
    ) -> None:
        self._tx = tx
        self._stretches = stretches
        self._now = now
        self._only = only
        self._most = most
        self._looks = 0
        self._cuts: list[Micros] = []
        self._seen: dict[str, list[Span]] = defaultdict(list)
        self._unseen: list[Span] = []

    def split(self, dataset_id: str, gaps: Sequence[Run]) -> list[Run]:
        """The gaps of a dataset, cut where what they wait for stands otherwise."""
        starts = [gap.span.start for gap in gaps]
        awaited: _Spans = {dataset_id: [gap.span for gap in gaps if _leads_on(gap.condition)]}
        for _ in range(DEPTH_MAX):
            horizon = self._horizon(starts)
            awaited = {dataset: self._apart(found, horizon) for dataset, found in awaited.items()}
            awaited = {dataset: spans for dataset, spans in awaited.items() if spans}
            if not awaited:
                break
            awaited = self._look(awaited, horizon)
        self._unseen = merged([*self._unseen, *(s for spans in awaited.values() for s in spans)])
        return [Run(span, gap.condition) for gap in gaps for span in self._pieces(gap.span)]

    def is_alike(self, span: Span) -> bool:
        """Whether all that the lots of a span wait for was looked at, or there is but one lot."""
        return span.count == 1 or not any(common([span], self._unseen))

    def _horizon(self, starts: Sequence[Micros]) -> Micros:
        """Where there are enough ranges; what is after it is not told."""
        bounds = sorted({*starts, *self._cuts})
        return bounds[self._most] if len(bounds) > self._most else self._stretches[-1].end

    def _pieces(self, span: Span) -> Iterator[Span]:
        """A span, cut as far as is known."""
        first = bisect_right(self._cuts, span.start)
        inner = self._cuts[first : bisect_left(self._cuts, span.end)]
        for start, end in zip([span.start, *inner], [*inner, span.end], strict=True):
            yield Span(span.interval, start, end)

    def _apart(self, spans: Iterable[Span], horizon: Micros) -> list[Span]:
        """What of spans has to be looked at yet: a single lot is alike by itself."""
        pieces = (piece for span in spans for piece in self._pieces(span))
        return [piece for piece in pieces if piece.count > 1 and piece.start < horizon]

    def _look(self, awaited: _Spans, horizon: Micros) -> _Spans:
        """Look at what the jobs read and write that make these lots; give what they wait for."""
        reads, writes = self._around(awaited)
        self._cut_clocks(reads)
        writers: dict[str, list[str]] = defaultdict(list)
        for dataset, job_id, *_ in self._tx.fetch(
            "read_writers_of_datasets", ids=[*{*reads, *writes}]
        ):
            writers[dataset].append(job_id)
        following: dict[str, list[Span]] = {}
        for dataset, spans in reads.items():
            runs = self._runs(dataset, writers[dataset], spans, horizon)
            following[dataset] = [run.span for run in runs if _leads_on(run.condition)]
        for dataset, spans in writes.items():
            self._runs(dataset, writers[dataset], spans, horizon)
        return following

    def _around(self, awaited: _Spans) -> tuple[_Spans, _Spans]:
        """Which datasets the jobs read that make these lots, and which others they write."""
        found = self._tx.fetch("read_writers_of_datasets", ids=list(awaited))
        makers = [
            (dataset, job_id)
            for dataset, job_id, namespace, _, hidden in found
            if not hidden and self._only in (None, namespace)
        ]
        rows = self._tx.fetch("read_lot_jobs", ids=list({job_id for _, job_id in makers}))
        jobs = {row[2]: LotJobRow(*row[2:]) for row in rows}
        reads, writes = defaultdict[str, list[Span]](list), defaultdict[str, list[Span]](list)
        for dataset, job_id in makers:
            for read in jobs[job_id].input_ids:
                reads[read] += awaited[dataset]
            for written in {*jobs[job_id].output_ids} - {dataset}:
                writes[written] += awaited[dataset]
        return reads, writes

    def _cut_clocks(self, reads: _Spans) -> None:
        """A clock lacks lots that are to come, and others that it will never have."""
        names = self._tx.fetch("read_dataset_names", ids=list(reads))
        if any(name.startswith(CLOCK) for _, _, name in names):
            self._cut(self._now - self._now % self._stretches[0].interval.length)

    def _cut(self, at: Micros) -> None:
        where = bisect_left(self._cuts, at)
        if self._cuts[where : where + 1] != [at]:
            insort(self._cuts, at)

    def _runs(
        self, dataset: str, writers: Sequence[str], spans: Sequence[Span], horizon: Micros
    ) -> list[Run]:
        """How a dataset stands in spans that were not looked at yet; cuts are where it changes."""
        new = without(merged(spans), self._seen[dataset])
        self._seen[dataset] = merged([*self._seen[dataset], *new])
        stretches = self._affordable(touching(self._stretches, new), new)
        counts = tallies(self._tx, dataset, writers, stretches)
        met: list[Run] = []
        for run in joined(find_runs(self._tx, dataset, writers, stretches, counts), _as_read):
            if run.span.start >= horizon or len(met) > self._most:
                break
            met.append(run)
        begin = {span.start for span in new}
        found = []
        for at, piece in common(new, [run.span for run in met]):
            if piece.start not in begin:
                self._cut(piece.start)
            found.append(Run(piece, met[at].condition))
        return found

    def _affordable(self, stretches: Sequence[Span], spans: Sequence[Span]) -> list[Span]:
        """As many stretches as may be counted yet; what of spans is in others remains unseen."""
        found = []
        for stretch in stretches:
            self._looks += stretch.count
            if self._looks <= LOOKS_MAX:
                found.append(stretch)
        left = stretches[len(found) :]
        self._unseen += [piece for _, piece in common(spans, left)]
        return found


def _leads_on(condition: Condition | None) -> bool:
    """Whether the cause of it can be further up."""
    if condition is None or condition.is_readable or condition.is_held_by_hand:
        return False
    return condition.kind not in _ENDS_HERE and condition.maker != OUTSIDE


def _as_read(condition: Condition | None) -> Condition | None:
    """How a lot stands for who waits for it."""
    return None if condition is None or condition.is_readable else condition
