"""`penstock stats`."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, Options
from penstock.cli.output import Column
from penstock.client.resources.admin import Period
from penstock.schema.catalog import EventInterval

app = App(
    name="stats",
    help_epilogue="""Examples:
  penstock stats
  penstock stats --period week --timezone Europe/Berlin

Events are counted within an interval; jobs, datasets and sources at its end.""",
)


@app.default
def stats(
    *,
    period: Annotated[
        Literal["day", "week"], Parameter(help="24 hours by hour, or 7 days by day")
    ] = "day",
    timezone: Annotated[str, Parameter(help="the time zone of the days")] = "UTC",
    options: Options = OPTIONS,
) -> None:
    """Count events, jobs, datasets and sources over time."""
    over: Period = "DAY" if period == "day" else "WEEK"
    with options.connect() as client:
        events = client.event_stats(over, timezone)
        jobs = client.count_stats("jobs", over, timezone)
        datasets = client.count_stats("datasets", over, timezone)
        sources = client.count_stats("sources", over, timezone)
    options.write_table(
        {"events": events, "jobs": jobs, "datasets": datasets, "sources": sources},
        [Column("from", whole=True), *(Column(name, numbers=True) for name in _COUNTS)],
        (
            (show_time(event.start_interval)[:16], *_counts(event), *(each.count for each in held))
            for event, *held in zip(events, jobs, datasets, sources, strict=True)
        ),
    )


_COUNTS = ("events", "start", "complete", "fail", "abort", "jobs", "datasets", "sources")


def _counts(event: EventInterval) -> tuple[int, ...]:
    return event.count, event.start, event.complete, event.fail, event.abort
