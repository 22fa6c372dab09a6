"""The current lineage graph, on both databases."""

from typing import Any

import msgspec
import pytest

from penstock.catalog.lineage.graph import lineage
from penstock.catalog.rows import AliasRow, Origin
from penstock.clock import format_time
from penstock.db import Database
from penstock.errors import Invalid, NotFound, TooLarge
from penstock.ids import dataset_id
from penstock.schema.lineage import DatasetNode, JobNode
from penstock.schema.shape import stored_json
from tests.contract.catalog_rows import NAMESPACE, NOW
from tests.contract.lineage_rows import Scene, arrows, at, nodes

CHAIN = {("raw", "clean"), ("clean", "orders"), ("orders", "report"), ("report", "totals")}


def chain() -> Scene:
    """raw → clean → orders → report → totals."""
    scene = Scene()
    scene.job("clean", ["raw"], ["orders"])
    scene.job("report", ["orders"], ["totals"])
    return scene


def show(database: Database, node_id: str, **options: Any) -> tuple[list[str], set[Any]]:
    with database.read() as tx:
        graph = lineage(tx, node_id, **options)
    return nodes(graph), arrows(graph)


def dataset_node(name: str) -> str:
    return f"dataset:{NAMESPACE}:{name}"


def job_node(name: str) -> str:
    return f"job:{NAMESPACE}:{name}"


def test_a_graph_holds_both_directions_sorted_by_id(database: Database) -> None:
    chain().save(database)
    names = ["orders", "raw", "totals", "clean", "report"]
    for node_id in (dataset_node("orders"), dataset_node("raw"), job_node("report")):
        assert show(database, node_id) == (names, CHAIN)


def test_a_walk_in_one_direction_never_turns_back(database: Database) -> None:
    scene = chain()
    scene.job("audit", ["raw"], ["findings"])
    scene.save(database)
    upstream = show(database, dataset_node("orders"), direction="upstream")
    assert upstream == (["orders", "raw", "clean"], {("raw", "clean"), ("clean", "orders")})
    downstream = show(database, job_node("clean"), direction="downstream")
    assert downstream == (["orders", "totals", "clean", "report"], CHAIN - {("raw", "clean")})
    both, _ = show(database, dataset_node("totals"))
    assert {"audit", "findings"} <= set(both)


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        (0, {"raw"}),
        (1, {"raw", "clean"}),
        (2, {"raw", "clean", "orders"}),
        (3, {"raw", "clean", "orders", "report"}),
        (4, {"raw", "clean", "orders", "report", "totals"}),
    ],
)
def test_hops_count_edges(database: Database, hops: int, expected: set[str]) -> None:
    chain().save(database)
    nodes, edges = show(database, dataset_node("raw"), hops=hops)
    assert set(nodes) == expected
    assert edges == {edge for edge in CHAIN if set(edge) <= expected}


@pytest.mark.parametrize(
    ("node_id", "depth", "expected"),
    [
        (dataset_node("raw"), 0, {"raw", "clean", "orders"}),
        (dataset_node("orders"), 0, {"raw", "clean", "orders"}),
        (dataset_node("orders"), 1, {"raw", "clean", "orders", "report", "totals"}),
        (job_node("report"), 0, {"orders", "report", "totals"}),
        (job_node("report"), 1, {"raw", "clean", "orders", "report", "totals"}),
    ],
)
def test_depth_counts_jobs_with_all_their_datasets(
    database: Database, node_id: str, depth: int, expected: set[str]
) -> None:
    chain().save(database)

    nodes, edges = show(database, node_id, depth=depth)

    assert set(nodes) == expected
    assert edges == {edge for edge in CHAIN if set(edge) <= expected}


def test_depth_in_one_direction_never_turns_back(database: Database) -> None:
    chain().save(database)

    up = show(database, dataset_node("orders"), depth=0, direction="upstream")
    down = show(database, dataset_node("orders"), depth=0, direction="downstream")
    of_job = show(database, job_node("report"), depth=0, direction="upstream")

    assert up == (["orders", "raw", "clean"], {("raw", "clean"), ("clean", "orders")})
    assert down == (["orders", "totals", "report"], {("orders", "report"), ("report", "totals")})
    assert of_job == (["orders", "report"], {("orders", "report")})


