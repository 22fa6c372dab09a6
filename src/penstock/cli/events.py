"""`penstock events`."""

from typing import Annotated, Any

from cyclopts import App, Parameter

from penstock.cli.flags import REMOTE, Json, Limit, Offset, RemoteFlags, switch
from penstock.cli.printing import Cell, Column, write_json, write_rest, write_table
from penstock.cli.times import read_moment, show_time
from penstock.errors import Invalid

app = App(
    name="events",
    help_epilogue="""Examples:
  penstock events list --after 2h
  penstock events list --after 2026-11-01 --before 2026-11-02 --json
  penstock events list --run 019a7f6c-8a00-7000-8000-000000000001""",
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
    oldest_first: Annotated[bool, switch("turn the order round")] = False,
    limit: Limit = 20,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List events as they were received, newest first."""
    if run is not None and (after or before or oldest_first):
        raise Invalid("--run lists all events of a run; leave the time range and order out")
    since, until = read_moment(after), read_moment(before)
    with remote.connect() as client:
        if run is not None:
            found = client.run_events(run, limit=limit, offset=offset)
        else:
            found = client.events(
                after=since, before=until, oldest_first=oldest_first, limit=limit, offset=offset
            )
    if as_json:
        write_json(found)
        return
    write_table(_COLUMNS, map(_row, found.events))
    write_rest(len(found.events), found.total_count, offset)


def _row(event: dict[str, Any]) -> tuple[Cell, ...]:
    about = event.get("job") or event.get("dataset") or {}
    return (
        show_time(event.get("eventTime")),
        event.get("eventType"),
        f"{about.get('namespace')}/{about.get('name')}",
        (event.get("run") or {}).get("runId"),
    )
