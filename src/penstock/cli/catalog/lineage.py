"""`penstock lineage`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.text import Text

from penstock.cli.drawing import Label, Neighbors, Symbols, Tree, fit, symbols_for
from penstock.cli.formats import read_moment, show_duration, show_time
from penstock.cli.options import OPTIONS, Options, option
from penstock.cli.output import line_width, out, plain, state_text, write_json, write_line
from penstock.cli.targets import find_node
from penstock.client import Client
from penstock.client.resources.catalog import Direction, History
from penstock.errors import Invalid
from penstock.schema.catalog import InputField
from penstock.schema.lineage import (
    ColumnGraph,
    DatasetNode,
    FieldNode,
    IndirectLineage,
    JobNode,
    LineageGraph,
)

Node = JobNode | DatasetNode

_TITLES: Mapping[Direction, str] = {"upstream": "made from", "downstream": "used by"}


@dataclass(frozen=True)
class GraphQuery:
    """A node and the graph around it."""

    node_id: str
    hops: int
    direction: Direction = "both"
    history: History = "current"
    as_of: str | None = None
    with_indirect: bool = False

    def graph(self, client: Client, direction: Direction) -> LineageGraph:
        """Fetch the graph in one direction, or in both."""
        return client.lineage(
            self.node_id,
            hops=self.hops,
            direction=direction,
            history=self.history,
            as_of=self.as_of,
        )

    def columns(self, client: Client) -> ColumnGraph:
        """Fetch the graph of fields."""
        return client.column_lineage(
            self.node_id,
            depth=self.hops,
            with_downstream=self.direction != "upstream",
            as_of=self.as_of,
            with_indirect=self.with_indirect,
        )

    @property
    def directions(self) -> Sequence[Direction]:
        """The directions to draw, in order."""
        return ("upstream", "downstream") if self.direction == "both" else (self.direction,)


def write_lineage(client: Client, query: GraphQuery) -> None:
    """Draw what a node is made from, then what is made from it."""
    console = out()
    symbols = symbols_for(console.encoding)
    root = client.lineage(query.node_id, hops=0, as_of=query.as_of).graph[0]
    write_line(fit(_label(root, symbols, frozenset()), "", "", symbols.more, line_width(console)))
    for line in _conditions(root, query):
        write_line(Text(f"  {plain(line)}", "dim"))
    for direction in query.directions:
        nodes = {node.id: node for node in query.graph(client, direction).graph}
        tree = _tree(nodes, direction, symbols, line_width(console))
        write_line()
        _write_direction(direction, list(tree.draw(root.id)))


def _tree(nodes: Mapping[str, Node], direction: Direction, symbols: Symbols, width: int) -> Tree:
    def label(node: str) -> Label:
        return _label(nodes[node], symbols, _missing(nodes, nodes[node], direction))

    return Tree(label, _neighbors(nodes, direction), symbols, width)


def _write_direction(direction: Direction, lines: Sequence[Text]) -> None:
    write_line(Text(_TITLES[direction], "bold"))
    for line in lines or [Text("  nothing known", "dim")]:
        write_line(line)


def _conditions(root: Node, query: GraphQuery) -> Iterator[str]:
    if root.data.description:
        yield root.data.description
    if query.as_of:
        yield f"as of {show_time(query.as_of)} UTC"
    if query.history == "all":
        yield "with all past edges"


def _neighbors(
    nodes: Mapping[str, Node] | Mapping[str, FieldNode], direction: Direction
) -> Neighbors:
    def upstream(node: str) -> Sequence[str]:
        return [edge.origin for edge in nodes[node].in_edges]

    def downstream(node: str) -> Sequence[str]:
        return [edge.destination for edge in nodes[node].out_edges]

    return upstream if direction == "upstream" else downstream


def _missing(nodes: Mapping[str, Node], node: Node, direction: Direction) -> frozenset[str]:
    """Return the datasets of a job that are outside the graph."""
    if not isinstance(node, JobNode):
        return frozenset()
    side = node.data.inputs if direction == "upstream" else node.data.outputs
    return frozenset(f"dataset:{d.namespace}:{d.name}" for d in side) - nodes.keys()


def _label(node: Node, symbols: Symbols, missing: frozenset[str]) -> Label:
    data = node.data
    namespace = Text(plain(data.namespace), "dim")
    if isinstance(node, DatasetNode):
        number = node.data.current_version_number
        version = Text("" if number is None else f"V{number}", "cyan")
        gone = Text("deleted", "red") if node.data.deleted else Text()
        details = (version, gone, namespace)
        return Label(symbols.dataset, data.name, tuple(filter(None, details)), "blue")
    run = node.data.latest_run
    state = state_text(run.state if run else "never ran")
    took = Text(show_duration(run.duration_ms if run else None))
    more = Text(f"{symbols.more} {len(missing)} more" if missing else "", "yellow")
    return Label(
        symbols.job,
        data.name,
        tuple(filter(None, (state, took, more, namespace))),
        str(state.style),
    )


def write_columns(client: Client, query: GraphQuery) -> None:
    """Draw the fields that a node's fields are made from, and the fields made from them."""
    console = out()
    symbols = symbols_for(console.encoding)
    starts = [
        node.id for node in client.column_lineage(query.node_id, depth=0, as_of=query.as_of).graph
    ]
    graph = query.columns(client)
    nodes = {node.id: node for node in graph.graph}
    for direction in query.directions:
        lines: list[Text] = []
        for start in starts:
            lines += _field_lines(nodes, start, direction, symbols, line_width(console))
        _write_direction(direction, lines)
    if query.with_indirect:
        write_line(Text("keys of joins, filters and sorts", "bold"))
        for lineage in graph.indirect or ():
            for line in _indirect_lines(lineage, symbols, line_width(console)):
                write_line(line)
        if not graph.indirect:
            write_line(Text("  none known", "dim"))


