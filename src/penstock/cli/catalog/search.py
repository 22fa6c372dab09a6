"""`penstock search`."""

from typing import Annotated, Literal

from cyclopts import App, Parameter
from msgspec import to_builtins

from penstock.cli.options import REMOTE, Json, Limit, Offset, RemoteFlags, switch
from penstock.cli.output import Column, note, write_json, write_line, write_rest, write_table
from penstock.cli.times import show_time
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

Datasets and jobs are found by words of their names, descriptions, fields and
tags; each word may be cut short. Runs, lots, batches, ingest jobs, stored
objects and files are found by an id, an ARK, a local id, a file name, a SHA-512
digest or a depositor, or by how it begins.""",
)


@app.default
def search(
    *words: Annotated[str, Parameter(help="what to look for")],
    kind: Annotated[
        Literal["dataset", "job"] | None, Parameter(help="only datasets, or only jobs")
    ] = None,
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="only in this namespace")
    ] = None,
    newest: Annotated[bool, switch("the last updated first")] = False,
    limit: Limit = 20,
    offset: Offset = 0,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Find datasets and jobs by words, and all else by ids, names and digests."""
    kinds: dict[str, Kind] = {"dataset": "DATASET", "job": "JOB"}
    text = " ".join(words)
    with remote.connect() as client:
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
    if as_json:
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
        note(f"the first {len(records)} are shown; a longer text finds fewer, --limit shows more")


def _match(record: SearchRecord) -> str:
    """The property that has the text, with its value unless that is the name."""
    return record.matched if record.value == record.name else f"{record.matched} {record.value}"


def _owner(record: SearchRecord) -> str:
    """The dataset, job or object that a record is part of, or its collection."""
    if record.dataset or record.job:
        return f"{record.namespace}/{record.dataset or record.job}"
    if record.kind == "file":
        return f"{record.ark} version {record.version}"
    return record.collection or ""
