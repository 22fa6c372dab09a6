"""`penstock ingest watch`: the progress of a batch, with bytes, rate and time left."""

import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, NamedTuple, Protocol

from cyclopts import App, Parameter
from msgspec import Struct
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli import exit_codes
from penstock.cli.formats import show_bytes, show_duration
from penstock.cli.ingest.targets import Kind, read_target
from penstock.cli.options import OPTIONS, Options
from penstock.cli.output import STATE_STYLES, out, plain, write_json_line
from penstock.client import ApiError, Client, Unreachable
from penstock.errors import Invalid
from penstock.schema.ingest import ShownBatch, ShownIngestJob
from penstock.states import INGEST_STAGES

# The states of open ingest jobs, in the order of the work.
STAGES = tuple(map(str, INGEST_STAGES))
ENDS = ("completed", "failed")
HELD = "held"
_FETCHED = ("processing", "recording", "notify", "completed")
_RATE_SECONDS = 30.0
_BAR_WIDTH = 32


class Count(NamedTuple):
    """The number of jobs in a state, and their bytes."""

    jobs: int = 0
    bytes: int = 0


class Snapshot(NamedTuple):
    """The jobs of a batch at one moment, in seconds."""

    at: float
    counts: Mapping[str, Count]

    def total(self, *states: str) -> Count:
        """Add the jobs in these states."""
        counts = [self.counts.get(state, Count()) for state in states]
        return Count(sum(each.jobs for each in counts), sum(each.bytes for each in counts))

    @property
    def jobs(self) -> int:
        """Every job of the batch."""
        return self.total(*self.counts).jobs

    @property
    def open_jobs(self) -> int:
        """The jobs in a stage."""
        return self.total(*STAGES).jobs

    @property
    def bytes_fetched(self) -> int:
        """The downloaded bytes."""
        return self.total(*_FETCHED).bytes

    @property
    def bytes_total(self) -> int:
        """The known bytes of all jobs that did not fail."""
        return self.total(*self.counts).bytes - self.total("failed").bytes

    def before(self, stage: str) -> int:
        """Count the open jobs that have not finished a stage."""
        return self.total(*STAGES[: STAGES.index(stage) + 1]).jobs

    def after(self, stage: str) -> int:
        """Count the jobs that have finished a stage."""
        return self.total(*STAGES[STAGES.index(stage) + 1 :], *ENDS).jobs


def take_snapshot(batch: ShownBatch, at: float) -> Snapshot:
    """Take a snapshot of a batch."""
    tally = batch.tally or {}
    return Snapshot(at, {state: Count(line.jobs, line.bytes) for state, line in tally.items()})


class Pace(NamedTuple):
    """The progress per second; the time left is None while it is unknown."""

    jobs: float
    bytes: float
    seconds_left: float | None


class PaceMeter:
    """The last snapshots of a batch."""

    def __init__(self) -> None:
        self._snapshots: deque[Snapshot] = deque()

    def add(self, snapshot: Snapshot) -> Pace:
        """Add a snapshot, and return the pace since the oldest one that still counts."""
        self._snapshots.append(snapshot)
        while len(self._snapshots) > 2 and snapshot.at - self._snapshots[1].at >= _RATE_SECONDS:
            self._snapshots.popleft()
        first = self._snapshots[0]
        seconds = snapshot.at - first.at
        if seconds <= 0:
            return Pace(0, 0, None)
        jobs = max(0, snapshot.total(*ENDS).jobs - first.total(*ENDS).jobs)
        left = _seconds_left(first, snapshot, seconds)
        return Pace(
            jobs / seconds, max(0, snapshot.bytes_fetched - first.bytes_fetched) / seconds, left
        )


def _seconds_left(first: Snapshot, last: Snapshot, seconds: float) -> float | None:
    """Estimate the time of the slowest stage, None before it has finished a job."""
    left = 0.0
    for stage in STAGES:
        if before := last.before(stage):
            done = last.after(stage) - first.after(stage)
            if done <= 0:
                return None
            left = max(left, before * seconds / done)
    return left


def status_text(status: str) -> Text:
    """Color the status of a batch or an ingest job."""
    styles = {"completed": "COMPLETED", "failed": "FAILED", HELD: "ABORTED", "pending": "NEW"}
    return Text(status, STATE_STYLES[styles.get(status, "RUNNING")])


