"""`penstock prune`: works straight on the database, also while servers run."""

import sys
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from msgspec import Struct

from penstock.catalog import retention
from penstock.catalog.retention import Pruned
from penstock.cli.database import opened, operator
from penstock.cli.options import DATABASE, DatabaseFlags, Json, switch
from penstock.cli.output import Column, err, note, write_json, write_line, write_table
from penstock.cli.times import read_span, show_time
from penstock.clock import Micros, format_time, system_clock
from penstock.db import Database
from penstock.db.pruning import cutoff
from penstock.errors import Invalid
from penstock.locks.pruning import prune_log
from penstock.operations.backfills.commands import BACKFILLS
from penstock.operations.operation import prune_operations
from penstock.operations.replays.commands import REPLAYS
from penstock.subscribers.pruning import prune_outbox

app = App(
    name="prune",
    help_epilogue="""Examples:
  penstock prune --older-than 90d --dry-run
  penstock prune --older-than 26w --yes

What is current stays however old it is, and so does what it was made by and
from; so do all datasets and jobs. Servers may go on meanwhile: deletion is
done in small batches. An event of a lot stays until every subscriber has had
it; what tells who made, registered or holds a lot stays with it.""",
)


class Forgotten(Struct, frozen=True, rename="camel"):
    """How many were deleted, or would be."""

    pruned: Pruned
    lot_events: int
    lot_log: int
    backfills: int
    replays: int


@app.default
def prune(
    *,
    older_than: Annotated[str, Parameter(help="how old, like 90d, 12h or 26w")],
    dry_run: Annotated[bool, switch("only count what would go")] = False,
    yes: Annotated[bool, switch("do not ask first")] = False,
    flags: DatabaseFlags = DATABASE,
    as_json: Json = False,
) -> int:
    """Delete old events, runs, versions, transitions, backfills and replays that nothing needs."""
    span = read_span(older_than)
    now = system_clock()
    before = format_time(cutoff(lambda: now, span))
    if not yes and not dry_run and not sys.stdin.isatty():
        raise Invalid("nobody is here to be asked; say --yes to delete, or --dry-run to count")
    with opened(flags) as database:
        if not yes and not dry_run and not _agreed(_prune(database, now, span, dry_run=True)):
            note("nothing was deleted")
            return 1
        gone = _prune(database, now, span, dry_run=dry_run)
    if as_json:
        found = msgspec.to_builtins(gone)
        write_json({"olderThan": before, "dryRun": dry_run, **found})
        return 0
    write_line(f"{'Would delete' if dry_run else 'Deleted'}, older than {show_time(before)} UTC:")
    _write(gone)
    return 0


def _prune(database: Database, now: Micros, span: Micros, *, dry_run: bool) -> Forgotten:
    with err().status("looking") as status:
        pruned = retention.prune(
            database,
            lambda: now,
            span,
            dry_run=dry_run,
            who=operator(),
            progress=lambda pruned: status.update(str(pruned)),
        )
        others = [
            prune_some(database, lambda: now, span, dry_run=dry_run)
            for prune_some in (prune_outbox, prune_log)
        ]
        others += [
            prune_operations(kind, database, lambda: now, span, dry_run=dry_run)
            for kind in (BACKFILLS, REPLAYS)
        ]
        return Forgotten(pruned, *others)


def _agreed(counted: Forgotten) -> bool:
    _write(counted)
    note("Delete these? They cannot be brought back. [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _write(gone: Forgotten) -> None:
    pruned = gone.pruned
    write_table(
        ("what", Column("how many", numbers=True)),
        (
            ("events", pruned.events),
            ("runs", pruned.runs),
            ("dataset versions", pruned.versions),
            ("job versions", pruned.job_versions),
            ("sets of column lineage", pruned.column_sets),
            ("sets of inherited facets", pruned.facet_sets),
            ("events of lots", gone.lot_events),
            ("transitions of lots", gone.lot_log),
            ("backfills", gone.backfills),
            ("replays", gone.replays),
        ),
    )
