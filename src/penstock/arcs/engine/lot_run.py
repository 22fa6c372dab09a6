"""One claimed lot on its way: read what it consists of, run its workload, publish or fail."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from penstock.arcs.commands import BeginParts, EndPart, FailLot, PublishLot
from penstock.arcs.engine.leases import Lease, Outage
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.outputs.leftovers import clean, note_the_dead, write_partial
from penstock.arcs.outputs.state_keys import StateKeys
from penstock.arcs.queries import input_lots, output_refs, parts_of, read_manifest
from penstock.arcs.rows import NamedChecks, NamedNotes, PartRow, PartState, UnsettledRow
from penstock.arcs.spec import Arc, EmptyOutput, OnEmpty
from penstock.arcs.workload.functions import run_apart, run_task
from penstock.arcs.workload.parts import made_of, split
from penstock.arcs.workload.shell import DEFAULT_RULES, CommandRules
from penstock.arcs.workload.task import InputLot, Task, TaskResult, again, plain
from penstock.catalog.events.known_facets import DatasetName
from penstock.clock import Clock, format_time
from penstock.errors import Away, Busy, Conflict, NotFound, PenstockError, Unavailable
from penstock.locks.claiming import Ref
from penstock.locks.commands.claims import Claimed, HeartbeatClaim, ReleaseClaim
from penstock.lots.manifest_files import put_manifest
from penstock.lots.manifests import Check, DatasetRef, Manifest, ManifestNote, PartLine
from penstock.objects import Objects
from penstock.states import ArcState, ManifestState, RunState
from penstock.store.write_queue import Command, WriteQueue
from penstock.telemetry import logs, tracing

log = logging.getLogger(__name__)


class Lost(Exception):
    """The claim is, or may be, somebody else's by now."""


class Made(NamedTuple):
    """What a lot consists of now, and what was said about it, by output."""

    notes: NamedNotes
    checks: NamedChecks = ()


class Failed(Exception):
    """The workload ended badly."""


class Given(Exception):
    """The claim is given back untouched."""


class Loss(str):
    """What is known of the end of a process or machine that was lost with its task."""


def result_of(future: "Future[TaskResult]") -> TaskResult | Loss:
    """What a task came to, if whoever ran it was not lost."""
    try:
        return future.result()
    except CancelledError:
        # Nobody here cancels what he still waits for: a cluster has lost its scheduler.
        raise Away("the scheduler of the cluster was lost, and what it had to do") from None
    except Exception as error:
        log.warning("a worker was lost: %s: %s", type(error).__name__, error)
        return Loss(f"{type(error).__name__}: {error}")
    except BaseException as error:  # the workload's own, such as a KeyboardInterrupt
        return TaskResult(error=plain(f"{type(error).__name__}: {error}"))


def part_state(result: TaskResult) -> PartState:
    """The state of a part that was done."""
    empty = all(noted.state is ManifestState.EMPTY for _, noted in result.notes)
    return PartState.EMPTY if empty else PartState.COMPLETE


def rolled_up(states: set[ManifestState]) -> ManifestState:
    """The state of a lot whose parts have these."""
    for state in (ManifestState.PARTIAL, ManifestState.COMPLETE):
        if state in states:
            return state
    return ManifestState.EMPTY


def line_of(part: str, noted: ManifestNote) -> PartLine:
    """A part in the manifest of its lot."""
    return PartLine(part, noted.key, noted.state, noted.uris, noted.bytes)


T = TypeVar("T")

LOST_TRIES_MAX = 3  # how often a task is given to another worker when one was lost
_LOST = f"{LOST_TRIES_MAX} workers were lost with it, one after the other"
_LOOK_SECONDS = 0.2
_AGAIN_SECONDS = 1.0  # after which a database that was away is asked again


