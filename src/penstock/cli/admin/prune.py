"""`penstock prune`, which opens the database; servers may run."""

import sys
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from msgspec import Struct

from penstock.catalog import retention
from penstock.catalog.retention import Pruned
from penstock.cli import exit_codes
from penstock.cli.database import opened, operator
from penstock.cli.formats import read_span, show_time
from penstock.cli.options import DATABASE, DatabaseOptions, option
from penstock.cli.output import Column, err, note, write_json, write_line, write_table
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

Current versions stay, with the runs and inputs that made them; so do all
datasets and jobs. Servers may run, because the command deletes in small
batches. An event of a lot stays until every subscriber has received it. Log
entries that explain the maker or the hold of a lot stay too.""",
)


class PrunedHistory(Struct, frozen=True, rename="camel"):
    """The numbers of deleted rows, or of rows to delete."""

    pruned: Pruned
    lot_events: int
    lot_log: int
    backfills: int
    replays: int


@app.default
def prune(
    *,
    older_than: Annotated[str, Parameter(help="the age, like 90d, 12h or 26w")],
    dry_run: Annotated[bool, option("only count the rows")] = False,
    yes: Annotated[bool, option("do not ask first")] = False,
    options: DatabaseOptions = DATABASE,
) -> int:
    """Delete old events, runs, versions, log entries, backfills and replays."""
    span = read_span(older_than)
    now = system_clock()
    before = format_time(cutoff(lambda: now, span))
    if not yes and not dry_run and not sys.stdin.isatty():
        raise Invalid("stdin is not a terminal; pass --yes to delete, or --dry-run to count")
    with opened(options) as database:
        if not yes and not dry_run and not _confirm(_prune(database, now, span, dry_run=True)):
            note("nothing was deleted")
            return exit_codes.FAILED
        pruned = _prune(database, now, span, dry_run=dry_run)
    if options.json:
        write_json({"olderThan": before, "dryRun": dry_run, **msgspec.to_builtins(pruned)})
        return exit_codes.DONE
    write_line(f"{'Would delete' if dry_run else 'Deleted'}, older than {show_time(before)} UTC:")
    _write(pruned)
    return exit_codes.DONE


def _prune(database: Database, now: Micros, span: Micros, *, dry_run: bool) -> PrunedHistory:
    with err().status("searching") as status:
        pruned = retention.prune(
            database,
            lambda: now,
            span,
            dry_run=dry_run,
            who=operator(),
            progress=lambda pruned: status.update(str(pruned)),
        )
        others = [
            prune_rows(database, lambda: now, span, dry_run=dry_run)
            for prune_rows in (prune_outbox, prune_log)
        ]
        others += [
            prune_operations(kind, database, lambda: now, span, dry_run=dry_run)
            for kind in (BACKFILLS, REPLAYS)
        ]
        return PrunedHistory(pruned, *others)


def _confirm(history: PrunedHistory) -> bool:
    _write(history)
    note("Delete these rows? They cannot be restored. [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _write(history: PrunedHistory) -> None:
    pruned = history.pruned
    write_table(
        ("rows", Column("number", numbers=True)),
        (
            ("events", pruned.events),
            ("runs", pruned.runs),
            ("dataset versions", pruned.versions),
            ("job versions", pruned.job_versions),
            ("sets of column lineage", pruned.column_sets),
            ("sets of inherited facets", pruned.facet_sets),
            ("events of lots", history.lot_events),
            ("transitions of lots", history.lot_log),
            ("backfills", history.backfills),
            ("replays", history.replays),
        ),
    )
