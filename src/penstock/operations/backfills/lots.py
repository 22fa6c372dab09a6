"""The lots of a backfill: a range, named lots, or all lots that need repair."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.errors import Invalid, NotFound
from penstock.locks.gaps.spans import Bound, Span, find_interval, find_span, has_free_ids
from penstock.locks.rows import LotJobRow
from penstock.schema.catalog import EntityId
from penstock.schema.lot_ids import Interval, check_lot, sort_key
from penstock.schema.operations import Scope

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
        """The number of lots."""
        return self.end - self.start

    @property
    def first(self) -> str:
        """The first lot; empty if there is none."""
        return self.lots[self.start] if self.count else ""

    @property
    def last(self) -> str:
        """The last lot; empty if there is none."""
        return self.lots[self.end - 1] if self.count else ""


Range = Span | LotList


class WantedLots(Struct, frozen=True, kw_only=True):
    """The requested lots: a range, names or, with neither, all lots that need repair."""

    first: Bound = None
    last: Bound = None
    interval: Interval | None = None
    lots: Sequence[str] = ()

    @property
    def has_range(self) -> bool:
        """Whether the caller gave any part of a range."""
        return (self.first, self.last, self.interval) != (None, None, None)


def describe(lots: Range) -> str:
    """Describe the lots of a backfill for the audit log."""
    if isinstance(lots, LotList) and lots.count <= _SHOWN_MAX:
        return ", ".join(lots.lots[lots.start : lots.end]) or "no lots"
    many = f"{lots.count} lots, " if isinstance(lots, LotList) else ""
    return f"{many}{lots.first} to {lots.last}"


def find_range(
    tx: Transaction, job: LotJobRow, arc: EntityId, wanted: WantedLots, scope: Scope, now: Micros
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
    """Return the names of the datasets that a job reads and writes, by id."""
    rows = tx.fetch("read_dataset_names", ids=[*job.output_ids, *job.input_ids])
    return {dataset: EntityId(space, name) for dataset, space, name in rows}


def _named_lots(tx: Transaction, job: LotJobRow, arc: EntityId, wanted: Iterable[str]) -> LotList:
    """Return the lots that the caller names; refuse lots that the arc does not know."""
    lots = sorted({check_lot(lot) for lot in wanted}, key=sort_key)
    if len(lots) > LISTED_MAX:
        raise Invalid(f"{len(lots)} lots are named; name {LISTED_MAX} at most in one backfill")
    asks: list[Ask] = [("lot_work_by_lots", {"job_id": job.job_id, "lots": lots})]
    asks += [
        ("lot_outputs", {"dataset_id": dataset, "lots": lots})
        for dataset in dict.fromkeys((*job.input_ids, *job.output_ids))
    ]
    known_lots = {row[1] for rows in tx.fetch_many(asks) for row in rows}
    unknown = [lot for lot in lots if lot not in known_lots]
    if unknown:
        more = f" and {len(unknown) - _SHOWN_MAX} more" if len(unknown) > _SHOWN_MAX else ""
        raise NotFound(
            f"no input or output of arc {arc.namespace}/{arc.name} has lot "
            f"{', '.join(unknown[:_SHOWN_MAX])}{more}; `penstock lots list DATASET` lists lots"
        )
    return LotList(tuple(lots), 0, len(lots))


def _is_free(tx: Transaction, job: LotJobRow, names: dict[str, EntityId]) -> bool:
    """Whether no dataset of a job has an interval, and one has lots with free ids."""
    datasets = (*job.output_ids, *job.input_ids)
    try:
        _first_answer(lambda d: find_interval(tx, d, names[d]), datasets)
    except Invalid:
        return any(has_free_ids(tx, dataset) for dataset in datasets)
    return False


def _lots_to_repair(tx: Transaction, job: LotJobRow, arc: EntityId, scope: Scope) -> LotList:
    """Return the lots that failed or are missing, and those that the scope adds.

    Removed lots are omitted. Without a range, a backfill would make again all lots that were ever
    removed on purpose. The caller can name such lots.
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
        rows = [row for result in tx.fetch_many(asks) for row in result]
    lots = list(dict.fromkeys(lot for (lot,) in rows))
    listed = sorted(lots[:LISTED_MAX], key=sort_key)
    return LotList(tuple(listed), 0, len(listed), len(lots) > LISTED_MAX)


def _span(
    tx: Transaction, job: LotJobRow, names: dict[str, EntityId], wanted: WantedLots, now: Micros
) -> Span:
    """Return the lots of an arc between two bounds, by its outputs or else its inputs."""
    datasets = (*job.output_ids, *job.input_ids)
    first, last = wanted.first, wanted.last
    cut = wanted.interval or _first_answer(lambda d: find_interval(tx, d, names[d]), datasets)
    if first is not None:
        return find_span(tx, datasets[0], names[datasets[0]], first, last, now, cut)
    return _first_answer(lambda d: find_span(tx, d, names[d], None, last, now, cut), datasets)


def _first_answer(ask: Callable[[str], T], datasets: Sequence[str]) -> T:
    refusals = []
    for dataset in datasets:
        try:
            return ask(dataset)
        except Invalid as refusal:
            refusals.append(refusal)
    raise refusals[0]
