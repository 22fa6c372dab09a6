"""`penstock quality`."""

from typing import Annotated

from cyclopts import App

from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, Limit, Namespace, Offset, Options, Reason, option
from penstock.cli.output import Column, write_line
from penstock.cli.targets import Dataset, LotId, exact_dataset, find_dataset

app = App(
    name="quality",
    help_epilogue="""Examples:
  penstock quality list shop/clean --failed
  penstock quality show shop/clean 20230206PT1H05
  penstock quality accept shop/clean 20230206PT1H05 --why "the empty rows are known"

A lot that fails a check is held, and no job can read it. Accept it, or make it
again with `penstock work resubmit`.""",
)
_COLUMNS = (
    "check",
    "field",
    Column("passed", whole=True),
    Column("at", whole=True),
    "detail",
)


@app.command(name="list")
def list_checks(
    dataset: Dataset,
    /,
    *,
    failed: Annotated[bool, option("only failed checks")] = False,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """List the results of checks on the lots of a dataset, newest first."""
    with options.connect() as client:
        at = find_dataset(client, dataset, namespace)
        page = client.dataset_checks(*at, failed=failed, limit=limit, offset=offset)
    options.write_table(
        page,
        ("lot", *_COLUMNS),
        (
            (each.lot, each.name, each.field, _yes(each.success), show_time(each.at), each.detail)
            for each in page.checks
        ),
    )


@app.command
def show(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Show the results of checks on a lot."""
    with options.connect() as client:
        at = find_dataset(client, dataset, namespace)
        results = client.lot_checks(*at, lot)
    if not results.checks and not options.json:
        write_line(f"no check has run on lot {lot} of {'/'.join(at)}")
        return
    options.write_table(
        results,
        _COLUMNS,
        (
            (each.name, each.field, _yes(each.success), show_time(each.at), each.detail)
            for each in results.checks
        ),
    )


def _yes(success: bool) -> str:
    return "yes" if success else "no"


@app.command
def accept(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Reason,
    namespace: Namespace = None,
    options: Options = OPTIONS,
) -> None:
    """Accept a lot whose checks failed, so that jobs can read it."""
    with options.connect() as client:
        at = exact_dataset(client, dataset, namespace)
        lot_now = client.accept_lot(*at, lot, why)
    options.write_line(lot_now, f"lot {lot} of {'/'.join(at)} is accepted: {lot_now.status}")
