"""The lots that a backfill is for: a range of intervals, or a list of lots.

A list is fixed when the backfill starts. It has the lots that the caller names or, where lots have
free ids, those that failed or are missing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from penstock.arcs.backfill_rules import Scope
from penstock.catalog.shapes import EntityId
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.errors import Invalid, NotFound
from penstock.locks.rows import LotJobRow
from penstock.locks.spans import Bound, Span, find_interval, find_span, has_free_ids
from penstock.lots.ids import Interval, check_lot, sort_key

T = TypeVar("T")

LISTED_MAX = 10_000
_SHOWN_MAX = 10


class LotList(Struct, frozen=True):
    """The lots of a list from one position to before another; `is_cut` if more were left out."""

    lots: tuple[str, ...]
    start: int
    end: int
    is_cut: bool = False

    @property
    def count(self) -> int:
        """How many lots there are in it."""
        return self.end - self.start

    @property
    def first(self) -> str:
        """Its first lot; empty if it has none."""
        return self.lots[self.start] if self.count else ""

    @property
    def last(self) -> str:
        """Its last lot; empty if it has none."""
        return self.lots[self.end - 1] if self.count else ""


Range = Span | LotList


class Wanted(Struct, frozen=True, kw_only=True):
    """Which lots the caller asks for: a range, named lots or, with neither, all that need it."""

    first: Bound = None
    last: Bound = None
    interval: Interval | None = None
    lots: Sequence[str] = ()

    @property
    def has_range(self) -> bool:
        """Whether the caller gave any part of a range."""
        return (self.first, self.last, self.interval) != (None, None, None)


def describe(lots: Range) -> str:
    """The lots of a backfill for the audit log, in a few words."""
    if isinstance(lots, LotList) and lots.count <= _SHOWN_MAX:
        return ", ".join(lots.lots[lots.start : lots.end]) or "no lots"
    many = f"{lots.count} lots, " if isinstance(lots, LotList) else ""
    return f"{many}{lots.first} to {lots.last}"


def find_range(
    tx: Transaction, job: LotJobRow, arc: EntityId, wanted: Wanted, scope: Scope, now: Micros
) -> Range:
    """Find the lots of an arc that a backfill with this scope is for."""
    if wanted.lots:
        if wanted.has_range:
            raise Invalid("a backfill is for named lots or for a range; leave out one of the two")
        return _named_lots(tx, job, arc, wanted.lots)
    names = dataset_names(tx, job)
    if wanted.interval is None and _is_free(tx, job, names):
        if wanted.has_range:
            raise Invalid(
                f"the lots of arc {arc.namespace}/{arc.name} have free ids, so they have no range; "
                "leave out --from and --to, or name lots with --lot"
            )
        return _lots_to_repair(tx, job, arc, scope)
    return _span(tx, job, names, wanted, now)


def dataset_names(tx: Transaction, job: LotJobRow) -> dict[str, EntityId]:
    """The names of the datasets that a job reads and writes, by id."""
    rows = tx.fetch("read_dataset_names", ids=[*job.output_ids, *job.input_ids])
    return {dataset: EntityId(space, name) for dataset, space, name in rows}


def _named_lots(tx: Transaction, job: LotJobRow, arc: EntityId, wanted: Iterable[str]) -> LotList:
    """The lots that the caller names; each must be known to the arc."""
    lots = sorted({check_lot(lot) for lot in wanted}, key=sort_key)
    if len(lots) > LISTED_MAX:
        raise Invalid(f"{len(lots)} lots are named; name {LISTED_MAX} at most in one backfill")
    asks: list[Ask] = [("lot_work_by_lots", {"job_id": job.job_id, "lots": lots})]
    asks += [
        ("lot_outputs", {"dataset_id": dataset, "lots": lots})
        for dataset in dict.fromkeys((*job.input_ids, *job.output_ids))
    ]
    known = {row[1] for rows in tx.fetch_many(asks) for row in rows}
    unknown = [lot for lot in lots if lot not in known]
    if unknown:
        more = f" and {len(unknown) - _SHOWN_MAX} more" if len(unknown) > _SHOWN_MAX else ""
        raise NotFound(
            f"no input or output of arc {arc.namespace}/{arc.name} has lot "
            f"{', '.join(unknown[:_SHOWN_MAX])}{more}; `penstock lots list DATASET` lists lots"
        )
    return LotList(tuple(lots), 0, len(lots))


def _is_free(tx: Transaction, job: LotJobRow, names: dict[str, EntityId]) -> bool:
    """Whether no dataset of a job has an interval, and the lots of one have free ids."""
    datasets = (*job.output_ids, *job.input_ids)
    try:
        _first_answer(lambda d: find_interval(tx, d, names[d]), datasets)
    except Invalid:
        return any(has_free_ids(tx, dataset) for dataset in datasets)
    return False


def _lots_to_repair(tx: Transaction, job: LotJobRow, arc: EntityId, scope: Scope) -> LotList:
    """The lots that failed or are missing, and those that the scope adds.

    A lot that was removed is not among them. Without a range, a backfill would make again all that
    was ever removed on purpose; the caller can name such a lot.
    """
    most = {"job_id": job.job_id, "most": LISTED_MAX + 1}
    if scope is Scope.ALL:
        rows = tx.fetch("lots_met_by_job", after="", **most)
        if len(rows) > LISTED_MAX:
            raise Invalid(
                f"arc {arc.namespace}/{arc.name} has more than {LISTED_MAX} lots with free ids; "
                "name those to make again with --lot"
            )
    else:
        asks: list[Ask] = [
            ("open_lots_to_repair", most),
            ("partial_lots_to_repair", {**most, "outputs": list(job.output_ids)}),
            ("held_lots_to_repair", most),
        ]
        if scope is Scope.NOT_GOOD:
            asks.append(("stale_lots_to_repair", most))
        rows = [row for found in tx.fetch_many(asks) for row in found]
    lots = list(dict.fromkeys(lot for (lot,) in rows))
    kept = sorted(lots[:LISTED_MAX], key=sort_key)
    return LotList(tuple(kept), 0, len(kept), len(lots) > LISTED_MAX)


def _span(
    tx: Transaction, job: LotJobRow, names: dict[str, EntityId], wanted: Wanted, now: Micros
) -> Span:
    """The lots of an arc between two bounds, by its outputs or else by its inputs."""
    datasets = (*job.output_ids, *job.input_ids)
    first, last = wanted.first, wanted.last
    cut = wanted.interval or _first_answer(lambda d: find_interval(tx, d, names[d]), datasets)
    if first is not None:
        return find_span(tx, datasets[0], names[datasets[0]], first, last, now, cut)
    return _first_answer(lambda d: find_span(tx, d, names[d], None, last, now, cut), datasets)


def _first_answer(ask: Callable[[str], T], datasets: Sequence[str]) -> T:
    """The answer of the first dataset that has one; without any, the refusal of the first."""
    refusals = []
    for dataset in datasets:
        try:
            return ask(dataset)
        except Invalid as refusal:
            refusals.append(refusal)
    raise refusals[0]
