"""`penstock arrivals`: where the objects of datasets arrive."""

from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.ingest.watch import show_bytes
from penstock.cli.options import REMOTE, Json, Namespace, RemoteFlags
from penstock.cli.output import (
    Cell,
    Column,
    note,
    write_fields,
    write_json,
    write_line,
    write_table,
)
from penstock.cli.targets import exact_dataset, find_dataset
from penstock.cli.times import show_time
from penstock.schema.arrivals import ShownArrival

app = App(
    name="arrivals",
    help_epilogue="""Examples:
  penstock arrivals list
  penstock arrivals show shop/orders
  penstock arrivals delete shop/orders

They are declared with `penstock arcs apply FILE`, and engines look at them.""",
)

Dataset = Annotated[str, Parameter(help="the dataset: NAME or NAMESPACE/NAME")]
_COLUMNS = (
    Column("dataset", whole=True),
    "location",
    "lots",
    "late",
    Column("open from", whole=True),
    "amiss",
)


@app.command(name="list")
def list_arrivals(
    *, namespace: Namespace = None, remote: RemoteFlags = REMOTE, as_json: Json = False
) -> None:
    """List where datasets arrive, how far each has come, and what is amiss there."""
    with remote.connect() as client:
        found = client.arrivals(namespace)
    if as_json:
        write_json(found)
        return
    if not found.arrivals:
        note("nothing arrives yet; declare where it does with `penstock arcs apply FILE`")
        return
    write_table(_COLUMNS, map(_row, found.arrivals))


@app.command
def show(
    dataset: Dataset,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Show where a dataset arrives, how far it has come, and what was refused."""
    with remote.connect() as client:
        found = client.arrival(*find_dataset(client, dataset, namespace))
    if as_json:
        write_json(found)
        return
    _write(found)


@app.command
def delete(
    dataset: Dataset,
    /,
    *,
    namespace: Namespace = None,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Watch a location no more; the lots stay, and so does which object is in which."""
    with remote.connect() as client:
        found = client.arrival(*exact_dataset(client, dataset, namespace))
        client.delete_arrival(found.namespace, found.dataset)
    if as_json:
        write_json(found)
    else:
        write_line(f"{found.location} is not watched any more for {_name(found)}; its lots stay")


def _name(found: ShownArrival) -> str:
    return f"{found.namespace}/{found.dataset}"


def _row(found: ShownArrival) -> tuple[Cell, ...]:
    return (
        _name(found),
        found.location,
        found.interval or "by name",
        found.late,
        show_time(found.open_from),
        found.failed.error if found.failed is not None else _untaken(found),
    )


def _untaken(found: ShownArrival) -> str | None:
    """The objects that can be in no lot, in words."""
    if found.untaken is None:
        return None
    one = found.untaken
    return f"{one.count:,} can be in no lot, such as {one.example!r}: {one.reason}"


def _write(found: ShownArrival) -> None:
    failed, most = found.failed, found.digest_bytes_max
    write_fields(
        (
            ("dataset", f"{_name(found)}, version {found.version}"),
            ("location", found.location),
            ("lots", found.interval or "by name"),
            ("time", found.time),
            ("pattern", found.pattern or None),
            ("grace", f"{found.grace_seconds} s"),
            ("late", found.late),
            ("start", found.start or None),
            ("no objects", "the lot is " + found.missing if found.interval else None),
            ("digests", f"of objects up to {show_bytes(most)}" if most else "are not made"),
            ("open from", show_time(found.open_from)),
            ("cannot look", f"since {show_time(failed.since)}: {failed.error}" if failed else None),
            ("objects", _untaken(found)),
            ("since", show_time(found.created_at)),
            ("changed", show_time(found.updated_at)),
        )
    )
    if found.refused:
        write_line()
        write_table(
            ("refused", Column("lot", whole=True), Column("size", numbers=True), "at"),
            ((r.uri, r.lot, show_bytes(r.size), show_time(r.at)) for r in found.refused),
        )
