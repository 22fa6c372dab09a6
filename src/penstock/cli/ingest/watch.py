"""How far a batch is: jobs by stage, bytes, rate and time left, from one look to the next."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, NamedTuple, Protocol

import msgspec
from cyclopts import App, Parameter
from msgspec import Struct
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli import exit_codes
from penstock.cli.ingest.targets import Kind, read_target
from penstock.cli.options import REMOTE, Json, RemoteFlags
from penstock.cli.output import STATE_STYLES, out, plain
from penstock.cli.times import show_duration
from penstock.client import ApiError, Client, Unreachable
from penstock.errors import Invalid
from penstock.schema.ingest import ShownBatch, ShownIngestJob
from penstock.states import INGEST_STAGES

STAGES = tuple(map(str, INGEST_STAGES))
ENDS = ("completed", "failed")
HELD = "held"
_FETCHED = ("processing", "recording", "notify", "completed")
_RATE_SECONDS = 30.0
_BAR_WIDTH = 32
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


class Count(NamedTuple):
    """How many jobs are in a state, and the bytes they need."""

    jobs: int = 0
    bytes: int = 0


class Look(NamedTuple):
    """What was seen at one moment, in seconds."""

    at: float
    counts: Mapping[str, Count]

    def of(self, *states: str) -> Count:
        """All jobs in these states together."""
        found = [self.counts.get(state, Count()) for state in states]
        return Count(sum(each.jobs for each in found), sum(each.bytes for each in found))

    @property
    def jobs(self) -> int:
        """Every job of the batch."""
        return self.of(*self.counts).jobs

    @property
    def under_way(self) -> int:
        """The jobs that go on by themselves."""
        return self.of(*STAGES).jobs

    @property
    def fetched(self) -> int:
        """The bytes that are here."""
        return self.of(*_FETCHED).bytes

    @property
    def wanted(self) -> int:
        """The bytes that there are, as far as they are known; what failed does not count."""
        return self.of(*self.counts).bytes - self.of("failed").bytes

    def before(self, stage: str) -> int:
        """The jobs that are under way and have a stage before them."""
        return self.of(*STAGES[: STAGES.index(stage) + 1]).jobs

    def behind(self, stage: str) -> int:
        """The jobs that have a stage behind them."""
        return self.of(*STAGES[STAGES.index(stage) + 1 :], *ENDS).jobs


def look_at(batch: ShownBatch, at: float) -> Look:
    """A batch as the server shows it, at a moment in seconds."""
    tally = batch.tally or {}
    return Look(at, {state: Count(line.jobs, line.bytes) for state, line in tally.items()})


class Pace(NamedTuple):
    """How fast it goes, by the second; None: that cannot be told yet."""

    jobs: float
    bytes: float
    seconds_left: float | None


class Course:
    """The last looks at a batch."""

    def __init__(self) -> None:
        self._looks: deque[Look] = deque()

    def add(self, look: Look) -> Pace:
        """Take one more look; gives the pace since the oldest that still counts."""
        self._looks.append(look)
        while len(self._looks) > 2 and look.at - self._looks[1].at >= _RATE_SECONDS:
            self._looks.popleft()
        first = self._looks[0]
        seconds = look.at - first.at
        if seconds <= 0:
            return Pace(0, 0, None)
        jobs = max(0, look.of(*ENDS).jobs - first.of(*ENDS).jobs)
        left = _seconds_left(first, look, seconds)
        return Pace(jobs / seconds, max(0, look.fetched - first.fetched) / seconds, left)


def _seconds_left(first: Look, last: Look, seconds: float) -> float | None:
    """How long the slowest stage has to do; None as long as nothing has come out of it."""
    left = 0.0
    for stage in STAGES:
        if before := last.before(stage):
            done = last.behind(stage) - first.behind(stage)
            if done <= 0:
                return None
            left = max(left, before * seconds / done)
    return left


def show_bytes(size: float) -> str:
    """A number of bytes in the unit that fits."""
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"


def status_text(status: str) -> Text:
    """The status of a batch or an ingest job in its colour."""
    styles = {"completed": "COMPLETED", "failed": "FAILED", HELD: "ABORTED", "pending": "NEW"}
    return Text(status, STATE_STYLES[styles.get(status, "RUNNING")])


def counts_line(look: Look) -> str:
    """Jobs by state in words."""
    states = (*STAGES, HELD, *ENDS)
    told = [f"{count:,} {state}" for state in states if (count := look.of(state).jobs)]
    return ", ".join(told) or "no jobs"


def jobs_line(batch: ShownBatch) -> str:
    """How many jobs a batch has, and those that were deleted."""
    look = look_at(batch, 0)
    deleted = batch.jobs - look.jobs if batch.tally is not None else 0
    there = f"{look.jobs:,}: {counts_line(look)}" if look.jobs else "none"
    return f"{there}; {deleted:,} deleted" if deleted > 0 else there


def bytes_line(look: Look) -> str:
    """The bytes that are here, and those that there are as far as they are known."""
    return f"{show_bytes(look.fetched)} of {show_bytes(look.wanted)}" if look.wanted else ""


def pace_line(look: Look, pace: Pace) -> str:
    """Bytes, rate and time left in words; what is not known is left out."""
    told = [line] if (line := bytes_line(look)) else []
    if look.under_way:
        if pace.bytes:
            told.append(f"{show_bytes(pace.bytes)}/s")
        if pace.jobs:
            told.append(f"{pace.jobs:,.1f} jobs/s")
        if pace.seconds_left is not None:
            told.append(f"about {_show_seconds(pace.seconds_left)} left")
    return ", ".join(told)


def _show_seconds(seconds: float) -> str:
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 120 else show_duration(whole * 1000)


def drawn(title: Text, look: Look, pace: Pace, remarks: Sequence[str]) -> RenderableType:
    """The live view: a bar for each stage, and the line below."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(width=_BAR_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    total = max(1, look.jobs)
    for state in (*STAGES, HELD, *ENDS):
        count = look.of(state).jobs
        if state == HELD and not count:
            continue
        style = status_text(state).style if count else "dim"
        bar = ProgressBar(total, count, _BAR_WIDTH, complete_style=style, finished_style=style)
        table.add_row(Text(state, style), bar, Text(f"{count:,}", style))
    below = pace_line(look, pace)
    return Group(title, table, *([Text(below)] if below else []), *map(Text, remarks))


