"""`penstock demo`: a tour from a deposit to the last derived lot, on a real server."""

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

from penstock.cli.catalog.datasets import write_versions
from penstock.cli.catalog.lineage import GraphQuery, write_lineage
from penstock.cli.catalog.runs import cause
from penstock.cli.formats import show_time
from penstock.cli.options import option
from penstock.cli.output import Column, err, note, write_line, write_table
from penstock.client import Client
from penstock.clock import system_clock
from penstock.demo.pipeline import JOBS, TABLES, Event, pipeline
from penstock.demo.story import HOURS, LAST, NAMESPACE, READINGS, STATIONS, WEATHER_LOTS, Story
from penstock.demo.workloads import FOLDER
from penstock.errors import Unavailable

app = App(
    name="demo",
    help_epilogue="""Examples:
  penstock demo
  penstock demo --keep

It uses a temporary folder, which it removes at the end.""",
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
    keep: Annotated[bool, option("leave the server running")] = False,
) -> None:
    """Ingest the readings of a day, run arcs on them, and show their provenance."""
    with _stopped_by_sigterm(), _folder() as folder, _server(folder) as (server, url):
        note(f"`penstock up` runs at {url}; its data is in {folder}")
        with Client(url) as client:
            lot = _tell_story(client, folder, url)
            events = pipeline(system_clock())
            seconds = _load(client, events)
            _look_around(client, len(events), seconds)
        _say_how_to_go_on(url, lot, keep)
        if keep:
            with suppress(KeyboardInterrupt):
                server.wait()


def _tell_story(client: Client, folder: Path, url: str) -> str:
    """Run the story, and return the last derived lot."""
    story = Story(client, folder, note)
    _title("A folder of gauge readings is deposited; one file was damaged on its way")
    story.set_up()
    batch = story.deposit()
    _watch(client, story, batch.id)
    _show(url, "ingest", "report", batch.id)
    _title("Why is there no bulletin yet?")
    _show(url, "why", f"{NAMESPACE}/{LAST}", batch.id)
    _title("The operator puts the file in place and resumes; the lot is complete, arcs follow")
    story.mend(batch.id)
    story.wait_for_the_last(batch.id)
    _show(url, "arcs", "list")
    _show(url, "lots", "show", f"{NAMESPACE}/clean", batch.id)
    _title("What is the bulletin made from, down to the deposited file?")
    _show(url, "provenance", f"{NAMESPACE}/{LAST}", batch.id, "--files", "2")
    _title("Which hours of the weather are missing, and why?")
    story.wait_for_weather()
    first, last = WEATHER_LOTS[0], WEATHER_LOTS[-1]
    _show(url, "lots", "gaps", f"{NAMESPACE}/weather_smooth", "--from", first, "--to", last)
    _title("If the readings were bad, what would have to be made again?")
    _show(url, "replays", "start", "--dataset", f"{NAMESPACE}/{READINGS}", "--lot", batch.id)
    _title("Does everything hold that must always hold?")
    _show(url, "check")
    return batch.id


def _watch(client: Client, story: Story, batch_id: str) -> None:
    """Show the progress of the batch until it is reported."""
    progress = Progress(
        TextColumn("ingesting {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err(),
    )
    with progress:
        task = progress.add_task(batch_id, total=len(STATIONS) * HOURS)
        while (batch := client.batch(batch_id)).status in ("pending", "processing"):
            jobs = client.batch_jobs(batch_id, limit=100).jobs
            ended = sum(job.status in ("completed", "failed") for job in jobs)
            progress.update(task, completed=ended, description=f"{batch_id}, {batch.status}")
            time.sleep(0.1)
        story.wait_for_report(batch_id)
        progress.update(task, completed=len(STATIONS) * HOURS, description=f"{batch_id}, reported")


def _show(url: str, *command: str) -> None:
    """Run a command and show how to type it."""
    from penstock.cli.app import make_app

    write_line(Text(f"$ penstock {' '.join(command)}", "bold cyan"))
    make_app()([*command, "--url", url])


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the demo as Ctrl-C does, so that the folder is removed."""

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
    """Start a server on a free port, without the settings of the user."""
    settings = folder / "penstock.toml"
    settings.touch()
    environ = {name: value for name, value in os.environ.items() if name[:9] != "PENSTOCK_"}
    environ[FOLDER] = str(folder)
    environ["PENSTOCK_INGEST_FOLDER"] = str(folder / "ingest")
    command = [sys.executable, "-m", "penstock.cli", "up", "--host", "127.0.0.1", "--port", "0"]
    command += ["--database", f"sqlite:///{folder / 'penstock.db'}", "--config", str(settings)]
    command += ["--objects", (folder / "objects").as_uri()]
    log = folder / "server.log"
    with log.open("wb") as stream:
        # Its own session, so that Ctrl-C reaches it only once, through this process.
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
    """Send all events and return the seconds that it took."""
    progress = Progress(
        TextColumn("a week of events of other systems, by OpenLineage"),
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
    write_lineage(client, GraphQuery(f"dataset:{SHOWN.namespace}:{SHOWN.name}", hops=4))
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
    failed = [run for job in jobs for run in job.latest_runs or () if run.state == "FAILED"]
    failed.sort(key=lambda run: run.started_at or "", reverse=True)
    write_table(
        ("job", Column("started", whole=True), "cause"),
        ((run.job.name, show_time(run.started_at), cause(run)) for run in failed),
    )


def _say_how_to_go_on(url: str, lot: str, keep: bool) -> None:
    _title("How to look further")
    if keep:
        write_line(f"export PENSTOCK_URL={url}")
    else:
        write_line("penstock demo --keep leaves the server running; then, for example:")
    for command in (
        f"penstock provenance {NAMESPACE}/{LAST} {lot} --prov",
        f"penstock verify {NAMESPACE}/{LAST} {lot} --upstream",
        f"penstock arcs show {NAMESPACE}/clean",
        "penstock lineage build_customer_value --hops 6",
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
