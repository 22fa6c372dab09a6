"""What a lot is to an arc, and what a backfill would do about it; no SQL here."""

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


class Standing(StrEnum):
    """What a lot is to an arc."""

    GOOD = "good"  # made, and there
    STALE = "stale"  # made, but of inputs that have been made anew since
    REMOVED = "removed"  # made, but its data was cleaned away, or is not all there
    MISSING = "missing"  # an output of it is not there, though the arc is done with it
    READY = "ready"  # can be worked on, and will be
    RUNNING = "running"
    FAILED = "failed"  # is tried again later
    OUT_OF_TRIES = "out of tries"
    HELD = "held"  # by a person
    WAITING = "waiting"  # an input is not there, or an output must not be written


class Action(StrEnum):
    """What a backfill does about a lot."""

    LEAVE = "leave"
    WAIT = "wait"  # nothing can be done here: something else has to come first
    FOLLOW = "follow"  # it is under way: see how it ends
    RUN = "run"  # let it come after fresh lots
    RETRY = "retry"  # now, with all its tries
    UNHOLD = "unhold"  # let it try again, with all its tries
    RERUN = "rerun"  # make it anew


class Scope(StrEnum):
    """Which lots a backfill is for."""

    FAILED_AND_MISSING = "failed and missing"
    NOT_GOOD = "not good"  # those that are stale, too
    ALL = "all"  # good ones, too


UNDER_WAY = frozenset({Action.FOLLOW, Action.RUN, Action.RETRY, Action.UNHOLD, Action.RERUN})
_PLAIN = {
    Standing.READY: Action.RUN,
    Standing.RUNNING: Action.FOLLOW,
    Standing.FAILED: Action.RETRY,
    Standing.OUT_OF_TRIES: Action.UNHOLD,
    Standing.HELD: Action.LEAVE,
    Standing.WAITING: Action.WAIT,
}
_RERUN = {
    Scope.FAILED_AND_MISSING: {Standing.REMOVED, Standing.MISSING},
    Scope.NOT_GOOD: {Standing.REMOVED, Standing.MISSING, Standing.STALE},
    Scope.ALL: {Standing.REMOVED, Standing.MISSING, Standing.STALE, Standing.GOOD},
}
_OF_WORK = {
    WorkState.RUNNING: Standing.RUNNING,
    WorkState.LATER: Standing.FAILED,
    WorkState.READY: Standing.READY,
    WorkState.WAITING: Standing.WAITING,
}


class Rows(NamedTuple):
    """Where the rows of lots are found: in a snapshot, or in a batch of writes."""

    work: Callable[[tuple[str, str]], WorkRow | None]  # job id, lot
    outputs: Callable[[tuple[str, str]], StatusRow | None]  # dataset id, lot
    inputs: Callable[[tuple[str, str, str]], StatusRow | None]  # dataset id, job id, lot
    manifests: Callable[[str], ManifestRow | None]  # version id


class Facts(NamedTuple):
    """All that matters of one lot to one arc, in the order of its inputs and outputs."""

    lot: str
    work: WorkRow | None
    read: tuple[StatusRow | None, ...]  # who made the lot in the inputs
    own: tuple[StatusRow | None, ...]  # how far the arc is with reading it
    is_kept: bool  # whether a person keeps the arc from it
    made: tuple[StatusRow | None, ...]  # the lot in the outputs
    manifests: tuple[ManifestRow | None, ...]  # of what the outputs have


class Verdict(NamedTuple):
    """What a lot is, and what a backfill does about it."""

    standing: Standing
    action: Action


def facts_of(job: LotJobRow, lot: str, rows: Rows) -> Facts:
    """Gather what matters of a lot."""
    made = tuple(rows.outputs((dataset, lot)) for dataset in job.output_ids)
    versions = (row.version_id if row is not None else None for row in made)
    return Facts(
        lot=lot,
        work=rows.work((job.job_id, lot)),
        read=tuple(rows.outputs((dataset, lot)) for dataset in job.input_ids),
        own=tuple(rows.inputs((dataset, job.job_id, lot)) for dataset in job.input_ids),
        is_kept=rows.inputs((NOWHERE, job.job_id, lot)) is not None,
        made=made,
        manifests=tuple(rows.manifests(v) if v is not None else None for v in versions),
    )


def judge(facts: Facts, scope: Scope) -> Verdict:
    """What a lot is, and what is to be done; a lot whose inputs are not there is not touched."""
    standing = stands(facts)
    if standing is Standing.OUT_OF_TRIES and not _has_inputs(facts):
        return Verdict(standing, Action.WAIT)
    if standing in _PLAIN:
        return Verdict(standing, _PLAIN[standing])
    if standing not in _RERUN[scope]:
        return Verdict(standing, Action.LEAVE)
    return Verdict(standing, Action.RERUN if _has_inputs(facts) else Action.WAIT)


def stands(facts: Facts) -> Standing:
    """What a lot is."""
    work = facts.work
    if work is None:
        return Standing.READY if _has_inputs(facts) else Standing.WAITING
    if work.state == WorkState.RUNNING:
        return Standing.RUNNING
    if any(row is not None and _is_held_by_hand(row) for row in facts.made):
        return Standing.HELD
    if work.state == WorkState.HELD:
        held = [row for row in facts.own if row is not None and row.status == Status.HOLD]
        # One that is held because an input was made anew remembers what was before.
        spent = bool(held) and not facts.is_kept and not any(row.held_from for row in held)
        return Standing.OUT_OF_TRIES if spent else Standing.HELD
    if work.state != WorkState.DONE:
        return _OF_WORK[WorkState(work.state)]
    odd = (ManifestState.REMOVED, ManifestState.PARTIAL)
    if any(row is not None and row.state in odd for row in facts.manifests):
        return Standing.REMOVED
    if any(row is None or not readable(Status(row.status)) for row in facts.made):
        return Standing.MISSING
    return Standing.STALE if _is_stale(facts) else Standing.GOOD


def _is_held_by_hand(row: StatusRow) -> bool:
    return row.status == Status.HOLD and bool(row.held_from)


def _has_inputs(facts: Facts) -> bool:
    return all(row is not None and readable(Status(row.status)) for row in facts.read)


def _is_stale(facts: Facts) -> bool:
    """Whether an input has another version of the lot than the one that was consumed."""
    for source, own in zip(facts.read, facts.own, strict=True):
        if source is None or own is None or not readable(Status(source.status)):
            continue
        if own.status == Status.DONE and own.version_id != source.version_id:
            return True
    return False


def cause(facts: Facts, verdict: Verdict, reads: Sequence[str], writes: Sequence[str]) -> str:
    """Why a lot is not there, as far as its own rows tell; the names are those of datasets."""
    work = facts.work
    if verdict.action is not Action.WAIT:
        return work.error if work is not None else ""
    said = []
    for row, name in zip(facts.read, reads, strict=True):
        if row is None:
            said.append(f"input {name} has no lot {facts.lot}")
        elif not readable(Status(row.status)):
            said.append(f"input {name}: lot {facts.lot} is {row.status}")
    if not said:
        locked = zip(facts.made, writes, strict=True)
        said = [f"output {name}: lot {facts.lot} is {row.status}" for row, name in locked if row]
    return "; ".join(said)


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


class WantedLots(Struct, frozen=True, kw_only=True):
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
    tx: Transaction, job: LotJobRow, names: dict[str, EntityId], wanted: WantedLots, now: Micros
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