def counts_line(snapshot: Snapshot) -> str:
    """Count the jobs by state, in words."""
    states = (*STAGES, HELD, *ENDS)
    parts = [f"{count:,} {state}" for state in states if (count := snapshot.total(state).jobs)]
    return ", ".join(parts) or "no jobs"


def jobs_line(batch: ShownBatch) -> str:
    """Describe the jobs of a batch, with the number of deleted ones."""
    snapshot = take_snapshot(batch, 0)
    deleted = batch.jobs - snapshot.jobs if batch.tally is not None else 0
    present = f"{snapshot.jobs:,}: {counts_line(snapshot)}" if snapshot.jobs else "none"
    return f"{present}; {deleted:,} deleted" if deleted > 0 else present


def bytes_line(snapshot: Snapshot) -> str:
    """Describe the downloaded and the known bytes."""
    return (
        f"{show_bytes(snapshot.bytes_fetched)} of {show_bytes(snapshot.bytes_total)}"
        if snapshot.bytes_total
        else ""
    )


def pace_line(snapshot: Snapshot, pace: Pace) -> str:
    """Describe bytes, rate and time left, as far as they are known."""
    parts = [line] if (line := bytes_line(snapshot)) else []
    if snapshot.open_jobs:
        if pace.bytes:
            parts.append(f"{show_bytes(pace.bytes)}/s")
        if pace.jobs:
            parts.append(f"{pace.jobs:,.1f} jobs/s")
        if pace.seconds_left is not None:
            parts.append(f"about {_show_seconds(pace.seconds_left)} left")
    return ", ".join(parts)


def _show_seconds(seconds: float) -> str:
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 120 else show_duration(whole * 1000)


def draw_progress(
    title: Text, snapshot: Snapshot, pace: Pace, remarks: Sequence[str]
) -> RenderableType:
    """Draw a bar for each stage, the pace, and remarks."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(width=_BAR_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    total = max(1, snapshot.jobs)
    for state in (*STAGES, HELD, *ENDS):
        count = snapshot.total(state).jobs
        if state == HELD and not count:
            continue
        style = status_text(state).style if count else "dim"
        bar = ProgressBar(total, count, _BAR_WIDTH, complete_style=style, finished_style=style)
        table.add_row(Text(state, style), bar, Text(f"{count:,}", style))
    below = pace_line(snapshot, pace)
    return Group(title, table, *([Text(below)] if below else []), *map(Text, remarks))


_LOOKED_AT_MAX = 1_000


def next_steps(client: Client, batch: ShownBatch) -> list[str]:
    """List the commands that can be useful next."""
    snapshot = take_snapshot(batch, 0)
    is_idle = not snapshot.open_jobs
    match batch.status:
        case "completed":
            return []
        case "failed" if is_idle:
            return _after_failure(client, batch, snapshot)
        case "held" | "processing" if is_idle and (
            batch.status == HELD or snapshot.total(HELD).jobs
        ):
            return [f"release it: penstock ingest release {batch.id}"]
    return [f"follow it: penstock ingest watch {batch.id}"]


def _after_failure(client: Client, batch: ShownBatch, snapshot: Snapshot) -> list[str]:
    if not batch.jobs:
        resume = f"when its payload can be read: penstock ingest resume {batch.id}"
        return [resume, "or correct the payload and submit it again"]
    if not snapshot.total("failed").jobs:
        return [f"report it again: penstock ingest update-report {batch.id}"]
    steps = [f"show the failures: penstock ingest report {batch.id}"]
    failed = client.batch_jobs(batch.id, status="failed", limit=_LOOKED_AT_MAX).jobs
    if len(failed) == _LOOKED_AT_MAX or any(job.resumes_at for job in failed):
        return [*steps, f"resume it: penstock ingest resume {batch.id}"]
    return [*steps, "its jobs cannot be resumed: correct the payload and submit it again"]


def list_stops(client: Client, batch: ShownBatch) -> list[str]:
    """Describe the holds of the queue and of the batch's collection."""
    queue = client.queue()
    stops = []
    if held := queue.held:
        command = "release it: penstock ingest release queue"
        stops.append(f"the queue is held by {held.who}: {held.why}; {command}")
    for each in queue.collections_held:
        if each.name == batch.collection:
            command = f"release it: penstock ingest release collection {each.name}"
            stops.append(f"collection {each.name} is held by {each.who}: {each.why}; {command}")
    return stops