_LOOKED_AT_MAX = 1_000


def ways_on(client: Client, batch: ShownBatch) -> list[str]:
    """What to do next; nothing, if there is nothing to be done."""
    look = look_at(batch, 0)
    is_at_rest = not look.under_way
    match batch.status:
        case "completed":
            return []
        case "failed" if is_at_rest:
            return _after_failure(client, batch, look)
        case "held" | "processing" if is_at_rest and (batch.status == HELD or look.of(HELD).jobs):
            return [f"to let it go on: penstock ingest release {batch.id}"]
    return [f"follow it with: penstock ingest watch {batch.id}"]


def _after_failure(client: Client, batch: ShownBatch, look: Look) -> list[str]:
    if not batch.jobs:
        again = f"once its payload can be read: penstock ingest resume {batch.id}"
        return [again, "or correct the payload and submit it again"]
    if not look.of("failed").jobs:
        return [f"to have it reported as it stands: penstock ingest update-report {batch.id}"]
    ways = [f"what failed, and why: penstock ingest report {batch.id}"]
    failed = client.batch_jobs(batch.id, status="failed", limit=_LOOKED_AT_MAX).jobs
    if len(failed) == _LOOKED_AT_MAX or any(job.resumes_at for job in failed):
        return [*ways, f"to let it go on: penstock ingest resume {batch.id}"]
    return [*ways, "no job of it can be resumed: correct the payload and submit it again"]


def stops(client: Client, batch: ShownBatch) -> list[str]:
    """Who holds the queue, or the batch's collection."""
    queue = client.queue()
    told = []
    if held := queue.held:
        way = "it goes on with: penstock ingest release queue"
        told.append(f"the queue is held by {held.who}: {held.why}; {way}")
    for each in queue.collections_held:
        if each.name == batch.collection:
            way = f"it goes on with: penstock ingest release collection {each.name}"
            told.append(f"collection {each.name} is held by {each.who}: {each.why}; {way}")
    return told