def test_depth_starts_at_readers_if_every_writer_is_deleted(database: Database) -> None:
    scene = chain()
    scene.job("clean", hidden=1, hidden_at=at(1))
    scene.save(database)

    nodes, _ = show(database, dataset_node("orders"), depth=0)

    assert nodes == ["orders", "totals", "report"]


def test_a_dataset_without_jobs_is_its_own_graph(database: Database) -> None:
    scene = Scene()
    scene.dataset("alone")
    scene.save(database)

    assert show(database, dataset_node("alone"), depth=3) == (["alone"], set())


def food_delivery() -> Scene:
    """Jobs and tables of a delivery service, in the shape of Marquez's demo metadata."""
    scene = Scene()
    sources = ("categories", "menu_items", "menus", "orders", "customers", "drivers")
    for name in (*sources, "order_status", "restaurants"):
        scene.job(f"etl_{name}", [], [f"public.{name}"])
    for name, reads, writes in (
        ("etl_orders_7_days", ["categories", "menu_items", "menus", "orders"], "orders_7_days"),
        (
            "etl_delivery_7_days",
            ["customers", "drivers", "order_status", "orders_7_days", "restaurants"],
            "delivery_7_days",
        ),
        ("delivery_times_7_days", ["delivery_7_days"], "top_delivery_times"),
        ("email_discounts", ["customers", "delivery_7_days"], "discounts"),
        (
            "orders_popular_day_of_week",
            ["customers", "delivery_7_days"],
            "popular_orders_day_of_week",
        ),
    ):
        scene.job(name, [f"public.{read}" for read in reads], [f"public.{writes}"])
    return scene


@pytest.mark.parametrize(("depth", "count"), [(0, 2), (1, 7), (2, 16), (3, 26)])
def test_each_depth_has_as_many_nodes_as_in_marquez(
    database: Database, depth: int, count: int
) -> None:
    food_delivery().save(database)

    nodes, _ = show(database, dataset_node("public.orders"), depth=depth)

    assert len(nodes) == count


def test_a_graph_over_the_size_limit_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain().save(database)
    monkeypatch.setattr("penstock.catalog.lineage.graph.NODES_MAX", 3)
    with pytest.raises(TooLarge, match="more than 3 nodes; ask for a smaller depth"):
        show(database, dataset_node("raw"))
    assert show(database, dataset_node("raw"), hops=2)[0] == ["orders", "raw", "clean"]


def test_a_diamond_shows_each_node_once(database: Database) -> None:
    scene = Scene()
    scene.job("left", ["source"], ["l"])
    scene.job("right", ["source"], ["r"])
    scene.job("join", ["l", "r"], ["sink"])
    scene.save(database)
    nodes, edges = show(database, dataset_node("sink"), direction="upstream")
    assert nodes == ["l", "r", "sink", "source", "join", "left", "right"]
    assert len(edges) == 7


def test_a_walk_ends_on_a_cycle(database: Database) -> None:
    scene = Scene()
    scene.job("append", ["log"], ["log"])
    scene.job("there", ["log"], ["far"])
    scene.job("back", ["far"], ["log"])
    scene.save(database)
    for direction in ("both", "upstream", "downstream"):
        nodes, edges = show(database, dataset_node("log"), direction=direction)
        assert nodes == ["far", "log", "append", "back", "there"]
        assert {("log", "append"), ("append", "log")} <= edges
        assert len(edges) == 6


def test_edges_between_the_farthest_nodes_are_shown(database: Database) -> None:
    scene = Scene()
    scene.job("make", ["input"], ["result"])
    scene.job("feed", ["result"], ["input"])
    scene.save(database)
    nodes, edges = show(database, dataset_node("result"), hops=3, direction="upstream")
    assert nodes == ["input", "result", "feed", "make"]
    assert ("result", "feed") in edges


def test_history_selects_current_or_all_edges(database: Database) -> None:
    scene = Scene()
    scene.job("chunks", ["day3"], ["table"])
    scene.job("chunks", ["day1", "day2"], current=False)
    scene.save(database)
    assert show(database, job_node("chunks"))[0] == ["day3", "table", "chunks"]
    nodes, _ = show(database, job_node("chunks"), history="all")
    assert nodes == ["day1", "day2", "day3", "table", "chunks"]
    assert show(database, dataset_node("day1"))[0] == ["day1"]
    assert "chunks" in show(database, dataset_node("day1"), history="all")[0]