def _indirect_lines(lineage: IndirectLineage, symbols: Symbols, width: int) -> Iterator[Text]:
    """Draw a dataset, and below it the fields that all its fields depend on."""
    namespace = Text(plain(lineage.namespace), "dim")
    label = Label(symbols.dataset, lineage.dataset, (namespace,), "blue")
    yield fit(label, "", "", symbols.more, width)
    for source in lineage.input_fields:
        guide = symbols.last if source is lineage.input_fields[-1] else symbols.branch
        yield fit(_input_label(source, symbols), guide, "", symbols.more, width)


def _input_label(source: InputField, symbols: Symbols) -> Label:
    details = (
        Text(plain(source.transformation_type or "").lower(), "yellow"),
        Text(plain(source.transformation_description or "")),
        Text(plain(source.namespace), "dim"),
    )
    name = f"{source.dataset}.{source.field}"
    return Label(symbols.field, name, tuple(filter(None, details)), "blue")


def _field_lines(
    nodes: Mapping[str, FieldNode], start: str, direction: Direction, symbols: Symbols, width: int
) -> list[Text]:
    """Draw a field and the tree below it; nothing without a tree."""

    def label(node: str) -> Label:
        return _field_label(nodes[node], symbols)

    below = list(Tree(label, _neighbors(nodes, direction), symbols, width).draw(start))
    return [fit(label(start), "", "", symbols.more, width), *below] if below else []


def _field_label(node: FieldNode, symbols: Symbols) -> Label:
    data = node.data
    indirect = ", ".join(f"{s.dataset}.{s.field}" for s in data.input_fields if s.indirect)
    details = (
        Text(plain(data.field_type), "cyan"),
        Text(plain(data.transformation_type or "").lower(), "yellow"),
        Text(plain(f"indirectly from {indirect}") if indirect else "", "yellow"),
        Text(plain(data.transformation_description or "")),
        Text(plain(data.namespace), "dim"),
    )
    return Label(
        symbols.field, f"{data.dataset}.{data.field}", tuple(filter(None, details)), "blue"
    )


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

■ is a dataset with its current version, ● a job with the state of its last run.""",
)


@app.default
def lineage(
    node: Annotated[
        str,
        Parameter(help="dataset:NAMESPACE:NAME, job:NAMESPACE:NAME, run:ID, or a name"),
    ],
    /,
    *,
    hops: Annotated[
        int, Parameter(help="the largest distance, in edges", validator=Number(gte=0))
    ] = 3,
    direction: Annotated[Direction, Parameter(help="the direction of the edges")] = "both",
    history: Annotated[bool, option("also edges that jobs no longer have")] = False,
    as_of: Annotated[
        str | None, Parameter(help="the graph at this time; 2d is two days ago")
    ] = None,
    columns: Annotated[bool, option("fields instead of datasets")] = False,
    indirect: Annotated[
        bool, option("with --columns, also the keys of joins, filters and sorts")
    ] = False,
    options: Options = OPTIONS,
) -> None:
    """Draw what a dataset or job is made from, and what is made from it."""
    if indirect and not columns:
        raise Invalid("--indirect needs --columns")
    at = read_moment(as_of)
    with options.connect() as client:
        node_id = find_node(client, node)
        query = GraphQuery(node_id, hops, direction, "all" if history else "current", at, indirect)
        if options.json and columns:
            write_json(query.columns(client))
        elif options.json:
            write_json(query.graph(client, direction))
        elif columns:
            write_columns(client, query)
        else:
            write_lineage(client, query)
