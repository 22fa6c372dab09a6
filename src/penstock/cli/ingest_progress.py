"""How far a batch is: jobs by stage, bytes, rate and time left, from one look to the next."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from penstock.cli.printing import STATE_STYLES
from penstock.cli.times import show_duration
from penstock.client.ingest_documents import Batch

# Every state that an ingest job can be in, in the order of the work.
STAGES = (
    "pending",
    "estimating",
    "provisioning",
    "downloading",
    "processing",
    "recording",
    "notify",
)
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


def look_at(batch: Batch, at: float) -> Look:
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


def jobs_line(batch: Batch) -> str:
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
