"""`penstock objects`: works straight on the database and the object store."""

from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import App, Parameter

from penstock.arcs.outputs.orphans import Orphan, OrphanSearch, remove_orphans
from penstock.cli.database import operator
from penstock.cli.ingest.watch import show_bytes
from penstock.cli.options import Config, Database, Json, switch
from penstock.cli.output import Column, note, write_json, write_line, write_table
from penstock.cli.times import read_span
from penstock.config import load
from penstock.ingest.opening import IN_DATABASE
from penstock.plane import Plane

app = App(
    name="objects",
    help="Find and remove objects in the store that nothing lists.",
    help_epilogue="""Examples:
  penstock objects sweep --dry-run""",
)

_SHOWN_MAX = 100


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StoreFlags:
    """Where the database and the objects are."""

    database: Database = None
    objects: Annotated[
        str | None, Parameter(help="where lots are kept: file:///FOLDER, s3://BUCKET/PREFIX, …")
    ] = None
    config: Config = None


STORE = StoreFlags()


@app.command(
    help_epilogue="""Examples:
  penstock objects sweep --dry-run
  penstock objects sweep --why "the engine was killed"
  penstock objects sweep --unknown-older-than 90d --dry-run --json

An object is an orphan if the attempt that wrote it has ended and no manifest
lists it. Engines, watchers and servers may go on meanwhile: what a live claim
may be writing is left alone. So is what an attempt wrote that the database
does not know; --unknown-older-than adds such objects if they were not changed
for so long. Leave it out after a database was restored from a backup.""",
)
def sweep(
    *,
    dry_run: Annotated[bool, switch("only list what would go")] = False,
    unknown_older_than: Annotated[
        str | None,
        Parameter(help="also objects of unknown attempts that are as old as this, like 90d"),
    ] = None,
    why: Annotated[str, Parameter(help="why, for the audit log")] = "",
    flags: StoreFlags = STORE,
    as_json: Json = False,
) -> None:
    """Remove what attempts that have ended left in the object store, and that nothing lists."""
    age = read_span(unknown_older_than) if unknown_older_than is not None else None
    settings = load({**asdict(flags), "queue": IN_DATABASE}).settings
    orphans: list[Orphan] = []
    with Plane.open(settings) as plane:
        before = plane.clock() - age if age is not None else 0
        for page in OrphanSearch(plane.database, plane.objects, before).pages():
            if not dry_run:
                remove_orphans(plane.catalog, plane.objects, operator(), why, page)
            orphans += page
    size = sum(orphan.size for orphan in orphans)
    if as_json:
        write_json({"dryRun": dry_run, "count": len(orphans), "bytes": size, "orphans": orphans})
        return
    if orphans:
        write_table(
            ("dataset", Column("lot", whole=True), Column("size", numbers=True), "key"),
            (
                (f"{one.namespace}/{one.dataset}", one.lot, show_bytes(one.size), one.key)
                for one in orphans[:_SHOWN_MAX]
            ),
        )
    if len(orphans) > _SHOWN_MAX:
        note(f"the first {_SHOWN_MAX} are listed; --json lists all")
    verb = "would be removed" if dry_run else "removed"
    write_line(f"{len(orphans):,} objects, {show_bytes(size)}, {verb}")
