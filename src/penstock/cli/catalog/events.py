"""`penstock events`."""

import sys
from itertools import islice
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Limit, Namespace, Offset, RemoteFlags, switch
from penstock.cli.output import Cell, Column, write_json, write_line, write_rest, write_table
from penstock.cli.times import read_moment, show_time
from penstock.client.resources.catalog import EventKind
from penstock.errors import Invalid
from penstock.schema.subscribers import LotEvent

app = App(
    name="events",
    help_epilogue="""Examples:
  penstock events list --after 2h
  penstock events list --after 2026-11-01 --before 2026-11-02 --json
  penstock events list --type RUN --limit 100
  penstock events list --run 019a7f6c-8a00-7000-8000-000000000001
  penstock events follow --namespace shop""",
)

_COLUMNS = (
    Column("time", whole=True),
    Column("type", whole=True),
    "about",
    Column("run", whole=True),
)


@app.command(name="list")
def list_events(
    *,
    after: Annotated[str | None, Parameter(help="from this time on; 2h is two hours ago")] = None,
    before: Annotated[str | None, Parameter(help="before this time")] = None,
    run: Annotated[str | None, Parameter(help="only those about this run")] = None,
    type: Annotated[
        tuple[EventKind, ...], Parameter(help="only events of runs, jobs or datasets; repeatable")
    ] = (),
    oldest_first: Annotated[bool, switch("turn the order round")] = False,
    limit: Limit = 20,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List events as they were received, newest first."""
    if run is not None and (after or before or oldest_first or type):
        raise Invalid("--run lists all events of a run; leave the time range, type and order out")
    since, until = read_moment(after), read_moment(before)
    with remote.connect() as client:
        if run is not None:
            found = client.run_events(run, limit=limit, offset=offset)
        else:
            found = client.events(
                after=since,
                before=until,
                oldest_first=oldest_first,
                types=type,
                limit=limit,
                offset=offset,
            )
    if as_json:
        write_json(found)
        return
    write_table(_COLUMNS, map(_row, found.events))
    write_rest(len(found.events), found.total_count, offset)


@app.command(
    help_epilogue="""Examples:
  penstock events follow
  penstock events follow --namespace shop --dataset orders --after 0 --json

It goes on until it is interrupted, and after a server that went away comes
back. With --json each line is one event; its id is what --after takes.""",
)
def follow(
    *,
    after: Annotated[int | None, Parameter(help="go on after this event; 0 is from the first")] = (
        None
    ),
    namespace: Namespace = None,
    dataset: Annotated[str | None, Parameter(help="only of datasets with this name")] = None,
    count: Annotated[int | None, Parameter(help="end after so many")] = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Print what happens to lots, as it happens."""
    if count is not None and not 0 < count <= sys.maxsize:
        raise Invalid(f"--count {count} is no number of events; write 1 or more")
    with remote.connect() as client:
        events = client.lot_events(after=after, namespace=namespace, dataset=dataset)
        for event in islice(events, count):
            if as_json:
                sys.stdout.write(msgspec.json.encode(event).decode() + "\n")
                sys.stdout.flush()
            else:
                write_line(_line(event))


def _line(event: LotEvent) -> str:
    by = f" by {event.job.namespace}/{event.job.name}" if event.job is not None else ""
    what = f"{event.dataset.namespace}/{event.dataset.name} {event.lot}"
    return f"{event.id} {show_time(event.at)} {event.kind} {what} ({event.state}){by}"


def _row(event: dict[str, Any]) -> tuple[Cell, ...]:
    about = event.get("job") or event.get("dataset") or {}
    return (
        show_time(event.get("eventTime")),
        event.get("eventType"),
        f"{about.get('namespace')}/{about.get('name')}",
        (event.get("run") or {}).get("runId"),
    )