@dataclass
class LotRun:
    """A claim, and the tasks that it takes."""

    arc: Arc
    job_id: str
    claim: Claimed
    catalog: WriteQueue
    objects: Objects
    executor: TaskExecutor
    clock: Clock
    stop: Callable[[], bool]
    outage: Outage
    database: str | None = None  # where tasks on other machines can keep the lease
    rules: CommandRules = DEFAULT_RULES
    lost: threading.Event = field(default_factory=threading.Event)
    is_settled: bool = False  # whether the keys of the lot follow the database

    @property
    def ref(self) -> Ref:
        """The claim as the writer knows it."""
        return Ref(self.claim.id, self.claim.token)

    def run(self) -> bool:
        """Bring the lot to its end; False if it was not published."""
        with logs.about(**self._ids), tracing.span("arc.claim", **self._ids):
            log.info("lot %s is claimed, try %d", self.claim.lot, self.claim.attempt)
            return self._run()

    def _run(self) -> bool:
        keys = StateKeys(self.objects, self.arc)
        try:
            keys.begin(self.claim.lot, is_first=self._is_first)
            self._note_what_others_left()
            inputs = self._inputs()
            if self._may_skip(inputs):
                made = Made(self._emptied())
            elif self.arc.parts is not None:
                made = self._run_parts(inputs)
            else:
                made = self._run_whole(inputs)
            with tracing.span("arc.publish", lot=self.claim.lot):
                self._publish(made)
        except Lost as lost:
            log.info("lot %s of %s: %s", self.claim.lot, self.arc.name, lost)
            tracing.fail(str(lost))
            return False
        except Given as reason:
            return self._give_back(str(reason))
        except Away as outage:
            return self._give_back(plain(str(outage)), self.outage.meet())
        except (Failed, PenstockError) as failure:
            return self._fail(plain(str(failure)), keys)
        except Exception as error:
            log.exception("lot %s of %s", self.claim.lot, self.arc.name)
            return self._fail(plain(f"{type(error).__name__}: {error}"), keys)
        states = ", ".join(sorted({noted.state for _, noted in made.notes}))
        log.info("lot %s of %s is published: %s", self.claim.lot, self.arc.name, states)
        self._after_publishing(keys, made.notes)
        return True

    @property
    def _ids(self) -> dict[str, str]:
        """What is said of it in log lines and spans."""
        return {
            "lot": self.claim.lot,
            "run": self.claim.id,
            "job": f"{self.arc.namespace}/{self.arc.name}",
            "arc": self.arc.name,
            "dataset": ",".join(f"{ref.namespace}/{ref.name}" for ref in self._refs),
        }

    @property
    def unsettled(self) -> UnsettledRow:
        """What the database notes until the keys of the lot follow it."""
        return UnsettledRow(self.job_id, self.claim.lot, self.claim.id)

    def keep(self) -> None:
        """Say that the work goes on."""
        try:
            self.catalog.submit(HeartbeatClaim(self.ref)).result()
        except (Conflict, NotFound):
            self.lost.set()

    def _write(self, command: Command[T]) -> T:
        """Write in the name of the claim, if it still holds; Away while it cannot be written."""
        try:
            return self.catalog.submit(command).result()
        except (Conflict, NotFound) as refusal:
            raise Lost(str(refusal)) from None
        except (Busy, Unavailable) as trouble:
            raise Away(str(trouble)) from None

    def _settle(self, command: Command[T]) -> T:
        """Write how it, or a part, ends; what was done is kept while the database is away."""
        trouble = logs.Trouble(log, f"lot {self.claim.lot} of {self.arc.name} waits")
        while True:
            try:
                return self._write(command)
            except Away as error:
                if self.stop():
                    raise
                trouble.met(error)
                if self.lost.wait(_AGAIN_SECONDS):
                    raise Lost("its lease was lost while the database was away") from None

    def _publish(self, made: Made) -> None:
        try:
            self._settle(PublishLot(self.ref, made.notes, made.checks))
        except Lost:
            # The database may have gone after it had published, and before it said so.
            if not self._is_published():
                raise

    def _is_published(self) -> bool:
        with self.catalog.read() as tx:
            states = tx.fetch("run_states", ids=[self.claim.id])
        return [state for _, state in states] == [RunState.COMPLETED]

    def _inputs(self) -> tuple[InputLot, ...]:
        return input_lots(self.catalog, self.claim, self.objects)

    def _may_skip(self, inputs: Sequence[InputLot]) -> bool:
        """Whether every input that the arc subscribes to is empty, and it does not care."""
        if self.arc.on_empty is not OnEmpty.SKIP:
            return False
        pairs = zip(self.arc.inputs, inputs, strict=True)
        return all(lot.state is ManifestState.EMPTY for said, lot in pairs if said.subscribe)

    @property
    def _is_first(self) -> bool:
        """Whether nobody has ever worked on the lot for this arc before."""
        return self.claim.attempt == 1 and self.claim.token == 1

    @property
    def _refs(self) -> tuple[DatasetRef, ...]:
        return output_refs(self.arc)

    @property
    def _may_be_empty(self) -> tuple[DatasetRef, ...]:
        pairs = zip(self._refs, self.arc.outputs, strict=True)
        return tuple(ref for ref, output in pairs if output.empty is EmptyOutput.ALLOW)

    def _emptied(self) -> NamedNotes:
        return tuple(put_manifest(self.objects, self._manifest(ref)) for ref in self._refs)

    def _manifest(self, ref: DatasetRef, parts: tuple[PartLine, ...] = ()) -> Manifest:
        return Manifest(
            state=rolled_up({part.state for part in parts}),
            lot=self.claim.lot,
            dataset=ref,
            parts=parts,
            attempt=self.claim.id,
            created=format_time(self.clock()),
        )

    def _run_whole(self, inputs: tuple[InputLot, ...]) -> Made:
        [result] = self._results({"": self._task("", self.claim.id, inputs)}).values()
        if result.error:
            raise Away(result.error) if result.is_away else Failed(result.error)
        return Made(result.notes, result.checks)

    def _run_parts(self, inputs: tuple[InputLot, ...]) -> Made:
        """Run the parts that no earlier attempt has done, then list all of them."""
        assert self.arc.parts is not None, "the lot is split"
        planned = split(self.arc.parts, inputs)
        if not planned:
            # Nothing is listed: it is all empty, or there is no manifest. That is not ours to tell.
            return self._run_whole(inputs)
        wanted = {name: made_of(members, self._refs) for name, members in planned.items()}
        with self.catalog.read() as tx:
            known = parts_of(tx, self.job_id, self.claim.lot)
        done = {name: row for name, row in known.items() if row.is_good_for(wanted.get(name, ""))}
        missing = {name: text for name, text in wanted.items() if name not in done}
        runs = self._write(BeginParts(self.ref, missing)) if missing else {}
        tasks = {name: self._task(name, runs[name], planned[name]) for name in missing}
        results = self._results(tasks, self.arc.parts.running_max)
        failed = {name: result for name, result in results.items() if result.error}
        if failed:
            if all(result.is_away for result in failed.values()):
                raise Away(next(iter(failed.values())).error)
            name, first = next((n, r) for n, r in failed.items() if not r.is_away)
            total = f"{len(failed)} of {len(planned)} parts failed"
            raise Failed(f"{total}; part {name}: {first.error}")
        return Made(self._root_manifests(done, results), self._said(done, results))

    def _root_manifests(
        self, done: Mapping[str, PartRow], results: Mapping[str, TaskResult]
    ) -> NamedNotes:
        """For each output, one manifest that lists the manifests of its parts."""
        lines: dict[DatasetName, dict[str, PartLine]] = {name: {} for name in self.arc.output_names}
        for part, row in done.items():
            for name, noted in row.named_notes:
                lines[name][part] = line_of(part, noted)
        for part, result in results.items():
            for name, noted in result.notes:
                lines[name][part] = line_of(part, noted)
        roots = (
            self._manifest(ref, tuple(parts[part] for part in sorted(parts)))
            for ref, parts in zip(self._refs, lines.values(), strict=True)
        )
        return tuple(put_manifest(self.objects, root) for root in roots)

    def _said(self, done: Mapping[str, PartRow], results: Mapping[str, TaskResult]) -> NamedChecks:
        """What was said about each part, by those that were done before too."""
        said: dict[DatasetName, list[Check]] = {}
        for row in done.values():
            for name, noted in row.named_notes:
                said.setdefault(name, []).extend(read_manifest(self.objects, noted.key).checks)
        for result in results.values():
            for name, checks in result.checks:
                said.setdefault(name, []).extend(checks)
        return tuple((name, tuple(checks)) for name, checks in said.items() if checks)

    def _task(self, part: str, run_id: str, inputs: tuple[InputLot, ...]) -> Task:
        return Task(
            arc=self.arc.name,
            namespace=self.arc.namespace,
            lot=self.claim.lot,
            part=part,
            attempt=self.claim.id,
            run_id=run_id,
            workload=self.arc.workload,
            inputs=inputs,
            outputs=self._refs,
            may_be_empty=self._may_be_empty,
            checks=self.arc.checks,
            objects=self.objects.url,
            is_marked=self.objects.is_marked,
            lease=self._lease,
            rules=self.rules,
            trace=tracing.header(),
        )

    @property
    def _lease(self) -> Lease | None:
        if self.database is None:
            return None
        return Lease(self.database, self.ref, self.claim.lease_seconds)

    def _results(self, tasks: Mapping[str, Task], at_once: int = 1) -> dict[str, TaskResult]:
        """Have tasks run, so many at a time, and note what becomes of each part."""
        running: dict[Future[TaskResult], Task] = {}
        try:
            return self._run_all(deque(tasks.values()), running, at_once)
        except Lost:
            self._abandon(running)
            raise

    def _run_all(
        self, left: deque[Task], running: dict[Future[TaskResult], Task], at_once: int
    ) -> dict[str, TaskResult]:
        results: dict[str, TaskResult] = {}
        run = run_apart if self.executor.repeats_tasks else run_task
        while left or running:
            while left and len(running) < at_once and not self.stop():
                task = left.popleft()
                running[self.executor.submit(run, task)] = task
            ended, _ = wait(running, timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
            for future in ended:
                task = running.pop(future)
                result = result_of(future)
                if isinstance(result, Loss) and task.tries < LOST_TRIES_MAX:
                    left.append(again(task))
                    continue
                if isinstance(result, Loss):
                    result = TaskResult(error=plain(f"{_LOST}; of the last is known: {result}"))
                results[task.part] = result
                if task.part:
                    self._end_part(task.part, results[task.part])
            if self.lost.is_set():
                raise Lost("its lease was lost")
            self.executor.check()
            if self.stop():
                left += self._not_begun(running)
                if left and not running:
                    raise Given("the engine is stopping")
        return results

    def _abandon(self, running: Iterable[Future[TaskResult]]) -> None:
        """End the running tasks: another worker may have claimed the lot."""
        for future in running:
            self.executor.abandon(future)

    def _not_begun(self, running: dict[Future[TaskResult], Task]) -> list[Task]:
        """Take back the tasks that have not begun."""
        return [running.pop(future) for future in list(running) if self.executor.take_back(future)]

    def _end_part(self, name: str, result: TaskResult) -> None:
        state = PartState.FAILED if result.error else part_state(result)
        self._settle(EndPart(self.ref, name, state, result.notes, result.error))

    def _fail(self, error: str, keys: StateKeys) -> bool:
        log.warning("lot %s of %s failed: %s", self.claim.lot, self.arc.name, error)
        tracing.fail(error)
        try:
            after = self._settle(FailLot(self.ref, error, self._listed(error)))
            keys.show(self.claim.lot, ArcState.PARTIAL)
            self.is_settled = True
            log.info("lot %s of %s is %s", self.claim.lot, self.arc.name, after.state)
        except (Lost, PenstockError) as refusal:
            log.info("lot %s of %s: %s", self.claim.lot, self.arc.name, refusal)
        return False

    def _listed(self, error: str) -> tuple[str, ...]:
        """List what is left behind; the failure is told even if the store cannot take the list."""
        try:
            return write_partial(self.objects, self._refs, self.claim.lot, self.claim.id, error)
        except Exception as refusal:
            name = self.arc.name
            log.warning("lot %s of %s left what is not listed: %s", self.claim.lot, name, refusal)
            return ()

    def _give_back(self, why: str, rest_seconds: int = 0) -> bool:
        """Let it be claimed again; with a rest, because something is away."""
        level = logging.WARNING if rest_seconds else logging.INFO
        log.log(level, "lot %s of %s is given back: %s", self.claim.lot, self.arc.name, why)
        away = why if rest_seconds else ""
        try:
            self._settle(ReleaseClaim(self.ref, away, rest_seconds))
        except (Lost, PenstockError) as refusal:
            log.info("lot %s of %s: %s", self.claim.lot, self.arc.name, refusal)
        return False

    def _note_what_others_left(self) -> None:
        """Earlier attempts whose engine died left data that nobody has listed."""
        if self._is_first:
            return
        note_the_dead(self.catalog, self.objects, self._refs, self.job_id, self.claim.lot)

    def _after_publishing(self, keys: StateKeys, notes: NamedNotes) -> None:
        """What follows a commit; an engine repairs it if it was cut off."""
        try:
            is_gated = any(noted.state is ManifestState.PARTIAL for _, noted in notes)
            keys.show(self.claim.lot, ArcState.PARTIAL if is_gated else ArcState.COMPLETE)
            keys.show_manifests(self.claim.lot, self._refs, [noted for _, noted in notes])
            mine = (self.claim.id,)
            clean(self.catalog, self.objects, self._refs, self.job_id, self.claim.lot, mine)
            self.is_settled = True
        except PenstockError as error:
            log.warning("lot %s of %s is published, but %s", self.claim.lot, self.arc.name, error)
