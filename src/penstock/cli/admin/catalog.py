"""`penstock catalog`: works straight on the database, also while servers run."""

from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from penstock.catalog.entities.mending import mend_times as mend
from penstock.cli.database import opened, operator
from penstock.cli.options import DATABASE, DatabaseFlags, Json, switch
from penstock.cli.output import Column, write_json, write_line, write_table
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
        Parameter(help="mend times that are further ahead; else the setting event_ahead_seconds"),
    ] = None,
    dry_run: Annotated[bool, switch("only count what would be mended")] = False,
    flags: DatabaseFlags = DATABASE,
    as_json: Json = False,
) -> None:
    """Mend times that are ahead of the clock, in events, runs, jobs, datasets and what lists them.

    A time that came with an event becomes the time when the event was received, any other becomes
    now. Then the current versions and the latest runs are found again.
    """
    ahead = flags.load().settings.event_ahead_seconds if ahead_seconds is None else ahead_seconds
    with opened(flags) as database:
        mended = mend(database, system_clock, ahead=ahead * SECOND, dry_run=dry_run, who=operator())
    if as_json:
        write_json({"dryRun": dry_run, **msgspec.to_builtins(mended)})
        return
    write_line(f"{'Would mend' if dry_run else 'Mended'}, more than {ahead} seconds ahead:")
    write_table(
        ("rows", Column("how many", numbers=True)),
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