def test_deleted_nodes_are_neither_shown_nor_crossed(database: Database) -> None:
    scene = chain()
    scene.dataset("orders", hidden=1, hidden_at=at(1))
    scene.save(database)
    assert show(database, job_node("clean")) == (["raw", "clean"], {("raw", "clean")})
    scene.dataset("orders", hidden=0)
    scene.job("report", hidden=1, hidden_at=at(1))
    scene.save(database)
    assert show(database, dataset_node("orders"))[0] == ["orders", "raw", "clean"]


def test_the_requested_node_is_shown_even_if_deleted(database: Database) -> None:
    scene = chain()
    scene.dataset("orders", hidden=1, hidden_at=at(1))
    scene.job("report", hidden=1, hidden_at=at(1))
    scene.save(database)
    with database.read() as tx:
        graph = lineage(tx, dataset_node("orders"))
        of_job = lineage(tx, job_node("report"))
    assert nodes(graph) == ["orders", "raw", "clean"]
    assert arrows(graph) == {("raw", "clean"), ("clean", "orders")}
    root = graph.graph[0]
    assert isinstance(root, DatasetNode)
    assert root.data.deleted
    assert nodes(of_job) == ["totals", "report"]


def test_a_job_lists_all_inputs_and_outputs_at_any_depth(database: Database) -> None:
    scene = Scene()
    scene.job("dag")
    parent = scene.job("dag").id
    scene.job("dag.load", ["b", "a"], ["out"], parent_job_id=parent, description="loads")
    scene.run("dag.load", 5, 9, ["b", "a"], ["out"])
    scene.save(database)
    with database.read() as tx:
        node = lineage(tx, job_node("dag.load"), hops=0).graph[0]
    assert isinstance(node, JobNode)
    assert [name.name for name in node.data.inputs] == ["a", "b"]
    assert [name.name for name in node.data.outputs] == ["out"]
    assert (node.in_edges, node.out_edges) == ([], [])
    assert (node.data.simple_name, node.data.parent_job_name) == ("load", "dag")
    run = node.data.latest_run
    assert run is not None
    assert (run.state, run.duration_ms) == ("COMPLETED", 4000)
    assert (run.started_at, run.ended_at) == (format_time(at(5)), format_time(at(9)))


def test_a_dataset_shows_its_current_version(database: Database) -> None:
    scene = Scene()
    scene.dataset("orders", tags='["gold"]', field_tags='{"id":["pii"]}')
    first = scene.version("orders", 1, published=at(1))
    scene.version("orders", 2, published=None, fields="[]")
    scene.dataset("empty")
    scene.save(database)
    with database.read() as tx:
        node = lineage(tx, dataset_node("orders")).graph[0]
        bare = lineage(tx, dataset_node("empty")).graph[0]
    data = msgspec.json.decode(msgspec.json.encode(node))["data"]
    assert (data["currentVersion"], data["currentVersionNumber"]) == (first.id, 1)
    assert data["lastModifiedAt"] == format_time(at(1))
    expected = [{"name": "id", "type": "INT", "tags": ["pii"], "description": None}]
    assert (data["fields"], data["tags"]) == (expected, ["gold"])
    assert isinstance(bare, DatasetNode)
    assert (bare.data.current_version, bare.data.last_modified_at) == (None, None)
    assert stored_json(bare.data.fields) == b"[]"


def test_a_dataset_without_writers_has_the_fields_readers_reported(database: Database) -> None:
    scene = Scene()
    scene.dataset("seen", observed='{"schema":{"fields":[{"name":"x","type":"TEXT"}]}}')
    scene.version("seen", 1, published=0, origin=Origin.IMPLIED, fields="[]")
    scene.save(database)
    with database.read() as tx:
        node = lineage(tx, dataset_node("seen")).graph[0]
    assert isinstance(node, DatasetNode)
    assert msgspec.json.decode(stored_json(node.data.fields))[0]["name"] == "x"
    assert (node.data.current_version_number, node.data.last_modified_at) == (1, None)


