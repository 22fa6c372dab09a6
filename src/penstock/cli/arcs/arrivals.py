"""`penstock arrivals`."""

from cyclopts import App

from penstock.cli.formats import show_bytes, show_time
from penstock.cli.options import OPTIONS, Namespace, Options
from penstock.cli.output import Cell, Column, note, write_fields, write_line, write_table
from penstock.cli.targets import Dataset, exact_dataset, find_dataset
from penstock.schema.arrivals import ShownArrival

app = App(
    name="arrivals",
    help_epilogue="""Examples:
  penstock arrivals list
  penstock arrivals show shop/orders
  penstock arrivals delete shop/orders

Declare arrivals with `penstock arcs apply FILE`. Engines watch their locations.""",
)

_COLUMNS = (
    Column("dataset", whole=True),
    "location",
    "lots",
    "late",
    Column("open from", whole=True),
    "problem",
)


@app.command(name="list")
def list_arrivals(*, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """List the locations where objects arrive, with their progress and problems."""
    with options.connect() as client:
        page = client.arrivals(namespace)
    if not page.arrivals and not options.json:
        note("there are no arrivals yet; declare one with `penstock arcs apply FILE`")
        return
    options.write_table(page, _COLUMNS, map(_row, page.arrivals))


@app.command
def show(dataset: Dataset, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Show the location of a dataset's objects, its progress, and refused objects."""
    with options.connect() as client:
        arrival = client.arrival(*find_dataset(client, dataset, namespace))
    options.write(arrival, _write)


@app.command
def delete(dataset: Dataset, /, *, namespace: Namespace = None, options: Options = OPTIONS) -> None:
    """Stop watching a location; its lots and their objects stay."""
    with options.connect() as client:
        arrival = client.arrival(*exact_dataset(client, dataset, namespace))
        client.delete_arrival(arrival.namespace, arrival.dataset)
    options.write_line(
        arrival, f"{arrival.location} is no longer watched for {_name(arrival)}; its lots stay"
    )


def _name(arrival: ShownArrival) -> str:
    return f"{arrival.namespace}/{arrival.dataset}"


def _row(arrival: ShownArrival) -> tuple[Cell, ...]:
    return (
        _name(arrival),
        arrival.location,
        arrival.interval or "by name",
        arrival.late,
        show_time(arrival.open_from),
        arrival.failed.error if arrival.failed is not None else _untaken(arrival),
    )


def _untaken(arrival: ShownArrival) -> str | None:
    """Describe the objects that fit no lot."""
    if arrival.untaken is None:
        return None
    untaken = arrival.untaken
    return f"{untaken.count:,} fit no lot, such as {untaken.example!r}: {untaken.reason}"


def _write(arrival: ShownArrival) -> None:
    failed, digest_max = arrival.failed, arrival.digest_bytes_max
    write_fields(
        (
            ("dataset", f"{_name(arrival)}, version {arrival.version}"),
            ("location", arrival.location),
            ("lots", arrival.interval or "by name"),
            ("time", arrival.time),
            ("pattern", arrival.pattern or None),
            ("grace", f"{arrival.grace_seconds} s"),
            ("late", arrival.late),
            ("start", arrival.start or None),
            ("no objects", "the lot is " + arrival.missing if arrival.interval else None),
            (
                "digests",
                f"of objects up to {show_bytes(digest_max)}" if digest_max else "are not made",
            ),
            ("open from", show_time(arrival.open_from)),
            ("cannot look", f"since {show_time(failed.since)}: {failed.error}" if failed else None),
            ("objects", _untaken(arrival)),
            ("since", show_time(arrival.created_at)),
            ("changed", show_time(arrival.updated_at)),
        )
    )
    if arrival.refused:
        write_line()
        write_table(
            ("refused", Column("lot", whole=True), Column("size", numbers=True), "at"),
            ((r.uri, r.lot, show_bytes(r.size), show_time(r.at)) for r in arrival.refused),
        )
