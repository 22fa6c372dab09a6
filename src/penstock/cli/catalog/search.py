"""`penstock search`."""

from typing import Annotated, Literal

from cyclopts import App, Parameter
from msgspec import to_builtins

from penstock.cli.formats import show_time
from penstock.cli.options import OPTIONS, Limit, NamespaceFilter, Offset, Options, option
from penstock.cli.output import Column, note, write_json, write_line, write_rest, write_table
from penstock.client.resources.catalog import Kind
from penstock.schema.search import SearchRecord

app = App(
    name="search",
    help_epilogue="""Examples:
  penstock search orders
  penstock search customer email --kind dataset
  penstock search 20261115PT1H09
  penstock search ark:/99999/fk4rx9d523
  penstock search north.csv

Words of names, descriptions, fields and tags find datasets and jobs; the start
of a word is enough. An id, an ARK, a local id, a file name, a SHA-512 digest or
a depositor, or its start, finds runs, lots, batches, ingest jobs, stored
objects and files.""",
)


@app.default
def search(
    *words: Annotated[str, Parameter(help="the words to find")],
    kind: Annotated[
        Literal["dataset", "job"] | None, Parameter(help="only datasets, or only jobs")
    ] = None,
    namespace: NamespaceFilter = None,
    newest: Annotated[bool, option("last updated first")] = False,
    limit: Limit = 20,
    offset: Offset = 0,
    options: Options = OPTIONS,
) -> None:
    """Find datasets and jobs by words, and other things by ids, names and digests."""
    kinds: dict[str, Kind] = {"dataset": "DATASET", "job": "JOB"}
    text = " ".join(words)
    with options.connect() as client:
        results = client.search(
            text,
            kind=kinds[kind] if kind else None,
            namespace=namespace,
            by_update=newest,
            limit=limit,
            offset=offset,
        )
        is_first = kind is None and offset == 0 and limit > 0
        matches = (
            client.search_records(text, namespace=namespace, limit=limit) if is_first else None
        )
    if options.json:
        write_json({**to_builtins(results), **(to_builtins(matches) if matches else {})})
        return
    records = matches.records if matches else ()
    if results.results or not records:
        write_table(
            ("kind", "name", "namespace", Column("updated", whole=True)),
            (
                (each.type.lower(), each.name, each.namespace, show_time(each.updated_at))
                for each in results.results
            ),
        )
        write_rest(len(results.results), results.total_count, offset)
    if results.results and records:
        write_line()
    if records:
        write_table(
            ("kind", Column("name", whole=True), "of", "matched by"),
            ((each.kind, each.name, _owner(each), _match(each)) for each in records),
        )
    if matches and matches.is_cut:
        note(f"the first {len(records)} are shown; --limit shows more, a longer text finds fewer")


def _match(record: SearchRecord) -> str:
    """Show the property that matches, with its value unless that is the name."""
    return record.matched if record.value == record.name else f"{record.matched} {record.value}"


def _owner(record: SearchRecord) -> str:
    """Return the dataset, job or object of a record, or its collection."""
    if record.dataset or record.job:
        return f"{record.namespace}/{record.dataset or record.job}"
    if record.kind == "file":
        return f"{record.ark} version {record.version}"
    return record.collection or ""