app = App(
    name="watch",
    help_epilogue="""Examples:
  penstock ingest watch bid0000000001
  penstock ingest watch bid0000000001 --json | jq .secondsLeft

On a terminal it draws; elsewhere it writes a line when something has changed,
and with --json a JSON document to a line. It ends when the batch is completed,
failed, held or deleted; the exit code is 0 if it is completed and 1 if not.""",
)

_FAILURES_MAX = 20
_STILL_SECONDS = 10.0
_NOT_FOUND = 404
_PASSING = (429, 502, 503, 504)


class Seen(Struct, frozen=True, rename="camel"):
    """One look at a batch; `failures` are the jobs that have failed since the look before."""

    batch: ShownBatch
    bytes_fetched: int
    bytes_wanted: int
    bytes_per_second: float
    jobs_per_second: float
    seconds_left: float | None
    failures: Sequence[ShownIngestJob]


class View(Protocol):
    """Where somebody sees how a batch goes on."""

    def show(
        self, batch: ShownBatch, look: Look, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None: ...

    def remark(self, text: str) -> None: ...


@app.default
def watch(
    batch: Annotated[str, Parameter(help="the batch")],
    /,
    *,
    interval: Annotated[float, Parameter(help="seconds from one look to the next")] = 1.0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> int:
    """Follow a batch to its end: jobs by stage, bytes, rate, time left, failures."""
    if not interval > 0:
        raise Invalid(f"--interval {interval} is too short; write a number of seconds above 0")
    name = read_target(("batch", batch), (Kind.BATCH,)).name
    with remote.connect() as client:
        if as_json:
            ended = follow(client, name, _Documents(), interval)
        else:
            ended = follow_on(out(), client, name, interval)
    return (
        exit_codes.DONE if ended is not None and ended.status == "completed" else exit_codes.FAILED
    )


def follow_on(
    console: Console, client: Client, batch_id: str, interval: float
) -> ShownBatch | None:
    """Follow a batch where people see it, and say how it ended."""
    with _view(console) as view:
        ended = follow(client, batch_id, view, interval)
    for line in _ending(client, batch_id, ended):
        _print(console, line)
    return ended


def follow(client: Client, batch_id: str, view: View, interval: float) -> ShownBatch | None:
    """Look at a batch until it has ended; gives it as it is then, None if it was deleted."""
    looks = _Looks(client, batch_id, view)
    while True:
        try:
            batch = looks.take()
        except ApiError as error:
            if error.code == _NOT_FOUND and looks.course is not None:
                return None
            if error.code not in _PASSING or looks.course is None:
                raise
            view.remark(f"{error}; trying again")
        except Unreachable as error:
            if looks.course is None:
                raise
            view.remark(f"{error}; trying again")
        else:
            if batch is not None:
                return batch
        time.sleep(interval)


class _Looks:
    """One look after the other, and what was told already."""

    def __init__(self, client: Client, batch_id: str, view: View) -> None:
        self._client = client
        self._id = batch_id
        self._view = view
        self._told: set[tuple[str, str]] = set()
        self._failed = 0
        self._moved: tuple[str, object] = ("", None)
        self._moved_at = 0.0
        self.course: Course | None = None

    def take(self) -> ShownBatch | None:
        """Look once, and show it; gives the batch if it has ended."""
        batch = self._client.batch(self._id)
        look = look_at(batch, time.monotonic())
        is_first = self.course is None
        self.course = self.course or Course()
        pace = self.course.add(look)
        self._view.show(batch, look, pace, self._failures(look))
        if is_over(batch, look):
            return batch
        if is_first and (told := stops(self._client, batch)):
            self._view.remark("; ".join(told))
        if (moved := (batch.status, batch.tally)) != self._moved:
            self._moved, self._moved_at = moved, look.at
        elif look.at - self._moved_at >= _STILL_SECONDS:
            self._moved_at = look.at
            if remark := self._why_still(batch, look):
                self._view.remark(remark)
        return None

    def _failures(self, look: Look) -> Sequence[ShownIngestJob]:
        """Those that have failed since; of very many only the first are told."""
        failed = look.of("failed").jobs
        if failed == self._failed or len(self._told) >= _FAILURES_MAX:
            return ()
        self._failed = failed
        jobs = self._client.batch_jobs(self._id, status="failed").jobs
        new = [job for job in jobs if (job.id, job.last_modified) not in self._told]
        new = new[: _FAILURES_MAX - len(self._told)]
        self._told |= {(job.id, job.last_modified) for job in new}
        return new

    def _why_still(self, batch: ShownBatch, look: Look) -> str:
        if told := stops(self._client, batch):
            return "; ".join(told)
        if batch.locked_by or any(self._is_locked(state) for state in look.counts):
            return ""
        if look.under_way and look.of("provisioning").jobs == look.under_way:
            return "its jobs wait for space in the ingest folder; free some"
        return "nobody works on it; start a worker with: penstock ingest work"

    def _is_locked(self, state: str) -> bool:
        if state in ("completed", "failed", HELD):
            return False
        return any(job.locked_by for job in self._client.batch_jobs(self._id, status=state).jobs)


def is_over(batch: ShownBatch, look: Look) -> bool:
    """Whether a batch moves no more by itself."""
    match batch.status:
        case "completed" | "held":
            return True
        case "failed":
            return not look.under_way
        case "processing":
            return bool(look.of(HELD).jobs) and not look.under_way
    return False


def _ending(client: Client, batch_id: str, batch: ShownBatch | None) -> Iterator[str]:
    if batch is None:
        yield f"batch {batch_id} is deleted"
        return
    look = look_at(batch, 0.0)
    why = f": {batch.message}" if batch.message else ""
    verb = "has" if batch.status == "failed" else "is"
    yield f"batch {batch.id} of {batch.collection} {verb} {batch.status}{why}; {counts_line(look)}"
    if batch.status != "completed":
        yield from stops(client, batch)
    yield from ways_on(client, batch)


@contextmanager
def _view(console: Console) -> Iterator[View]:
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, auto_refresh=False) as live:
        yield _Drawing(live)


class _Drawing:
    """Bars that move, on a terminal."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._moved: tuple[str, object] = ("", None)
        self._remarks: tuple[str, ...] = ()

    def show(
        self, batch: ShownBatch, look: Look, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        for job in failures:
            _print(self._live.console, _failure(job))
        if (moved := (batch.status, look.counts)) != self._moved:
            self._moved, self._remarks = moved, ()
        title = Text.assemble(
            f"batch {batch.id} of {batch.collection}: ", status_text(batch.status)
        )
        self._live.update(drawn(title, look, pace, self._remarks), refresh=True)

    def remark(self, text: str) -> None:
        self._remarks = (plain(text),)


class _Lines:
    """A line for each change, where nobody looks at a screen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""

    def show(
        self, batch: ShownBatch, look: Look, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        for job in failures:
            _print(self._console, _failure(job))
        line = f"{batch.id} {batch.status}: {counts_line(look)}"
        if line != self._last:
            self._last = line
            rest = pace_line(look, pace)
            _print(self._console, f"{line}; {rest}" if rest else line)

    def remark(self, text: str) -> None:
        _print(self._console, text)


class _Documents:
    """A JSON document to a line, for each change."""

    def __init__(self) -> None:
        self._last: ShownBatch | None = None

    def show(
        self, batch: ShownBatch, look: Look, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        if batch == self._last and not failures:
            return
        self._last = batch
        seen = Seen(
            batch, look.fetched, look.wanted, pace.bytes, pace.jobs, pace.seconds_left, failures
        )
        out().file.write(msgspec.json.encode(seen).decode() + "\n")
        out().file.flush()

    def remark(self, text: str) -> None:
        """Whoever reads documents sees in them that nothing moves."""


class Unseen:
    """For who waits and wants to see nothing."""

    def show(
        self, batch: ShownBatch, look: Look, pace: Pace, failures: Sequence[ShownIngestJob]
    ) -> None:
        """Nothing."""

    def remark(self, text: str) -> None:
        """Nothing."""


def _failure(job: ShownIngestJob) -> str:
    return f"{job.id} {job.payload_name} has failed: {job.message}"


def _print(console: Console, text: str) -> None:
    console.print(plain(text), soft_wrap=True)
