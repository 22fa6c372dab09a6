"""`penstock search`."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.cli.flags import REMOTE, Json, Limit, Offset, RemoteFlags, switch
from penstock.cli.printing import Column, write_json, write_rest, write_table
from penstock.cli.times import show_time
from penstock.client.history import Kind

app = App(
    name="search",
    help_epilogue="""Examples:
  penstock search orders
  penstock search customer email --kind dataset

All words must be found, each may be cut short: in names, descriptions, fields
and tags.""",
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
    """Find datasets and jobs by words."""
    kinds: dict[str, Kind] = {"dataset": "DATASET", "job": "JOB"}
    with remote.connect() as client:
        found = client.search(
            " ".join(words),
            kind=kinds[kind] if kind else None,
            namespace=namespace,
            by_update=newest,
            limit=limit,
            offset=offset,
        )
    if as_json:
        write_json(found)
        return
    write_table(
        ("kind", "name", "namespace", Column("updated", whole=True)),
        ((r.type.lower(), r.name, r.namespace, show_time(r.updated_at)) for r in found.results),
    )
    write_rest(len(found.results), found.total_count, offset)
