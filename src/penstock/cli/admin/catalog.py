"""`penstock catalog`, which opens the database; servers may run."""

from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from penstock.catalog.entities.mending import mend_times as mend
from penstock.cli.database import opened, operator
from penstock.cli.options import DATABASE, DatabaseOptions, option
from penstock.cli.output import Column, write_line
from penstock.clock import SECOND, system_clock

app = App(
    name="catalog",
    help_epilogue="""Examples:
  penstock catalog mend-times --dry-run
  penstock catalog mend-times --ahead-seconds 60""",
)


@app.command(name="mend-times")
def mend_times(
    *,
    ahead_seconds: Annotated[
        int | None,
        Parameter(help="the tolerance; default: the setting event_ahead_seconds"),
    ] = None,
    dry_run: Annotated[bool, option("only count the times to correct")] = False,
    options: DatabaseOptions = DATABASE,
) -> None:
    """Correct times in the future, of events, runs, jobs and datasets.

    The time of an event becomes the time when it was received, any other time becomes now. Then
    current versions and latest runs are determined again.
    """
    ahead = options.load().settings.event_ahead_seconds if ahead_seconds is None else ahead_seconds
    with opened(options) as database:
        mended = mend(database, system_clock, ahead=ahead * SECOND, dry_run=dry_run, who=operator())
    if not options.json:
        done = "Would correct" if dry_run else "Corrected"
        write_line(f"{done} times more than {ahead} seconds in the future:")
    options.write_table(
        {"dryRun": dry_run, **msgspec.to_builtins(mended)},
        ("rows", Column("number", numbers=True)),
        (
            ("events", mended.events),
            ("runs", mended.runs),
            ("datasets", mended.datasets),
            ("dataset versions", mended.dataset_versions),
            ("jobs", mended.jobs),
            ("job versions", mended.job_versions),
            ("namespaces", mended.namespaces),
            ("sources", mended.sources),
        ),
    )
