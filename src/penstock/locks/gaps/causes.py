"""The causes of gaps: the reasons of the job that makes a lot, and the root lots upstream."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.clock import Micros, say_time
from penstock.db import Transaction
from penstock.db.database import Row
from penstock.errors import NotFound
from penstock.locks.explain.causes import DEPTH_MAX
from penstock.locks.explain.text import describe_arrivals
from penstock.locks.explain.why import explain_work
from penstock.locks.gaps.counts import Condition, count_conditions
from penstock.locks.gaps.runs import LotRange, find_ranges, join_ranges
from penstock.locks.gaps.spans import Span, intersect, merge_spans, select_touching, subtract
from penstock.locks.hold_reasons import QUALITY
from penstock.locks.queries.claims import get_wiring
from penstock.locks.queries.visibility import may_see
from penstock.locks.rows import EXTERNAL_JOB, LotJobRow, ReasonsRow
from penstock.lots.rows import LandingRow
from penstock.schema.catalog import EntityId
from penstock.schema.gaps import Cause, GapKind, GapRoot
from penstock.schema.locks import Reason, Why
from penstock.schema.lot_ids import CLOCK, clock_interval
from penstock.schema.lots import Status

_EXPLAINED_BY_LOT = (GapKind.EMPTY, GapKind.REMOVED)  # the job is done: it has no reasons
_INDIRECT = ("unknown_lot", "output_locked")  # reasons that follow from others


class Causes:
    """Finds the causes of the gaps of one dataset."""

    def __init__(
        self,
        tx: Transaction,
        dataset_id: str,
        dataset: EntityId,
        makers: Sequence[EntityId],
        now: Micros,
        only: str | None,
    ) -> None:
        self._tx = tx
        self._dataset_id = dataset_id
        self._dataset = dataset
        self._makers = makers
        self._now = now
        self._only = only
        self._landings: list[LandingRow] | None = None
        self._outputs: dict[EntityId, Sequence[EntityId]] = {}

    def of_all(self, kinds: Mapping[str, GapKind]) -> dict[str, Cause]:
        """Return the cause of each of these lots."""
        page = self._tx.fetch("read_lots_named", dataset_id=self._dataset_id, lots=list(kinds))
        rows = {row[0]: row for row in page}
        return {lot: self._of(lot, kind, rows.get(lot)) for lot, kind in kinds.items()}

    def _of(self, lot: str, kind: GapKind, row: Row | None) -> Cause:
        made_by = EntityId(row[6], row[7]) if row is not None and row[7] is not None else None
        outside = row is not None and made_by is None
        asked = made_by or (self._makers[0] if self._makers and not outside else None)
        is_explained = kind in _EXPLAINED_BY_LOT
        found = self._why(asked, lot) if asked is not None and not is_explained else None
        hold = self._describe_hold(lot, row) if row is not None else None
        if hold is not None or found is None:
            sentence = hold or _describe_lot(kind, lot, row) or self._describe_missing(lot)
            job = asked if is_explained and may_see(self._only, asked) else None
            root = GapRoot(self._dataset.namespace, self._dataset.name, lot, job, sentence)
            return Cause(sentence, found, [root])
        is_ready = row is not None and row[2] == Status.READY
        lead = f"{_describe_lot(kind, lot, row)} " if is_ready else ""
        roots = list(dict.fromkeys(self._roots(found, self._dataset)))
        if not roots:  # a cycle of jobs, or a chain that is too long
            name = self._dataset
            roots = [GapRoot(name.namespace, name.name, lot, asked, found.sentence)]
        return Cause(lead + found.sentence, found, roots)

    def _describe_hold(self, lot: str, row: Row) -> str | None:
        """Describe the hold of the lot itself, if it is held."""
        status, since = row[2], row[5]
        if status != Status.HOLD:
            return None
        held = self._tx.fetch("read_holds_of_lot", lot=lot, jobs=[], datasets=[self._dataset_id])
        for *_, who, because, at in held[-1:]:
            if at == since:
                return (
                    f"Lot {lot} of {self._dataset.namespace}/{self._dataset.name} is held by "
                    f"{who!r} since {say_time(since)}: {because}. {self._release(lot)}"
                )
        return None

    def _why(self, job: EntityId, lot: str) -> Why | None:
        if self._only is not None and job.namespace != self._only:
            return None
        try:
            return explain_work(self._tx, job.namespace, job.name, lot, self._now, only=self._only)
        except NotFound:  # deleted meanwhile
            return None

    def _describe_missing(self, lot: str) -> str:
        where = f"{self._dataset.namespace}/{self._dataset.name}"
        if clock_interval(self._dataset.name) is not None:
            return f"Clock {where} has not reached lot {lot}, or was not in use then."
        if self._makers:
            return f"The job that makes {where} is in a namespace that is not shown."
        if (landing := self._landing()) is not None:
            return f"There is no lot {lot} of {where}: {describe_arrivals(landing)}."
        return f"No job here makes {where}: register lot {lot} when it exists."

    def _landing(self) -> LandingRow | None:
        """Return the landing of the dataset, if objects arrive for it."""
        if self._landings is None:
            self._landings = self._tx.rows(
                LandingRow, "lot_landings_by_ids", ids=[self._dataset_id]
            )
        return self._landings[0] if self._landings else None

    def _release(self, lot: str) -> str:
        """Describe how to end the hold of a lot."""
        rows = self._tx.fetch("read_reasons_of_lot", ids=[self._dataset_id], lot=lot)
        reasons = [reason for row in rows for reason in ReasonsRow(*row).reasons]
        if QUALITY in reasons:
            return "Accept it, or resubmit it."
        if reasons and self._dataset_id not in reasons:
            return "Release the lot that it was made from."
        return "Release the hold to continue."

    def _roots(self, found: Why, makes: EntityId) -> Iterable[GapRoot]:
        """Yield the ends of the chains of causes; `makes` is the dataset that is needed."""
        explained = set[EntityId]()
        for cause in found.causes:
            made = self._outputs_of(EntityId(cause.namespace, cause.job))
            named = [EntityId(r.namespace, r.name) for r in found.reasons if r.namespace and r.name]
            awaited = [name for name in named if name in made] or made or [makes]
            explained.update(awaited)
            yield from self._roots(cause, awaited[0])
        if not found.followed:
            return
        job = EntityId(found.namespace, found.job)
        around = [reason for reason in found.reasons if reason.kind.startswith("input_")]
        upstream = [r for r in around if EntityId(r.namespace or "", r.name or "") not in explained]
        for reason in upstream:
            yield _input(reason, found.lot)
        direct = [r for r in found.reasons if r not in around and r.kind not in _INDIRECT]
        if found.causes:  # other reasons are shown with the jobs that this one waits for
            direct = [r for r in direct if r.kind == "out_of_tries" or r.kind.startswith("held")]
        if direct or not (around or found.causes):
            sentence = " ".join(reason.sentence for reason in direct) or found.sentence
            yield GapRoot(makes.namespace, makes.name, found.lot, job, sentence)

    def _outputs_of(self, job: EntityId) -> Sequence[EntityId]:
        if job not in self._outputs:
            try:
                self._outputs[job] = get_wiring(self._tx, job.namespace, job.name).outputs
            except NotFound:  # deleted meanwhile
                self._outputs[job] = []
        return self._outputs[job]


def _input(reason: Reason, lot: str) -> GapRoot:
    return GapRoot(reason.namespace or "", reason.name or "", lot, None, reason.sentence)


def _describe_lot(kind: GapKind, lot: str, row: Row | None) -> str:
    """Describe a gap that the row or the manifest of the lot explains."""
    if row is None:
        return ""
    at = say_time(row[5])
    match kind:
        case GapKind.EMPTY:
            return f"Lot {lot} was published at {at}, without data."
        case GapKind.REMOVED:
            what = "was published" if row[2] == Status.READY else "was removed"
            gone = ", and its data was removed" if row[2] == Status.READY else ""
            again = "resubmit it" if row[7] is not None else "register it again"
            return f"Lot {lot} {what} at {at}{gone}; {again} to restore it."
        case GapKind.PARTIAL:
            return f"Lot {lot} is not complete, since {at}."
        case GapKind.HELD:
            return f"Lot {lot} is held, since {at}."
        case GapKind.WAITING:
            return f"Lot {lot} is announced, and not complete yet, since {at}."
        case _:
            return ""


COUNTED_MAX = 2_000_000  # lots that are counted upstream for one answer, over all datasets
_ENDS_HERE = (GapKind.RUNNING, GapKind.EMPTY, GapKind.REMOVED)  # the cause is not upstream

_Spans = Mapping[str, Sequence[Span]]  # by dataset


class Upstream:
    """Divides the gaps of a dataset where the lots upstream change, into at most `most` ranges."""

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
        self._counted = 0
        self._cuts: list[Micros] = []
        self._seen: dict[str, list[Span]] = defaultdict(list)
        self._unseen: list[Span] = []

    def split(self, dataset_id: str, gaps: Sequence[LotRange]) -> list[LotRange]:
        """Cut the gaps of a dataset where the lots that they wait for change."""
        starts = [gap.span.start for gap in gaps]
        awaited: _Spans = {dataset_id: [gap.span for gap in gaps if _leads_on(gap.condition)]}
        for _ in range(DEPTH_MAX):
            horizon = self._horizon(starts)
            awaited = {dataset: self._apart(found, horizon) for dataset, found in awaited.items()}
            awaited = {dataset: spans for dataset, spans in awaited.items() if spans}
            if not awaited:
                break
            awaited = self._look(awaited, horizon)
        self._unseen = merge_spans(
            [*self._unseen, *(s for spans in awaited.values() for s in spans)]
        )
        return [LotRange(span, gap.condition) for gap in gaps for span in self._pieces(gap.span)]

    def is_alike(self, span: Span) -> bool:
        """Whether the lots of a span are known to have the same cause."""
        return span.count == 1 or not any(intersect([span], self._unseen))

    def _horizon(self, starts: Sequence[Micros]) -> Micros:
        """Return the time after which the ranges exceed the limit."""
        bounds = sorted({*starts, *self._cuts})
        return bounds[self._most] if len(bounds) > self._most else self._stretches[-1].end

    def _pieces(self, span: Span) -> Iterator[Span]:
        """Divide a span at the known cuts."""
        first = bisect_right(self._cuts, span.start)
        inner = self._cuts[first : bisect_left(self._cuts, span.end)]
        for start, end in zip([span.start, *inner], [*inner, span.end], strict=True):
            yield Span(span.interval, start, end)

    def _apart(self, spans: Iterable[Span], horizon: Micros) -> list[Span]:
        """Return the pieces with more than one lot before the horizon."""
        pieces = (piece for span in spans for piece in self._pieces(span))
        return [piece for piece in pieces if piece.count > 1 and piece.start < horizon]

    def _look(self, awaited: _Spans, horizon: Micros) -> _Spans:
        """Examine the inputs and outputs of the makers; return what they wait for."""
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
        """Return the inputs of the jobs that make these lots, and their other outputs."""
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
        """Cut at the present: a clock lacks future lots for another reason than past ones."""
        names = self._tx.fetch("read_dataset_names", ids=list(reads))
        if any(name.startswith(CLOCK) for _, _, name in names):
            self._cut(self._now - self._now % self._stretches[0].interval.length)

    def _cut(self, at: Micros) -> None:
        where = bisect_left(self._cuts, at)
        if self._cuts[where : where + 1] != [at]:
            insort(self._cuts, at)

    def _runs(
        self, dataset: str, writers: Sequence[str], spans: Sequence[Span], horizon: Micros
    ) -> list[LotRange]:
        """Return the ranges of a dataset in new spans, and cut where they change."""
        new = subtract(merge_spans(spans), self._seen[dataset])
        self._seen[dataset] = merge_spans([*self._seen[dataset], *new])
        stretches = self._affordable(select_touching(self._stretches, new), new)
        counts = count_conditions(self._tx, dataset, writers, stretches)
        met: list[LotRange] = []
        for run in join_ranges(
            find_ranges(self._tx, dataset, writers, stretches, counts), _as_read
        ):
            if run.span.start >= horizon or len(met) > self._most:
                break
            met.append(run)
        begin = {span.start for span in new}
        found = []
        for at, piece in intersect(new, [run.span for run in met]):
            if piece.start not in begin:
                self._cut(piece.start)
            found.append(LotRange(piece, met[at].condition))
        return found

    def _affordable(self, stretches: Sequence[Span], spans: Sequence[Span]) -> list[Span]:
        """Return the stretches that the limit allows; the spans in the others stay unseen."""
        found = []
        for stretch in stretches:
            self._counted += stretch.count
            if self._counted <= COUNTED_MAX:
                found.append(stretch)
        left = stretches[len(found) :]
        self._unseen += [piece for _, piece in intersect(spans, left)]
        return found


def _leads_on(condition: Condition | None) -> bool:
    """Whether the cause can be further upstream."""
    if condition is None or condition.is_readable or condition.is_held_lot:
        return False
    return condition.kind not in _ENDS_HERE and condition.maker != EXTERNAL_JOB


def _as_read(condition: Condition | None) -> Condition | None:
    """Return the condition of a lot for its readers: a readable lot has none."""
    return None if condition is None or condition.is_readable else condition