app = App(
    name="watch",
    help_epilogue="""Examples:
  penstock ingest watch bid0000000001
  penstock ingest watch bid0000000001 --json | jq .secondsLeft

On a terminal it draws bars, elsewhere it writes a line for each change. With
--json each line is a JSON document. It ends when the batch is completed, failed,
held or deleted. The exit code is 0 if the batch is completed, else 1.""",
)

_FAILURES_MAX = 20
_STUCK_SECONDS = 10.0
_NOT_FOUND = 404
_TRANSIENT = (429, 502, 503, 504)


class Progress(Struct, frozen=True, rename="camel"):
    """The progress of a batch; `failures` are the jobs that failed since the document before."""

    batch: ShownBatch
    bytes_fetched: int
    bytes_wanted: int
    bytes_per_second: float
    jobs_per_second: float
    seconds_left: float | None
    failures: Sequence[ShownIngestJob]


class View(Protocol):
    """A view of the progress of a batch."""

    def show(
        self, batch: ShownBatch, snapshot: Snapshot, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None: ...

    def remark(self, text: str) -> None: ...


@app.default
def watch(
    batch: Annotated[str, Parameter(help="the batch")],
    /,
    *,
    interval: Annotated[float, Parameter(help="seconds between updates")] = 1.0,
    options: Options = OPTIONS,
) -> int:
    """Follow a batch to its end: jobs by stage, bytes, rate, time left, failures."""
    if not interval > 0:
        raise Invalid(f"--interval is {interval}; write a number of seconds above 0")
    name = read_target(("batch", batch), (Kind.BATCH,)).name
    with options.connect() as client:
        if options.json:
            ended = follow(client, name, _JsonView(), interval)
        else:
            ended = follow_on(out(), client, name, interval)
    is_completed = ended is not None and ended.status == "completed"
    return exit_codes.DONE if is_completed else exit_codes.FAILED


def follow_on(
    console: Console, client: Client, batch_id: str, interval: float
) -> ShownBatch | None:
    """Follow a batch on a console, and describe its end."""
    with _view(console) as view:
        ended = follow(client, batch_id, view, interval)
    for line in _ending(client, batch_id, ended):
        _print(console, line)
    return ended


def follow(client: Client, batch_id: str, view: View, interval: float) -> ShownBatch | None:
    """Follow a batch to its end; return it, or None if it was deleted."""
    poller = _Poller(client, batch_id, view)
    while True:
        try:
            batch = poller.poll()
        except ApiError as error:
            if error.code == _NOT_FOUND and poller.meter is not None:
                return None
            if error.code not in _TRANSIENT or poller.meter is None:
                raise
            view.remark(f"{error}; trying again")
        except Unreachable as error:
            if poller.meter is None:
                raise
            view.remark(f"{error}; trying again")
        else:
            if batch is not None:
                return batch
        time.sleep(interval)


class _Poller:
    """A loop that polls a batch and remembers what it has shown."""

    def __init__(self, client: Client, batch_id: str, view: View) -> None:
        self._client = client
        self._id = batch_id
        self._view = view
        self._shown: set[tuple[str, str]] = set()
        self._failed = 0
        self._state: tuple[str, object] = ("", None)
        self._changed_at = 0.0
        self.meter: PaceMeter | None = None

    def poll(self) -> ShownBatch | None:
        """Fetch and show the batch; return it if it has ended."""
        batch = self._client.batch(self._id)
        snapshot = take_snapshot(batch, time.monotonic())
        is_first = self.meter is None
        self.meter = self.meter or PaceMeter()
        pace = self.meter.add(snapshot)
        self._view.show(batch, snapshot, pace, self._failures(snapshot))
        if is_over(batch, snapshot):
            return batch
        if is_first and (stops := list_stops(self._client, batch)):
            self._view.remark("; ".join(stops))
        if (state := (batch.status, batch.tally)) != self._state:
            self._state, self._changed_at = state, snapshot.at
        elif snapshot.at - self._changed_at >= _STUCK_SECONDS:
            self._changed_at = snapshot.at
            if remark := self._why_stuck(batch, snapshot):
                self._view.remark(remark)
        return None

    def _failures(self, snapshot: Snapshot) -> Sequence[ShownIngestJob]:
        """List the jobs that failed since the last poll, up to a limit."""
        failed = snapshot.total("failed").jobs
        if failed == self._failed or len(self._shown) >= _FAILURES_MAX:
            return ()
        self._failed = failed
        jobs = self._client.batch_jobs(self._id, status="failed").jobs
        new = [job for job in jobs if (job.id, job.last_modified) not in self._shown]
        new = new[: _FAILURES_MAX - len(self._shown)]
        self._shown |= {(job.id, job.last_modified) for job in new}
        return new

    def _why_stuck(self, batch: ShownBatch, snapshot: Snapshot) -> str:
        if stops := list_stops(self._client, batch):
            return "; ".join(stops)
        if batch.locked_by or any(self._is_locked(state) for state in snapshot.counts):
            return ""
        if snapshot.open_jobs and snapshot.total("provisioning").jobs == snapshot.open_jobs:
            return "its jobs wait for space in the ingest folder; free some space"
        return "no worker processes it; start one with: penstock ingest start"

    def _is_locked(self, state: str) -> bool:
        if state in ("completed", "failed", HELD):
            return False
        return any(job.locked_by for job in self._client.batch_jobs(self._id, status=state).jobs)


def is_over(batch: ShownBatch, snapshot: Snapshot) -> bool:
    """Test whether a batch has ended or needs a person."""
    match batch.status:
        case "completed" | "held":
            return True
        case "failed":
            return not snapshot.open_jobs
        case "processing":
            return bool(snapshot.total(HELD).jobs) and not snapshot.open_jobs
    return False


def _ending(client: Client, batch_id: str, batch: ShownBatch | None) -> Iterator[str]:
    if batch is None:
        yield f"batch {batch_id} is deleted"
        return
    snapshot = take_snapshot(batch, 0.0)
    why = f": {batch.message}" if batch.message else ""
    verb = "has" if batch.status == "failed" else "is"
    counts = counts_line(snapshot)
    yield f"batch {batch.id} of {batch.collection} {verb} {batch.status}{why}; {counts}"
    if batch.status != "completed":
        yield from list_stops(client, batch)
    yield from next_steps(client, batch)


@contextmanager
def _view(console: Console) -> Iterator[View]:
    if not console.is_terminal:
        yield _LineView(console)
        return
    with Live(console=console, auto_refresh=False) as live:
        yield _BarView(live)


class _BarView:
    """Live bars on a terminal."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._state: tuple[str, object] = ("", None)
        self._remarks: tuple[str, ...] = ()

    def show(
        self, batch: ShownBatch, snapshot: Snapshot, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        for job in failures:
            _print(self._live.console, _failure(job))
        if (state := (batch.status, snapshot.counts)) != self._state:
            self._state, self._remarks = state, ()
        title = Text.assemble(
            f"batch {batch.id} of {batch.collection}: ", status_text(batch.status)
        )
        self._live.update(draw_progress(title, snapshot, pace, self._remarks), refresh=True)

    def remark(self, text: str) -> None:
        self._remarks = (plain(text),)


class _LineView:
    """A line for each change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""

    def show(
        self, batch: ShownBatch, snapshot: Snapshot, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        for job in failures:
            _print(self._console, _failure(job))
        line = f"{batch.id} {batch.status}: {counts_line(snapshot)}"
        if line != self._last:
            self._last = line
            rest = pace_line(snapshot, pace)
            _print(self._console, f"{line}; {rest}" if rest else line)

    def remark(self, text: str) -> None:
        _print(self._console, text)


class _JsonView:
    """A line of JSON for each change."""

    def __init__(self) -> None:
        self._last: ShownBatch | None = None

    def show(
        self, batch: ShownBatch, snapshot: Snapshot, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        if batch == self._last and not failures:
            return
        self._last = batch
        progress = Progress(
            batch,
            snapshot.bytes_fetched,
            snapshot.bytes_total,
            pace.bytes,
            pace.jobs,
            pace.seconds_left,
            failures,
        )
        write_json_line(progress)
        sys.stdout.flush()

    def remark(self, text: str) -> None:
        """Ignore a remark: the documents show the same facts."""


class NullView:
    """A view that shows nothing."""

    def show(
        self, batch: ShownBatch, snapshot: Snapshot, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        """Show nothing."""

    def remark(self, text: str) -> None:
        """Show nothing."""


def _failure(job: ShownIngestJob) -> str:
    return f"{job.id} {job.payload_name} has failed: {job.message}"


def _print(console: Console, text: str) -> None:
    console.print(plain(text), soft_wrap=True)
