"""The writes of arcs: declared, claimed within limits, run by parts, published, failed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypeVar

import msgspec

from penstock import ids
from penstock.access import audit
from penstock.arcs.rows import (
    ArcRow,
    ArcTables,
    AttemptRow,
    NamedChecks,
    NamedNotes,
    PartRow,
    UnsettledRow,
)
from penstock.arcs.spec import Arc, checked, to_text, without_values
from penstock.catalog.commands.lookup import Write
from penstock.catalog.events.apply import receive
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.events.parse import Limits, read_event
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros, format_time
from penstock.errors import Conflict, NotFound
from penstock.locks import claiming
from penstock.locks.claiming import ClaimRef
from penstock.locks.commands.claims import ClaimedLot, ClaimLots
from penstock.locks.commands.wiring import WireJob
from penstock.locks.rows import WorkRow
from penstock.locks.tables import LockTables
from penstock.lots.rows import LotDatasetRow
from penstock.lots.tables import LotTables
from penstock.schema.arcs import PartState
from penstock.schema.lot_ids import Interval, clock_interval
from penstock.states import ManifestState, WorkState

_LIMITS = Limits(name_length_max=4096, json_depth_max=64)
_PRODUCER = "penstock"
_MANAGER = "arcs"  # the engine, as locks name it
_LEFT = "whoever ran it was lost"

T = TypeVar("T")


class ApplyArc(Write, frozen=True):
    """Declare an arc, or change it: its job is wired, and finds the lots that are there."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    arc: Arc

    def execute(self, uow: UnitOfWork, now: Micros) -> ArcRow:
        """Saying the same again changes nothing."""
        row, is_changed = self.fold(uow, now)
        if is_changed:
            self.tell(uow, now)
        return row

    def tell(self, uow: UnitOfWork, now: Micros) -> None:
        """Write it to the audit log, as a trial does not."""
        target = f"{self.arc.namespace}/{self.arc.name}"
        declared = to_text(without_values(self.arc))
        audit.append(uow.tx, now, self.who, "apply arc", target, declared)

    def fold(self, uow: UnitOfWork, now: Micros) -> tuple[ArcRow, bool]:
        """The arc, and whether it is another than before."""
        arc = checked(self.arc)
        room = uow.tables(ArcTables)
        job_id = ids.job_id(arc.namespace, arc.name)
        held = room.arcs.get(job_id)
        if held is None:
            self._check_free(uow, job_id)
        WireJob(
            arc.namespace,
            arc.name,
            arc.input_names,
            arc.output_names,
            lease_seconds=arc.retry.lease_seconds,
            tries_max=arc.retry.tries,
            back_off_seconds=arc.retry.back_off_seconds,
            stale=arc.stale,
            managed_by=_MANAGER,
        ).execute(uow, now)
        self._cut_lots(uow, arc, now)
        text = to_text(arc)
        if held is not None and held.declaration == text:
            return held, False
        created = held.created_at if held is not None else now
        row = ArcRow(job_id, arc.namespace, arc.name, arc.project, text, created, now)
        room.arcs.put(job_id, row)
        return row, True

    def _check_free(self, uow: UnitOfWork, job_id: str) -> None:
        """Who works on lots of the job would publish them without saying what they hold."""
        known = uow.tables(LockTables).list_open_work(job_id)
        if running := [row for row in known if row.state == WorkState.RUNNING]:
            arc, first = self.arc, running[0]
            raise Conflict(
                f"{len(running)} lots of job {arc.namespace}/{arc.name} are being worked on, lot "
                f"{first.lot} by {first.owner!r}; it can become an arc when they are done or "
                "released"
            )

    def _cut_lots(self, uow: UnitOfWork, arc: Arc, now: Micros) -> None:
        """Keep how the lots of each dataset are cut; the interval of a label never changes."""
        room = uow.tables(LotTables)
        for name, output in zip(arc.output_names, arc.outputs, strict=True):
            interval = Interval(output.interval) if output.interval else ""
            dataset_id = uow.dataset_id(ids.dataset_id(name.namespace, name.name))
            held = room.datasets.get(dataset_id)
            if held and held.label == output.version and held.interval not in ("", interval):
                raise Conflict(
                    f"the lots of {name.namespace}/{name.name}, version {output.version}, are cut "
                    f"by {held.interval}, not by {interval or 'free ids'}; give it a new version"
                )
            row = LotDatasetRow(dataset_id, interval, output.version, output.running_max or 0, now)
            if held is None or replace(held, updated_at=now) != row:
                room.datasets.put(dataset_id, row)
        for name, source in zip(arc.input_names, arc.inputs, strict=True):
            dataset_id = uow.dataset_id(ids.dataset_id(name.namespace, name.name))
            held = room.datasets.get(dataset_id) or LotDatasetRow(dataset_id, "", "1", 0, now)
            if source.running_max is not None and held.running_max != source.running_max:
                room.datasets.put(dataset_id, replace(held, running_max=source.running_max))
        _check_same_cut(uow, arc)


