"""`penstock stats`."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, RemoteFlags
from penstock.cli.output import Column, write_json, write_table
from penstock.cli.times import show_time
from penstock.client.resources.admin import Period
from penstock.schema.catalog import EventInterval

app = App(
    name="stats",
    help_epilogue="""Examples:
  penstock stats
  penstock stats --period week --timezone Europe/Berlin

Events are counted in each interval; jobs, datasets and sources at the end of
it.""",
)


@app.default
def stats(
    *,
    period: Annotated[
        Literal["day", "week"], Parameter(help="24 hours by the hour, or 7 days by the day")
    ] = "day",
    timezone: Annotated[str, Parameter(help="whose days")] = "UTC",
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Count events, jobs, datasets and sources over time."""
    over: Period = "DAY" if period == "day" else "WEEK"
    with remote.connect() as client:
        events = client.event_stats(over, timezone)
        jobs = client.count_stats("jobs", over, timezone)
        datasets = client.count_stats("datasets", over, timezone)
        sources = client.count_stats("sources", over, timezone)
    if as_json:
        write_json({"events": events, "jobs": jobs, "datasets": datasets, "sources": sources})
        return
    write_table(
        [Column("from", whole=True), *(Column(name, numbers=True) for name in _COUNTED)],
        (
            (show_time(event.start_interval)[:16], *_counts(event), *(each.count for each in held))
            for event, *held in zip(events, jobs, datasets, sources, strict=True)
        ),
    )


_COUNTED = ("events", "start", "complete", "fail", "abort", "jobs", "datasets", "sources")


def _counts(event: EventInterval) -> tuple[int, ...]:
    return event.count, event.start, event.complete, event.fail, event.abort
