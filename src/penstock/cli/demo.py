"""`penstock demo`: a real server, a week of a small data platform in it, and a look around."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

from cyclopts import App
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from penstock.cli.datasets import write_versions
from penstock.cli.demo_pipeline import JOBS, Event, pipeline
from penstock.cli.demo_tables import TABLES
from penstock.cli.flags import switch
from penstock.cli.graphs import Asked, write_lineage
from penstock.cli.printing import Column, err, note, write_line, write_table
from penstock.cli.runs import cause
from penstock.cli.times import show_time
from penstock.client import Client
from penstock.clock import system_clock
from penstock.errors import Unavailable

app = App(
    name="demo",
    help_epilogue="""Examples:
  penstock demo
  penstock demo --keep

It works in a folder of its own, which it removes at the end.""",
)

SHOWN = TABLES["marts.daily_revenue"]
CHANGED = TABLES["marts.daily_revenue"]
DELETED = TABLES["staging.orders_2019"]
BATCH_EVENTS = 20
START_SECONDS_MAX = 60
_LISTENS = re.compile(r"listens on (http://[^\s,]+)")


@app.default
def demo(
    *,
    keep: Annotated[bool, switch("leave the server running")] = False,
) -> None:
    """Start a server with a small data platform in it and look around."""
    with _stopped_by_sigterm(), _folder() as folder, _server(folder) as (server, url):
        note(f"a server runs at {url}, its database is in {folder}")
        with Client(url) as client:
            events = pipeline(system_clock())
            seconds = _load(client, events)
            _look_around(client, len(events), seconds)
        _say_how_to_go_on(url, keep)
        if keep:
            with suppress(KeyboardInterrupt):
                server.wait()


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the demo as Ctrl-C does, so that nothing is left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """A server of its own, on a free port; nobody's settings have a say in it."""
    settings = folder / "penstock.toml"
    settings.touch()
    environ = {name: value for name, value in os.environ.items() if name[:9] != "PENSTOCK_"}
    command = [sys.executable, "-m", "penstock.cli", "serve", "--host", "127.0.0.1", "--port", "0"]
    command += ["--database", f"sqlite:///{folder / 'penstock.db'}", "--config", str(settings)]
    log = folder / "server.log"
    with log.open("wb") as stream:
        # In a session of its own, so that Ctrl-C reaches it through us and only once.
        server = subprocess.Popen(
            command, env=environ, cwd=folder, stderr=stream, start_new_session=True
        )
    try:
        yield server, _wait_until_it_listens(server, log)
    finally:
        server.terminate()
        server.wait()


def _wait_until_it_listens(server: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        ended = server.poll() is not None
        text = log.read_text(errors="replace")
        if found := _LISTENS.search(text):
            return found[1]
        if ended:
            last = text.strip().splitlines()[-1:] or ["no reason given"]
            raise Unavailable(f"the demo's server did not start: {last[0]}")
        time.sleep(0.02)
    raise Unavailable(f"the demo's server did not start within {START_SECONDS_MAX} s; see {log}")


def _load(client: Client, events: Sequence[Event]) -> float:
    """Send all events and say how many seconds that took."""
    progress = Progress(
        TextColumn("loading a week of a shop's data platform"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err(),
    )
    started = time.perf_counter()
    with progress:
        task = progress.add_task("", total=len(events))
        for start in range(0, len(events), BATCH_EVENTS):
            batch = events[start : start + BATCH_EVENTS]
            result = client.emit_batch(batch)
            if result.failed_events:
                raise Unavailable(f"an event was refused: {result.failed_events[0].reason}")
            progress.advance(task, len(batch))
    seconds = time.perf_counter() - started
    client.delete_dataset(DELETED.namespace, DELETED.name)
    return seconds


def _look_around(client: Client, events: int, seconds: float) -> None:
    _title(f"What is {SHOWN.name} made from, and who uses it?")
    write_lineage(client, Asked(f"dataset:{SHOWN.namespace}:{SHOWN.name}", depth=4))
    _title("Which runs failed, and why?")
    _write_failures(client)
    _title(f"How did {CHANGED.name} change?")
    versions = client.dataset_versions(CHANGED.namespace, CHANGED.name)
    write_versions(versions.versions)
    _title("How much is there?")
    namespaces = client.namespaces().namespaces
    datasets = sum(client.datasets(n.name, limit=0).total_count for n in namespaces)
    jobs = client.jobs(limit=0).total_count
    write_line(
        f"{jobs} jobs, {datasets} datasets, {events} events, "
        f"received at {events / seconds:,.0f} a second"
    )


def _write_failures(client: Client) -> None:
    jobs = client.jobs(JOBS, limit=100).jobs
    failed = [run for job in jobs for run in job.latest_runs if run.state == "FAILED"]
    failed.sort(key=lambda run: run.started_at or "", reverse=True)
    write_table(
        ("job", Column("started", whole=True), "cause"),
        ((run.job.name, show_time(run.started_at), cause(run.facets)) for run in failed),
    )


def _say_how_to_go_on(url: str, keep: bool) -> None:
    _title("How to look further")
    if keep:
        write_line(f"export PENSTOCK_URL={url}")
    else:
        write_line("penstock demo --keep leaves the server running; then, for example:")
    for command in (
        "penstock lineage build_customer_value --depth 6",
        "penstock lineage daily_revenue --columns",
        "penstock lineage load_archive --history",
        "penstock lineage daily_revenue --as-of 3d",
        "penstock jobs list --state FAILED",
        "penstock datasets show customer_value",
        "penstock search email",
        "penstock stats --period week",
    ):
        write_line(f"  {command}")
    if keep:
        write_line(f"The API is documented at {url}/docs. Ctrl-C stops the server.")


def _title(text: str) -> None:
    write_line()
    write_line(Text(text, "bold underline"))
