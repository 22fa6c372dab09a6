"""Current and past column lineage, on both databases."""

from typing import Any

import msgspec
import pytest

from penstock.catalog.lineage.columns import column_lineage
from penstock.catalog.rows import replace
from penstock.db import Database
from penstock.errors import Invalid, NotFound
from penstock.schema.lineage import FieldNode
from tests.contract.catalog_rows import NAMESPACE
from tests.contract.lineage_rows import Scene, arrows, at, nodes


def fields(*names: str) -> str:
    return msgspec.json.encode(
        [{"name": name, "type": "INT", "tags": [], "description": None} for name in names]
    ).decode()


def shop() -> Scene:
    """raw.a and raw.b feed clean.id and clean.sum; clean.sum feeds report.total."""
    scene = Scene()
    scene.version("raw", 1, published=at(1), fields=fields("a", "b"))
    clean = scene.version("clean", 1, published=at(1), fields=fields("id", "sum", "note"))
    report = scene.version("report", 1, published=at(1), fields=fields("total"))
    scene.columns_of(clean, {"id": [("raw", "a")], "sum": [("raw", "a"), ("raw", "b")]})
    scene.columns_of(report, {"total": [("clean", "sum")]})
    scene.job("cleaning", ["raw"], ["clean"])
    scene.job("reporting", ["clean"], ["report"])
    return scene


def show(database: Database, node: str, **options: Any) -> tuple[list[str], set[tuple[str, str]]]:
    kind, _, name = node.partition(" ")
    with database.read() as tx:
        graph = column_lineage(tx, f"{kind}:{NAMESPACE}:{name}", **options)
    return nodes(graph), arrows(graph)


def test_a_field_shows_its_source_fields(database: Database) -> None:
    shop().save(database)
    nodes, edges = show(database, "datasetField report:total")
    assert nodes == ["clean:sum", "raw:a", "raw:b", "report:total"]
    assert edges == {
        ("clean:sum", "report:total"),
        ("raw:a", "clean:sum"),
        ("raw:b", "clean:sum"),
    }


def test_downstream_fields_appear_only_on_request(database: Database) -> None:
    shop().save(database)
    assert show(database, "datasetField raw:b") == (["raw:b"], set())
    nodes, edges = show(database, "datasetField raw:b", with_downstream=True)
    assert nodes == ["clean:sum", "raw:b", "report:total"]
    assert edges == {("raw:b", "clean:sum"), ("clean:sum", "report:total")}


def test_the_downstream_walk_never_goes_back_upstream(database: Database) -> None:
    shop().save(database)
    nodes, _ = show(database, "datasetField clean:id", with_downstream=True)
    assert nodes == ["clean:id", "raw:a"]


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (0, ["report:total"]),
        (1, ["clean:sum", "report:total"]),
        (2, ["clean:sum", "raw:a", "raw:b", "report:total"]),
    ],
)
def test_depth_counts_fields(database: Database, depth: int, expected: list[str]) -> None:
    shop().save(database)
    assert show(database, "datasetField report:total", depth=depth)[0] == expected


def test_a_dataset_node_stands_for_all_its_fields(database: Database) -> None:
    shop().save(database)
    nodes, _ = show(database, "dataset clean")
    assert nodes == ["clean:id", "clean:note", "clean:sum", "raw:a", "raw:b"]


def test_a_job_node_stands_for_the_fields_it_writes(database: Database) -> None:
    shop().save(database)
    assert show(database, "job reporting", depth=1)[0] == ["clean:sum", "report:total"]


def test_a_node_shows_its_type_version_and_all_inputs(database: Database) -> None:
    scene = shop()
    scene.columns = [
        replace(edge, type="DIRECT", description=f"from {edge.input_field}")
        for edge in scene.columns
    ]
    scene.save(database)
    with database.read() as tx:
        (node,) = column_lineage(tx, f"datasetField:{NAMESPACE}:clean:sum", depth=0).graph
    assert isinstance(node, FieldNode)
    wire = msgspec.json.decode(msgspec.json.encode(node))
    assert (wire["type"], wire["inEdges"], wire["outEdges"]) == ("DATASET_FIELD", [], [])
    version = next(row.id for row in scene.versions.values() if row.fields == fields("total"))
    assert wire["data"] == {
        "namespace": NAMESPACE,
        "dataset": "clean",
        "datasetVersion": scene.dataset("clean").current_version_id,
        "field": "sum",
        "fieldType": "INT",
        "transformationDescription": None,
        "transformationType": "DIRECT",
        "inputFields": [
            {
                "namespace": NAMESPACE,
                "dataset": "raw",
                "field": field,
                "transformationDescription": f"from {field}",
                "transformationType": "DIRECT",
            }
            for field in ("a", "b")
        ],
    }
    assert wire["data"]["datasetVersion"] != version


def test_the_walk_ends_on_a_cycle_of_fields(database: Database) -> None:
    scene = Scene()
    table = scene.version("table", 1, published=at(1), fields=fields("x", "y"))
    scene.columns_of(table, {"x": [("table", "y"), ("table", "x")], "y": [("table", "x")]})
    scene.save(database)
    nodes, edges = show(database, "datasetField table:x", with_downstream=True)
    assert nodes == ["table:x", "table:y"]
    assert edges == {
        ("table:x", "table:x"),
        ("table:x", "table:y"),
        ("table:y", "table:x"),
    }