def test_the_json_has_the_shape_of_marquez(database: Database) -> None:
    chain().save(database)
    with database.read() as tx:
        wire = msgspec.json.decode(msgspec.json.encode(lineage(tx, job_node("clean"), hops=1)))
    assert list(wire) == ["graph"]
    assert [node["type"] for node in wire["graph"]] == ["DATASET", "DATASET", "JOB"]
    orders, _, clean = wire["graph"]
    assert set(clean) == {"id", "type", "data", "inEdges", "outEdges"}
    assert clean["outEdges"] == [{"origin": clean["id"], "destination": orders["id"]}]
    assert orders["inEdges"] == clean["outEdges"]
    assert set(clean["data"]) == {
        "id", "type", "name", "simpleName", "parentJobName", "createdAt", "updatedAt",
        "namespace", "inputs", "outputs", "location", "description", "latestRun",
    }  # fmt: skip
    assert set(orders["data"]) == {
        "id", "type", "name", "physicalName", "createdAt", "updatedAt", "namespace", "sourceName",
        "fields", "tags", "lastModifiedAt", "lastLifecycleState", "description", "currentVersion",
        "currentVersionNumber", "deleted",
    }  # fmt: skip
    assert clean["data"]["createdAt"] == format_time(NOW)


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("postgres://db.example.org:5432", "shop.public.orders"),
        ("s3://bucket", "a/b c/part#2"),
        ("bigquery", "project:set.table"),
        ("a:b:c", "d:e#V1"),
        ("unit", "Größe 雪"),
    ],
)
def test_names_with_colons_hashes_and_spaces_are_found(
    database: Database, namespace: str, name: str
) -> None:
    scene = Scene()
    scene.dataset(name, namespace)
    scene.save(database)
    with database.read() as tx:
        graph = lineage(tx, f"dataset:{namespace}:{name}")
    assert [node.id for node in graph.graph] == [f"dataset:{namespace}:{name}"]


def test_an_ambiguous_node_id_prefers_the_longest_visible_namespace(
    database: Database,
) -> None:
    scene = Scene()
    scene.dataset("b:c", "a")
    scene.dataset("c", "a:b")
    scene.save(database)

    def shown_dataset() -> tuple[str, str]:
        with database.read() as tx:
            (node,) = lineage(tx, "dataset:a:b:c").graph
        return node.data.namespace, node.data.name

    assert shown_dataset() == ("a:b", "c")
    scene.dataset("c", "a:b", hidden=1, hidden_at=at(1))
    scene.save(database)
    assert shown_dataset() == ("a", "b:c")


def test_a_second_name_leads_to_the_same_dataset(database: Database) -> None:
    scene = chain()
    id = dataset_id("hive://meta:9083", "shop.orders")
    orders = scene.dataset("orders").id
    scene.aliases.append(AliasRow(id, "hive://meta:9083", "shop.orders", orders, "TABLE"))
    scene.save(database)
    assert show(database, "dataset:hive://meta:9083:shop.orders")[1] == CHAIN


@pytest.mark.parametrize(
    "node_id",
    ["", "orders", "dataset:", "dataset:orders", "table:a:b", "job::", "dataset:a:b\x00c"],
)
def test_an_invalid_node_id_is_refused_with_an_example(database: Database, node_id: str) -> None:
    with pytest.raises(Invalid, match="write dataset:NAMESPACE:NAME"):
        show(database, node_id)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node_id": dataset_node("nowhere")}, "there is no dataset"),
        ({"node_id": job_node("nothing")}, "there is no job"),
        ({"node_id": "run:not-a-run"}, "there is no run"),
        ({"node_id": dataset_node("orders") + "#V7"}, "has no version V7"),
    ],
)
def test_an_error_names_the_missing_node(
    database: Database, options: dict[str, Any], message: str
) -> None:
    chain().save(database)
    with pytest.raises(NotFound, match=message):
        show(database, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": -1}, "depth -1"),
        ({"hops": -1}, "hops -1"),
        ({"depth": 1, "hops": 1}, "depth and hops are both set"),
        ({"direction": "sideways"}, "'sideways' is none of both, upstream, downstream"),
        ({"history": "some"}, "'some' is neither current nor all"),
        ({"node_id": "dataset:" + ":a" * 80}, "more than 64 colons"),
        ({"node_id": job_node("clean") + "#V2"}, "versions of a job have no numbers"),
    ],
)
def test_invalid_parameters_are_refused(
    database: Database, options: dict[str, Any], message: str
) -> None:
    chain().save(database)
    with pytest.raises(Invalid, match=message):
        show(database, **{"node_id": dataset_node("orders"), **options})
