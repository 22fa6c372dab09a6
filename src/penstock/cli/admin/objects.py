"""`penstock objects`, which opens the database and the object store."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import App, Parameter

from penstock.arcs.outputs.orphans import Orphan, OrphanSearch, remove_orphans
from penstock.cli.database import operator
from penstock.cli.formats import read_span, show_bytes
from penstock.cli.options import DatabaseOptions, Objects, OptionalReason, option
from penstock.cli.output import Column, counted, note, write_json, write_line, write_table
from penstock.config import load
from penstock.ingest.opening import IN_DATABASE
from penstock.plane import Plane

app = App(
    name="objects",
    help_epilogue="""Examples:
  penstock objects sweep --dry-run""",
)

_SHOWN_MAX = 100


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StoreOptions(DatabaseOptions):
    """The database and the object store, and the form of the result."""

    objects: Objects = None


STORE = StoreOptions()


@app.command(
    help_epilogue="""Examples:
  penstock objects sweep --dry-run
  penstock objects sweep --why "the engine was killed"
  penstock objects sweep --unknown-older-than 90d --dry-run --json

An object is an orphan if its attempt has ended and no manifest lists it. Engines
and servers may run: objects of live claims stay. Objects of attempts that the
database does not know stay too, unless --unknown-older-than is given and they
have not changed for that time. Do not use that option after the database was
restored from a backup.""",
)
def sweep(
    *,
    dry_run: Annotated[bool, option("only list the objects")] = False,
    unknown_older_than: Annotated[
        str | None,
        Parameter(help="also objects of unknown attempts of this age, like 90d"),
    ] = None,
    why: OptionalReason = "",
    options: StoreOptions = STORE,
) -> None:
    """Remove the orphaned objects of ended attempts from the object store."""
    age = read_span(unknown_older_than) if unknown_older_than is not None else None
    flags = {"database": options.database, "objects": options.objects, "config": options.config}
    settings = load({**flags, "queue": IN_DATABASE}).settings
    orphans: list[Orphan] = []
    with Plane.open(settings) as plane:
        before = plane.clock() - age if age is not None else 0
        for page in OrphanSearch(plane.database, plane.objects, before).pages():
            if not dry_run:
                remove_orphans(plane.catalog, plane.objects, operator(), why, page)
            orphans += page
    size = sum(orphan.size for orphan in orphans)
    if options.json:
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
    write_line(f"{counted(len(orphans), 'object')}, {show_bytes(size)}, {verb}")
