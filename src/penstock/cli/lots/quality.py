"""`penstock quality`."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.options import REMOTE, Json, Limit, Namespace, Offset, RemoteFlags, Why, switch
from penstock.cli.output import Column, write_json, write_line, write_table
from penstock.cli.targets import exact_dataset, find_entity
from penstock.cli.times import show_time

app = App(
    name="quality",
    help_epilogue="""Examples:
  penstock quality list shop/clean --failed
  penstock quality show shop/clean 20230206PT1H05
  penstock quality accept shop/clean 20230206PT1H05 --why "the empty rows are known"

A lot that fails a check is held, and so is whatever would read it, until it is
accepted or made again (`penstock work resubmit`).""",
)

Dataset = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or dataset:NAMESPACE:NAME")]
LotId = Annotated[str, Parameter(help="the lot")]


@app.command(name="list")
def list_checks(
    dataset: Dataset,
    /,
    *,
    failed: Annotated[bool, switch("only what failed")] = False,
    namespace: Namespace = None,
    limit: Limit = 100,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List what checks said about the lots of a dataset, the newest first."""
    with remote.connect() as client:
        named = find_entity(client, dataset, "DATASET", namespace)
        at = named.namespace, named.name
        found = client.dataset_checks(*at, failed=failed, limit=limit, offset=offset)
    if as_json:
        write_json(found)
        return
    write_table(
        ("lot", "check", "field", Column("passed", whole=True), Column("at", whole=True), "detail"),
        (
            (one.lot, one.name, one.field, _passed(one.success), show_time(one.at), one.detail)
            for one in found.checks
        ),
    )


@app.command
def show(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show what checks said about a lot."""
    with remote.connect() as client:
        named = find_entity(client, dataset, "DATASET", namespace)
        found = client.lot_checks(named.namespace, named.name, lot)
    if as_json:
        write_json(found)
        return
    if not found.checks:
        write_line(f"no check has said anything about lot {lot} of {named.namespace}/{named.name}")
        return
    write_table(
        ("check", "field", Column("passed", whole=True), Column("at", whole=True), "detail"),
        (
            (each.name, each.field, _passed(each.success), show_time(each.at), each.detail)
            for each in found.checks
        ),
    )


def _passed(success: bool) -> str:
    return "yes" if success else "no"


@app.command
def accept(
    dataset: Dataset,
    lot: LotId,
    /,
    *,
    why: Why,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Let a lot be read although checks of it failed."""
    with remote.connect() as client:
        at = exact_dataset(client, dataset, namespace)
        found = client.accept_lot(*at, lot, why)
    if as_json:
        write_json(found)
    else:
        write_line(f"lot {lot} of {'/'.join(at)} is accepted: {found.status}")
