"""`penstock lineage`."""

from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from penstock.cli.flags import REMOTE, Json, RemoteFlags, switch
from penstock.cli.graphs import Asked, write_columns, write_lineage
from penstock.cli.printing import write_json
from penstock.cli.references import find_node
from penstock.cli.times import read_moment
from penstock.client.history import Direction
from penstock.errors import Invalid

app = App(
    name="lineage",
    help_epilogue="""Examples:
  penstock lineage daily_revenue
  penstock lineage dataset:warehouse:marts.daily_revenue --direction upstream --hops 6
  penstock lineage warehouse/marts.daily_revenue --columns
  penstock lineage warehouse/marts.daily_revenue --columns --indirect
  penstock lineage job:shop:daily_shop.load_chunks --history
  penstock lineage daily_revenue --as-of 2026-11-14T09:00:00Z
  penstock lineage 'dataset:warehouse:marts.daily_revenue#V3'

■ is a dataset with the number of its current version, ● a job with the state
of its last run.""",
)


@app.default
def lineage(
    node: Annotated[
        str,
        Parameter(help="dataset:NAMESPACE:NAME, job:NAMESPACE:NAME, run:ID, or just a name"),
    ],
    /,
    *,
    hops: Annotated[
        int, Parameter(help="how many edges away to look", validator=Number(gte=0))
    ] = 3,
    direction: Annotated[Direction, Parameter(help="which way to look")] = "both",
    history: Annotated[bool, switch("all edges that jobs ever had, not only current ones")] = False,
    as_of: Annotated[
        str | None, Parameter(help="as it was at this time; 2d is two days ago")
    ] = None,
    columns: Annotated[bool, switch("fields instead of datasets")] = False,
    indirect: Annotated[
        bool, switch("with --columns, also the keys of joins, filters and sorts")
    ] = False,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """Draw what a dataset or job is made from, and what is made from it."""
    if indirect and not columns:
        raise Invalid("--indirect shows fields; add --columns")
    at = read_moment(as_of)
    with remote.connect() as client:
        node_id = find_node(client, node)
        asked = Asked(node_id, hops, direction, "all" if history else "current", at, indirect)
        if as_json and columns:
            write_json(asked.columns(client))
        elif as_json:
            write_json(asked.graph(client, direction))
        elif columns:
            write_columns(client, asked)
        else:
            write_lineage(client, asked)
