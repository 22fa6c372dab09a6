"""The condition of a lot of an arc, and the action of a backfill; mostly without SQL."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from msgspec import Struct

from penstock.catalog.shapes import EntityId
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.db.database import Ask
from penstock.errors import Invalid, NotFound
from penstock.locks.gaps.spans import Bound, Span, find_interval, find_span, has_free_ids
from penstock.locks.lock_rules import Status, readable
from penstock.locks.rows import NOWHERE, LotJobRow, StatusRow, WorkRow
from penstock.lots.ids import Interval, check_lot, sort_key
from penstock.lots.rows import ManifestRow
from penstock.states import ManifestState, WorkState

T = TypeVar("T")

LISTED_MAX = 10_000
_SHOWN_MAX = 10


class LotCondition(StrEnum):
    """The condition of a lot of an arc."""

    GOOD = "good"  # done, and its data is there
    STALE = "stale"  # done, with inputs that have newer versions
    REMOVED = "removed"  # done, but its data was removed or is partial
    MISSING = "missing"  # done, but an output lacks the lot
    READY = "ready"  # can be claimed
    RUNNING = "running"
    FAILED = "failed"  # retried after a backoff
    OUT_OF_TRIES = "out of tries"
    HELD = "held"  # by a person
    WAITING = "waiting"  # an input is missing, or an output must not be written


class BackfillAction(StrEnum):
    """What a backfill does with a lot."""

    LEAVE = "leave"
    WAIT = "wait"  # another lot has to come first
    FOLLOW = "follow"  # it is running: record how it ends
    RUN = "run"  # rank it after fresh lots
    RETRY = "retry"  # at once, with all its tries
    UNHOLD = "unhold"  # release it, with all its tries
    RERUN = "rerun"  # resubmit it


class Scope(StrEnum):
    """The lots that a backfill repairs."""

    FAILED_AND_MISSING = "failed and missing"
    NOT_GOOD = "not good"  # also stale lots
    ALL = "all"  # also good lots


UNDER_WAY = frozenset(
    {
        BackfillAction.FOLLOW,
        BackfillAction.RUN,
        BackfillAction.RETRY,
        BackfillAction.UNHOLD,
        BackfillAction.RERUN,
    }
)
_PLAIN = {
    LotCondition.READY: BackfillAction.RUN,
    LotCondition.RUNNING: BackfillAction.FOLLOW,
    LotCondition.FAILED: BackfillAction.RETRY,
    LotCondition.OUT_OF_TRIES: BackfillAction.UNHOLD,
    LotCondition.HELD: BackfillAction.LEAVE,
    LotCondition.WAITING: BackfillAction.WAIT,
}
_RERUN = {
    Scope.FAILED_AND_MISSING: {LotCondition.REMOVED, LotCondition.MISSING},
    Scope.NOT_GOOD: {LotCondition.REMOVED, LotCondition.MISSING, LotCondition.STALE},
    Scope.ALL: {LotCondition.REMOVED, LotCondition.MISSING, LotCondition.STALE, LotCondition.GOOD},
}
_OF_WORK = {
    WorkState.RUNNING: LotCondition.RUNNING,
    WorkState.LATER: LotCondition.FAILED,
    WorkState.READY: LotCondition.READY,
    WorkState.WAITING: LotCondition.WAITING,
}


class LotRows(NamedTuple):
    """Lookups of rows: in a snapshot, or in a unit of work."""

    work: Callable[[tuple[str, str]], WorkRow | None]  # job id, lot
    outputs: Callable[[tuple[str, str]], StatusRow | None]  # dataset id, lot
    inputs: Callable[[tuple[str, str, str]], StatusRow | None]  # dataset id, job id, lot
    manifests: Callable[[str], ManifestRow | None]  # version id


class LotFacts(NamedTuple):
    """The rows of one lot of an arc, in the order of its inputs and outputs."""

    lot: str
    work: WorkRow | None
    inputs: tuple[StatusRow | None, ...]  # the lot in the inputs, as their writers have it
    consumed: tuple[StatusRow | None, ...]  # the lot in the inputs, as the arc has read it
    is_on_hold: bool  # whether the arc's work on it is on hold
    outputs: tuple[StatusRow | None, ...]  # the lot in the outputs
    manifests: tuple[ManifestRow | None, ...]  # of the versions in the outputs


class LotVerdict(NamedTuple):
    """The condition of a lot, and the action of a backfill."""

    condition: LotCondition
    action: BackfillAction


def gather_facts(job: LotJobRow, lot: str, rows: LotRows) -> LotFacts:
    """Read the rows of a lot."""
    outputs = tuple(rows.outputs((dataset, lot)) for dataset in job.output_ids)
    versions = (row.version_id if row is not None else None for row in outputs)
    return LotFacts(
        lot=lot,
        work=rows.work((job.job_id, lot)),
        inputs=tuple(rows.outputs((dataset, lot)) for dataset in job.input_ids),
        consumed=tuple(rows.inputs((dataset, job.job_id, lot)) for dataset in job.input_ids),
        is_on_hold=rows.inputs((NOWHERE, job.job_id, lot)) is not None,
        outputs=outputs,
        manifests=tuple(rows.manifests(v) if v is not None else None for v in versions),
    )


def judge(facts: LotFacts, scope: Scope) -> LotVerdict:
    """Return the condition of a lot and the action; a lot without its inputs is not touched."""
    condition = condition_of(facts)
    if condition is LotCondition.OUT_OF_TRIES and not _has_inputs(facts):
        return LotVerdict(condition, BackfillAction.WAIT)
    if condition in _PLAIN:
        return LotVerdict(condition, _PLAIN[condition])
    if condition not in _RERUN[scope]:
        return LotVerdict(condition, BackfillAction.LEAVE)
    return LotVerdict(
        condition, BackfillAction.RERUN if _has_inputs(facts) else BackfillAction.WAIT
    )


def condition_of(facts: LotFacts) -> LotCondition:
    """Return the condition of a lot."""
    work = facts.work
    if work is None:
        return LotCondition.READY if _has_inputs(facts) else LotCondition.WAITING
    if work.state == WorkState.RUNNING:
        return LotCondition.RUNNING
    if any(row is not None and _is_held_by_person(row) for row in facts.outputs):
        return LotCondition.HELD
    if work.state == WorkState.HELD:
        held_inputs = [
            row for row in facts.consumed if row is not None and row.status == Status.HOLD
        ]
        # Work held for a newer input remembers its former status; work out of tries does not.
        is_out_of_tries = (
            bool(held_inputs)
            and not facts.is_on_hold
            and not any(row.held_from for row in held_inputs)
        )
        return LotCondition.OUT_OF_TRIES if is_out_of_tries else LotCondition.HELD
    if work.state != WorkState.DONE:
        return _OF_WORK[WorkState(work.state)]
    incomplete = (ManifestState.REMOVED, ManifestState.PARTIAL)
    if any(row is not None and row.state in incomplete for row in facts.manifests):
        return LotCondition.REMOVED
    if any(row is None or not readable(Status(row.status)) for row in facts.outputs):
        return LotCondition.MISSING
    return LotCondition.STALE if _is_stale(facts) else LotCondition.GOOD


def _is_held_by_person(row: StatusRow) -> bool:
    return row.status == Status.HOLD and bool(row.held_from)


def _has_inputs(facts: LotFacts) -> bool:
    return all(row is not None and readable(Status(row.status)) for row in facts.inputs)


def _is_stale(facts: LotFacts) -> bool:
    """Whether an input has another version of the lot than the consumed one."""
    for source, consumed in zip(facts.inputs, facts.consumed, strict=True):
        if source is None or consumed is None or not readable(Status(source.status)):
            continue
        if consumed.status == Status.DONE and consumed.version_id != source.version_id:
            return True
    return False


def cause(facts: LotFacts, verdict: LotVerdict, reads: Sequence[str], writes: Sequence[str]) -> str:
    """Explain why a lot is missing, from its own rows and the names of datasets."""
    work = facts.work
    if verdict.action is not BackfillAction.WAIT:
        return work.error if work is not None else ""
    texts = []
    for row, name in zip(facts.inputs, reads, strict=True):
        if row is None:
            texts.append(f"input {name} has no lot {facts.lot}")
        elif not readable(Status(row.status)):
            texts.append(f"input {name}: lot {facts.lot} is {row.status}")
    if not texts:
        locked = zip(facts.outputs, writes, strict=True)
        texts = [f"output {name}: lot {facts.lot} is {row.status}" for row, name in locked if row]
    return "; ".join(texts)


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
    """Return the first result; if every dataset refuses, raise the first refusal."""
    refusals = []
    for dataset in datasets:
        try:
            return ask(dataset)
        except Invalid as refusal:
            refusals.append(refusal)
    raise refusals[0]