def _check_same_cut(uow: UnitOfWork, arc: Arc) -> None:
    """The lots that an arc makes have the ids of those it reads, so all are of one interval."""
    room = uow.tables(LotTables)
    first: tuple[str, str] | None = None
    for name in (*arc.input_names, *arc.output_names):
        shown = f"{name.namespace}/{name.name}"
        held = room.datasets.get(uow.dataset_id(ids.dataset_id(name.namespace, name.name)))
        interval = clock_interval(name.name) or (held.interval if held is not None else "")
        if not interval:
            continue
        if first is not None and first[1] != interval:
            raise Conflict(
                f"the lots of {first[0]} are cut by {first[1]}, and those of {shown} by "
                f"{interval}: arc {arc.namespace}/{arc.name} makes lots with the ids of those "
                "that it reads, so they have to be of one interval"
            )
        first = first or (shown, interval)


class ForgetArc(Write, frozen=True):
    """Forget an arc; its job, its runs and its lots stay."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    namespace: str
    name: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """The row goes; no engine runs it any more."""
        room = uow.tables(ArcTables)
        row = arc_row(uow, self.namespace, self.name)
        audit.append(uow.tx, now, self.who, "delete arc", f"{self.namespace}/{self.name}")
        room.arcs.put(row.job_id, None)
        jobs = uow.tables(LockTables).jobs
        if (job := jobs.get(row.job_id)) is not None:
            jobs.put(row.job_id, replace(job, managed_by=None))


def arc_row(uow: UnitOfWork, namespace: str, name: str) -> ArcRow:
    """An arc, or NotFound."""
    row = uow.tables(ArcTables).arcs.get(ids.job_id(namespace, name))
    if row is None:
        raise NotFound(f"there is no arc {namespace}/{name}; `penstock arcs list` lists them")
    return row


class ArcClaims(msgspec.Struct, frozen=True):
    """Lots that were claimed, and the arc as it was declared then: they are run as that says."""

    arc: Arc
    job_id: str
    claims: Sequence[ClaimedLot]


class ClaimArcLots(Write, frozen=True):
    """Claim lots of an arc, within the limits of the arc and of its datasets.

    What is counted are live claims, of all engines: nobody can go over a limit together. Limits
    do not hold back who asks for lots by name.
    """

    namespace: str
    name: str
    owner: str
    count: int
    lots: tuple[str, ...] | None = None

    def execute(self, uow: UnitOfWork, now: Micros) -> ArcClaims:
        """Up to `count`, or fewer."""
        row = arc_row(uow, self.namespace, self.name)
        arc = row.arc
        count = self.count if self.lots else min(self.count, self._room_left(uow, row, arc))
        if count < 1:
            return ArcClaims(arc, row.job_id, ())
        claiming = ClaimLots(
            self.namespace,
            self.name,
            self.owner,
            count,
            lots=self.lots,
            newest=arc.newest_first,
            manager=_MANAGER,
        )
        claims = claiming.execute(uow, now)
        for claim in claims:
            uow.tables(ArcTables).put_unsettled(row.job_id, claim.lot, claim.id)
        return ArcClaims(arc, row.job_id, claims)

    def _room_left(self, uow: UnitOfWork, row: ArcRow, arc: Arc) -> int:
        running = _running(uow)
        left = arc.running_max - running[row.job_id]
        locks, lots = uow.tables(LockTables), uow.tables(LotTables)
        job = locks.jobs.get(row.job_id)
        for dataset_id in (*job.input_ids, *job.output_ids) if job is not None else ():
            cut = lots.datasets.get(dataset_id)
            if cut is not None and cut.running_max:
                users = {user for _, user in locks.wires.get(dataset_id) or ()}
                left = min(left, cut.running_max - sum(running[user] for user in users))
        return left


def _running(uow: UnitOfWork) -> Counter[str]:
    """How many lots each job is working on."""
    room = uow.tables(LockTables)
    stored = {(job, lot) for job, lot in uow.tx.fetch("running_lots")}
    changed = {(row.job_id, row.lot): row for row in room.work.unstored()}
    live = {key for key, row in changed.items() if row.state == WorkState.RUNNING}
    return Counter(job for job, _ in (stored - changed.keys()) | live)


class BeginParts(Write, frozen=True):
    """Begin parts of a claimed lot, each with a run of its own below the claim's.

    `parts` says for each name what the part is made of, as `splitting.made_of` does.
    """

    claim: ClaimRef
    parts: Mapping[str, str]

    def execute(self, uow: UnitOfWork, now: Micros) -> dict[str, str]:
        """The runs, by part."""
        claim = claiming.find_live(uow, self.claim)
        room = uow.tables(ArcTables)
        end_parts_left(uow, claim.job_id, claim.lot, now)
        runs = {}
        for part, inputs in self.parts.items():
            run_id = ids.derived_id("part", self.claim.id, part)
            room.put_part(
                PartRow(
                    job_id=claim.job_id,
                    lot=claim.lot,
                    part=part,
                    state=PartState.RUNNING,
                    inputs=inputs,
                    attempt=self.claim.id,
                    run_id=run_id,
                    outputs="[]",
                    error="",
                    at=now,
                )
            )
            _report_part(uow, room.parts_of(claim.job_id, claim.lot)[part], "START", now)
            runs[part] = run_id
        return runs


class EndPart(Write, frozen=True):
    """Note what became of a part; a part of a claim that is over changes nothing."""

    claim: ClaimRef
    part: str
    state: PartState
    notes: NamedNotes = ()
    error: str = ""

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Its row, and the end of its run."""
        claim = claiming.find_live(uow, self.claim)
        room = uow.tables(ArcTables)
        row = room.parts_of(claim.job_id, claim.lot).get(self.part)
        if row is None or row.attempt != self.claim.id:
            raise Conflict(f"part {self.part!r} of lot {claim.lot} was not begun by this claim")
        outputs = msgspec.json.encode(self.notes).decode()
        _end_part(
            uow, replace(row, state=self.state, outputs=outputs, error=self.error, at=now), now
        )


