"""`penstock arcs run`: one lot of an arc in this process."""

import shlex

from cyclopts import App

from penstock.arcs.engine.single import run_lot
from penstock.arcs.executors import open_executor
from penstock.arcs.overview import get_arc_lot
from penstock.arcs.queries import all_arcs
from penstock.arcs.workload.shell import command_rules
from penstock.cli import exit_codes
from penstock.cli.arcs.start import ENGINE, EngineOptions, begin, lease_url, owner
from penstock.cli.options import OUTPUT, OutputOptions
from penstock.cli.output import complain
from penstock.cli.targets import ArcName, LotId, choose_arc
from penstock.plane import Plane

app = App(
    name="run",
    help_epilogue="""Examples:
  penstock arcs run shop/clean 20261115PT1H09
  penstock arcs run clean 17 --database postgresql://penstock@db/penstock

It claims the lot and runs it in its own executor, on the database and the
object store, in spite of the limits of the arc. The lot must be ready:
`penstock why ARC LOT` shows what stops it, `penstock work resubmit ARC LOT`
makes a finished lot ready again. The exit code is 1 if the lot fails.""",
)


@app.default
def run(
    arc: ArcName,
    lot: LotId,
    /,
    *,
    engine: EngineOptions = ENGINE,
    options: OutputOptions = OUTPUT,
) -> int:
    """Claim one lot of an arc and run it in this process."""
    settings = engine.load().settings
    begin(settings)
    rules = command_rules(settings)
    with Plane.open(settings) as plane:
        plane.objects.check()
        with plane.catalog.read() as tx:
            at = choose_arc([(row.namespace, row.name) for row in all_arcs(tx)], arc)
        with open_executor(settings.executor, settings.arc_concurrency) as executor:
            is_done = run_lot(
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
            details = get_arc_lot(tx, *at, lot)
    if is_done or options.json:
        options.write_line(details, f"lot {lot} of arc {'/'.join(at)} is {details.state}")
    else:
        complain(
            f"lot {lot} of arc {'/'.join(at)} is {details.state}: {details.error}; "
            f"`{shlex.join(['penstock', 'arcs', 'show', '/'.join(at), lot])}` shows more"
        )
    return exit_codes.DONE if is_done else exit_codes.FAILED