def test_fields_with_one_name_in_two_datasets_stay_separate(database: Database) -> None:
    scene = Scene()
    for name, source in (("b", "a"), ("c", "b"), ("d", "other")):
        version = scene.version(name, 1, published=at(1), fields=fields("id", "x"))
        scene.columns_of(version, {"id": [(source, "id")], "x": [(source, "x")]})
    scene.save(database)
    assert show(database, "datasetField c:id")[0] == ["a:id", "b:id", "c:id"]
    assert show(database, "datasetField a:x", with_downstream=True)[0] == ["a:x", "b:x", "c:x"]


def changing() -> Scene:
    """clean.id comes from raw.a at second 10, and from raw.b since second 20."""
    scene = Scene()
    scene.version("raw", 1, published=at(1), fields=fields("a", "b"))
    first = scene.version("clean", 1, published=at(10), fields=fields("id"), created_at=at(5))
    second = scene.version("clean", 2, published=at(20), fields=fields("id"), created_at=at(15))
    scene.columns_of(first, {"id": [("raw", "a")]})
    scene.columns_of(second, {"id": [("raw", "b")]})
    return scene


def test_only_the_current_version_counts(database: Database) -> None:
    changing().save(database)
    assert show(database, "datasetField clean:id")[0] == ["clean:id", "raw:b"]
    assert show(database, "datasetField raw:a", with_downstream=True)[0] == ["raw:a"]


def test_as_of_uses_the_version_current_at_that_time(database: Database) -> None:
    changing().save(database)
    assert show(database, "datasetField clean:id", as_of=at(19))[0] == ["clean:id", "raw:a"]
    assert show(database, "datasetField clean:id", as_of=at(20))[0] == ["clean:id", "raw:b"]
    nodes, _ = show(database, "datasetField raw:a", as_of=at(15), with_downstream=True)
    assert nodes == ["clean:id", "raw:a"]


def test_a_version_in_the_node_id_selects_that_version(database: Database) -> None:
    changing().save(database)
    for node_id, source in (("datasetField clean:id#V1", "raw:a"), ("dataset clean#2", "raw:b")):
        names = [node.partition("#")[0] for node in show(database, node_id)[0]]
        assert names == ["clean:id", source]
    with pytest.raises(NotFound, match="has no version V3"):
        show(database, "datasetField clean:id#V3")


def test_a_deleted_dataset_has_columns_only_on_direct_request(database: Database) -> None:
    scene = shop()
    scene.dataset("clean", hidden=1, hidden_at=at(30))
    scene.save(database)
    assert show(database, "datasetField report:total")[0] == ["report:total"]
    assert show(database, "datasetField report:total", as_of=at(29))[0] == [
        "clean:sum",
        "raw:a",
        "raw:b",
        "report:total",
    ]
    assert show(database, "datasetField clean:id")[0] == ["clean:id", "raw:a"]


def test_a_recreated_dataset_had_no_columns_while_dropped(
    database: Database,
) -> None:
    scene = shop()
    scene.version("clean", 8, at(30), lifecycle="DROP", created_at=at(30))
    scene.version("clean", 9, at(40), created_at=at(40))
    scene.save(database)
    assert "clean:sum" in show(database, "datasetField report:total", as_of=at(29))[0]
    for second in (30, 39):
        nodes = show(database, "datasetField report:total", as_of=at(second))[0]
        assert nodes == ["report:total"]
    assert "clean:sum" in show(database, "datasetField report:total", as_of=at(40))[0]


def test_a_field_without_a_schema_appears_through_its_lineage(database: Database) -> None:
    scene = Scene()
    version = scene.version("made", 1, published=at(1), fields="[]")
    scene.columns_of(version, {"out": [("source", "in")]})
    scene.save(database)
    assert show(database, "datasetField made:out")[0] == ["made:out", "source:in"]
    assert show(database, "datasetField source:in")[0] == ["source:in"]
    assert show(database, "dataset made")[0] == ["made:out", "source:in"]


def test_an_unknown_field_is_refused_with_a_list_of_fields(database: Database) -> None:
    shop().save(database)
    with pytest.raises(NotFound, match="has no field 'cost'; it has id, note, sum"):
        show(database, "datasetField clean:cost")


def test_a_run_has_no_columns(database: Database) -> None:
    scene = shop()
    run = scene.run("cleaning", 1, 2)
    scene.save(database)
    with pytest.raises(Invalid, match="ask for its job"), database.read() as tx:
        column_lineage(tx, f"run:{run.id}")


def test_unusual_names_of_datasets_and_fields_are_found(database: Database) -> None:
    scene = Scene()
    odd = "a:b/c d#1"
    version = scene.version(odd, 1, published=at(1), fields=fields("x:y", 'quo"te\\'))
    scene.columns_of(version, {"x:y": [("src", 'quo"te\\')]})
    scene.save(database)
    assert show(database, f"datasetField {odd}:x:y")[0] == [f"{odd}:x:y", 'src:quo"te\\']
    nodes, _ = show(database, 'datasetField src:quo"te\\', with_downstream=True)
    assert nodes == [f"{odd}:x:y", 'src:quo"te\\']
