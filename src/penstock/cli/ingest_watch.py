"""`penstock ingest watch`: follows a batch to its end."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Protocol

import msgspec
from cyclopts import App, Parameter
from msgspec import Struct
from rich.console import Console
from rich.live import Live
from rich.text import Text

from penstock.cli import exits
from penstock.cli.flags import REMOTE, Json, RemoteFlags
from penstock.cli.ingest_progress import (
    HELD,
    Course,
    Look,
    Pace,
    counts_line,
    drawn,
    look_at,
    pace_line,
    status_text,
)
from penstock.cli.ingest_targets import Kind, read_target
from penstock.cli.ingest_ways import stops, ways_on
from penstock.cli.printing import out, plain
from penstock.client import ApiError, Client, Unreachable
from penstock.client.ingest_documents import Batch, IngestJob
from penstock.errors import Invalid

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

    batch: Batch
    bytes_fetched: int
    bytes_wanted: int
    bytes_per_second: float
    jobs_per_second: float
    seconds_left: float | None
    failures: Sequence[IngestJob]


class View(Protocol):
    """Where somebody sees how a batch goes on."""

    def show(self, batch: Batch, look: Look, pace: Pace, failures: Sequence[IngestJob]) -> None: ...

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
    return exits.DONE if ended is not None and ended.status == "completed" else exits.FAILED


def follow_on(console: Console, client: Client, batch_id: str, interval: float) -> Batch | None:
    """Follow a batch where people see it, and say how it ended."""
    with _view(console) as view:
        ended = follow(client, batch_id, view, interval)
    for line in _ending(client, batch_id, ended):
        _print(console, line)
    return ended


def follow(client: Client, batch_id: str, view: View, interval: float) -> Batch | None:
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

    def take(self) -> Batch | None:
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

    def _failures(self, look: Look) -> Sequence[IngestJob]:
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

    def _why_still(self, batch: Batch, look: Look) -> str:
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


def is_over(batch: Batch, look: Look) -> bool:
    """Whether a batch moves no more by itself."""
    match batch.status:
        case "completed" | "held":
            return True
        case "failed":
            return not look.under_way
        case "processing":
            return bool(look.of(HELD).jobs) and not look.under_way
    return False


def _ending(client: Client, batch_id: str, batch: Batch | None) -> Iterator[str]:
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

    def show(self, batch: Batch, look: Look, pace: Pace, failures: Sequence[IngestJob]) -> None:
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

    def show(self, batch: Batch, look: Look, pace: Pace, failures: Sequence[IngestJob]) -> None:
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
        self._last: Batch | None = None

    def show(self, batch: Batch, look: Look, pace: Pace, failures: Sequence[IngestJob]) -> None:
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

    def show(self, batch: Batch, look: Look, pace: Pace, failures: Sequence[IngestJob]) -> None:
        """Nothing."""

    def remark(self, text: str) -> None:
        """Nothing."""


def _failure(job: IngestJob) -> str:
    return f"{job.id} {job.payload_name} has failed: {job.message}"


def _print(console: Console, text: str) -> None:
    console.print(plain(text), soft_wrap=True)
