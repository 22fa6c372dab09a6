"""`penstock events`."""

import sys
from itertools import islice
from typing import Annotated, Any

from cyclopts import App, Parameter

from penstock.cli.formats import read_moment, show_time
from penstock.cli.options import OPTIONS, Limit, NamespaceFilter, Offset, Options, option
from penstock.cli.output import Cell, Column, write_json_line, write_line
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
    run: Annotated[str | None, Parameter(help="only events of this run")] = None,
    type: Annotated[
        tuple[EventKind, ...], Parameter(help="only events of runs, jobs or datasets; repeatable")
    ] = (),
    oldest_first: Annotated[bool, option("oldest first")] = False,
    limit: Limit = 20,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List received events, newest first."""
    if run is not None and (after or before or oldest_first or type):
        raise Invalid("--run lists all events of a run; omit the times, --type and --oldest-first")
    since, until = read_moment(after), read_moment(before)
    with options.connect() as client:
        if run is not None:
            page = client.run_events(run, limit=limit, offset=offset)
        else:
            page = client.events(
                after=since,
                before=until,
                oldest_first=oldest_first,
                types=type,
                limit=limit,
                offset=offset,
            )
    options.write_table(
        page, _COLUMNS, map(_row, page.events), total_count=page.total_count, offset=offset
    )


@app.command(
    help_epilogue="""Examples:
  penstock events follow
  penstock events follow --namespace shop --dataset orders --after 0 --json

It runs until it is interrupted, and reconnects after a restart of the server.
With --json each line is one event. Pass its id to --after to continue.""",
)
def follow(
    *,
    after: Annotated[
        int | None, Parameter(help="continue after this event; 0 begins at the first")
    ] = (None),
    namespace: NamespaceFilter = None,
    dataset: Annotated[str | None, Parameter(help="only datasets with this name")] = None,
    count: Annotated[int | None, Parameter(help="end after this number of events")] = None,
    options: Options = OPTIONS,
) -> None:
    """Print events of lots as they happen."""
    if count is not None and not 0 < count <= sys.maxsize:
        raise Invalid(f"--count is {count}; write 1 or more")
    with options.connect() as client:
        events = client.lot_events(after=after, namespace=namespace, dataset=dataset)
        for event in islice(events, count):
            if options.json:
                write_json_line(event)
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