class PublishLot(Write, frozen=True):
    """Publish what a claim has made, with the manifests: one transaction, or nothing."""

    claim: ClaimRef
    notes: NamedNotes
    checks: NamedChecks = ()

    def execute(self, uow: UnitOfWork, now: Micros) -> dict[str, str]:
        """The versions that it made, by dataset id."""
        claim = claiming.find_live(uow, self.claim)
        notes, checks = _by_id(uow, self.notes), _by_id(uow, self.checks)
        for name, _ in self.notes:
            dataset_id = uow.dataset_id(ids.dataset_id(name.namespace, name.name))
            shown = f"{name.namespace}/{name.name}"
            uow.tables(LotTables).check_interval(dataset_id, shown, [claim.lot])
        [made] = claiming.complete(uow, [claim], now, notes, checks)
        room = uow.tables(ArcTables)
        end_parts_left(uow, claim.job_id, claim.lot, now)
        if room.parts_of(claim.job_id, claim.lot):
            # What was resubmitted is to be made anew: no part of it is good any more.
            room.parts.put((claim.job_id, claim.lot), None)
        return made


class FailLot(Write, frozen=True):
    """Fail a claim, and note the manifests of what it left behind."""

    claim: ClaimRef
    error: str
    keys: tuple[str, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> WorkRow:
        """Where its lot stands then."""
        claim = claiming.find_live(uow, self.claim)
        end_parts_left(uow, claim.job_id, claim.lot, now)
        put_attempt(uow, claim.job_id, claim.lot, self.claim.id, self.keys, now)
        return claiming.fail(uow, claim, self.error, now)


class SettleKeys(Write, frozen=True):
    """Note that the keys of lots follow the database."""

    rows: tuple[UnsettledRow, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """What another attempt has begun meanwhile stays."""
        room = uow.tables(ArcTables)
        for row in self.rows:
            room.settled.put((row.owner_id, row.lot, row.attempt), row)


class NoteAttempts(Write, frozen=True):
    """Note what attempts left behind whose engine died, or that it was removed."""

    job_id: str
    lot: str
    attempts: tuple[tuple[str, tuple[str, ...]], ...]
    state: ManifestState = ManifestState.PARTIAL

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """One row each."""
        for run_id, keys in self.attempts:
            put_attempt(uow, self.job_id, self.lot, run_id, keys, now, self.state)


def put_attempt(
    uow: UnitOfWork,
    job_id: str,
    lot: str,
    run_id: str,
    keys: Iterable[str],
    now: Micros,
    state: ManifestState = ManifestState.PARTIAL,
) -> None:
    """Keep what is known of a failed attempt."""
    text = msgspec.json.encode(tuple(keys)).decode()
    uow.tables(ArcTables).attempts.put(run_id, AttemptRow(run_id, job_id, lot, state, text, now))


def _by_id(uow: UnitOfWork, named: Iterable[tuple[DatasetName, T]]) -> dict[str, T]:
    return {uow.dataset_id(ids.dataset_id(name.namespace, name.name)): each for name, each in named}


def end_parts_left(uow: UnitOfWork, job_id: str, lot: str, now: Micros) -> None:
    """Parts that an attempt began and that nobody runs any more have failed, and so their runs."""
    for row in uow.tables(ArcTables).parts_of(job_id, lot).values():
        if row.state == PartState.RUNNING:
            _end_part(uow, replace(row, state=PartState.FAILED, error=_LEFT, at=now), now)


def _end_part(uow: UnitOfWork, row: PartRow, now: Micros) -> None:
    uow.tables(ArcTables).put_part(row)
    _report_part(uow, row, "FAIL" if row.state == PartState.FAILED else "COMPLETE", now)
    uow.tables(LotTables).add_run_end(row.run_id, now)


def _report_part(uow: UnitOfWork, row: PartRow, event_type: str, now: Micros) -> None:
    """The run of a part in the catalog, as OpenLineage would tell it."""
    job = uow.jobs.get(row.job_id)
    assert job is not None, "a part is of a lot that a job claimed"
    parent = {
        "_producer": _PRODUCER,
        "run": {"runId": row.attempt},
        "job": {"namespace": job.namespace, "name": job.name},
    }
    facets = {"parent": parent, "penstock_part": {"lot": row.lot, "part": row.part}}
    body = {
        "eventType": event_type,
        "eventTime": format_time(now),
        "producer": _PRODUCER,
        "run": {"runId": row.run_id, "facets": facets},
        "job": {"namespace": job.namespace, "name": f"{job.name}.part"},
        "inputs": [],
        "outputs": [],
    }
    receive(uow, read_event(msgspec.json.encode(body), _LIMITS), now)
