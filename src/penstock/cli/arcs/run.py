"""`penstock arcs run`: one lot of an arc, here and now."""

import shlex

from cyclopts import App

from penstock.arcs.engine.single import run_lot
from penstock.arcs.executors import open_executor
from penstock.arcs.overview import get_arc_lot
from penstock.arcs.queries import all_arcs
from penstock.arcs.workload.shell import command_rules
from penstock.cli import exit_codes
from penstock.cli.arcs.work import ENGINE, EngineFlags, begin, lease_url, owner
from penstock.cli.options import Json
from penstock.cli.output import complain, write_json, write_line
from penstock.cli.targets import ArcName, LotId, choose_arc
from penstock.plane import Plane
from penstock.schema.catalog import EntityId

app = App(
    name="run",
    help_epilogue="""Examples:
  penstock arcs run shop/clean 20261115PT1H09
  penstock arcs run clean 17 --database postgresql://penstock@db/penstock

It claims the lot and runs it in this process's executor, straight on the
database and the object store; the limits of the arc do not hold it back. The
lot has to be ready: `penstock why ARC LOT` says what stops it, `penstock work
resubmit ARC LOT` has one made anew. The exit code is 1 if it fails.""",
)


@app.default
def run(arc: ArcName, lot: LotId, /, *, flags: EngineFlags = ENGINE, as_json: Json = False) -> int:
    """Claim one lot of an arc and run it here and now."""
    settings = flags.load().settings
    begin(settings)
    rules = command_rules(settings)
    with Plane.open(settings) as plane:
        plane.objects.check()
        with plane.catalog.read() as tx:
            known = [EntityId(row.namespace, row.name) for row in all_arcs(tx)]
        named = choose_arc(known, arc)
        at = named.namespace, named.name
        with open_executor(settings.executor, settings.arc_concurrency) as executor:
            made = run_lot(
                plane.catalog,
                plane.objects,
                executor,
                plane.clock,
                *at,
                lot,
                owner=owner(),
                lease_url=lease_url(settings),
                rules=rules,
            )
        with plane.catalog.read() as tx:
            found = get_arc_lot(tx, *at, lot)
    if as_json:
        write_json(found)
    elif made:
        write_line(f"lot {lot} of arc {'/'.join(at)} is {found.state}")
    else:
        complain(
            f"lot {lot} of arc {'/'.join(at)} is {found.state}: {found.error}; "
            f"`{shlex.join(['penstock', 'arcs', 'show', '/'.join(at), lot])}` shows more"
        )
    return exit_codes.DONE if made else exit_codes.FAILED
