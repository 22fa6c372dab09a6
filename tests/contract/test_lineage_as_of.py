"""The lineage graph at a past time or at a version, on both databases."""

from typing import Any

import msgspec
import pytest

from penstock.catalog.lineage.graph import lineage
from penstock.catalog.rows import Origin
from penstock.clock import format_time
from penstock.db import Database
from penstock.errors import Invalid, NotFound
from penstock.schema.catalog import DatasetRole
from penstock.schema.lineage import DatasetNode, GraphRun, JobNode
from penstock.schema.shape import stored_json
from tests.contract.catalog_rows import NAMESPACE, NOW
from tests.contract.lineage_rows import Scene, arrows, at, nodes


def show(database: Database, node_id: str, second: int | None = None, **options: Any) -> list[str]:
    """Return the names of the nodes. Fail if the two ends of an edge disagree."""
    as_of = None if second is None else at(second)
    with database.read() as tx:
        graph = lineage(tx, node_id, as_of=as_of, **options)
    arrows(graph)
    return nodes(graph)


def dataset_node(name: str) -> str:
    return f"dataset:{NAMESPACE}:{name}"


def job_node(name: str) -> str:
    return f"job:{NAMESPACE}:{name}"


def changing_job() -> Scene:
    """A job that read `old` in seconds 10 to 20 and `new` in seconds 30 to 40."""
    scene = Scene()
    scene.run("load", 10, 20, ["old"], ["table"])
    scene.run("load", 30, 40, ["new"], ["table"])
    scene.job("load", ["old"], current=False, first_at=at(10))
    return scene


def test_a_job_shows_its_inputs_of_that_time(database: Database) -> None:
    changing_job().save(database)
    assert show(database, job_node("load")) == ["new", "table", "load"]
    expected = {
        5: ["load"],
        10: ["old", "table", "load"],
        20: ["old", "table", "load"],
        29: ["old", "table", "load"],
        30: ["new", "old", "table", "load"],
        39: ["new", "old", "table", "load"],
        40: ["new", "table", "load"],
        90: ["new", "table", "load"],
    }
    assert {second: show(database, job_node("load"), second) for second in expected} == expected


def test_a_walk_from_a_dataset_uses_edges_of_that_time(database: Database) -> None:
    changing_job().save(database)
    assert show(database, dataset_node("old"), 25) == ["old", "table", "load"]
    assert show(database, dataset_node("old"), 45) == ["old"]
    assert show(database, dataset_node("new"), 25) == ["new"]
    assert show(database, dataset_node("table"), 25, direction="upstream") == [
        "old",
        "table",
        "load",
    ]
    assert show(database, dataset_node("table"), 45, direction="downstream") == ["table"]


def test_all_history_as_of_a_time_excludes_later_edges(database: Database) -> None:
    changing_job().save(database)
    assert show(database, job_node("load"), 25, history="all") == ["old", "table", "load"]
    assert show(database, job_node("load"), 45, history="all") == ["new", "old", "table", "load"]


def test_an_unfinished_run_shows_its_edges(database: Database) -> None:
    scene = changing_job()
    scene.run("load", 50, None, ["extra"], ["table"])
    scene.save(database)
    assert show(database, job_node("load"), 49) == ["new", "table", "load"]
    assert show(database, job_node("load"), 50) == ["extra", "new", "table", "load"]
    assert show(database, job_node("load")) == ["extra", "new", "table", "load"]


def test_a_declared_job_keeps_its_shape_until_a_run_ends(database: Database) -> None:
    scene = Scene()
    scene.job_version("load", ["plan"], ["table"], created_at=at(5), declared_at=at(5))
    scene.job("load", ["plan"], ["table"], current=False, first_at=at(5))
    scene.run("load", 10, 20, ["real"], ["table"])
    scene.save(database)
    assert show(database, job_node("load"), 4) == ["load"]
    assert show(database, job_node("load"), 6) == ["plan", "table", "load"]
    assert show(database, job_node("load"), 15) == ["plan", "real", "table", "load"]
    assert show(database, job_node("load"), 20) == ["real", "table", "load"]


def test_a_shape_declared_after_a_run_replaces_its_shape(database: Database) -> None:
    scene = Scene()
    scene.run("load", 10, 20, ["real"], ["table"])
    scene.job_version("load", ["plan"], ["table"], created_at=at(30), declared_at=at(30))
    scene.job("load", ["plan"], first_at=at(30))
    scene.run("load", 40, 50, ["final"], ["table"])
    scene.save(database)
    assert show(database, job_node("load"), 25) == ["real", "table", "load"]
    assert show(database, job_node("load"), 35) == ["plan", "table", "load"]
    assert show(database, job_node("load"), 50) == ["final", "table", "load"]


def test_a_shape_declared_twice_applies_from_both_times(database: Database) -> None:
    scene = Scene()
    plan = scene.job_version("load", ["plan"], ["table"], created_at=at(5), declared_at=at(30))
    scene.job("load", ["plan"], ["table"], first_at=at(5))
    scene.run("load", 10, 20, ["real"], ["table"])
    scene.job("load", current_version_id=plan.id, version_at=at(30))
    scene.save(database)
    assert show(database, job_node("load"), 7) == ["plan", "table", "load"]
    assert show(database, job_node("load"), 25) == ["real", "table", "load"]
    assert show(database, job_node("load"), 30) == ["plan", "table", "load"]


def test_a_stream_takes_the_shape_of_a_new_run_immediately(database: Database) -> None:
    scene = Scene()
    scene.run("tail", 10, 20, ["topic1"], ["table"])
    new_run = scene.run("tail", 30, 90, ["topic2"], ["table"])
    scene.job("tail", type="STREAM")
    scene.save(database)
    assert new_run.job_version_id is not None
    assert show(database, job_node("tail"), 25) == ["table", "topic1", "tail"]
    assert show(database, job_node("tail"), 35) == ["table", "topic2", "tail"]


def test_a_node_is_unknown_before_its_creation(database: Database) -> None:
    changing_job().save(database)
    for node_id in (dataset_node("table"), job_node("load")):
        with pytest.raises(NotFound, match=f"was not there at .*from {format_time(NOW)} on"):
            show(database, node_id, -1)


def test_a_node_deleted_later_is_still_shown(database: Database) -> None:
    scene = changing_job()
    scene.dataset("new", hidden=1, hidden_at=at(60))
    scene.dataset("table", hidden=1, hidden_at=at(60))
    scene.save(database)
    assert show(database, job_node("load"), 59) == ["new", "table", "load"]
    assert show(database, job_node("load"), 60) == ["load"]
    assert show(database, job_node("load"), 59, history="all") == ["new", "old", "table", "load"]
    assert show(database, job_node("load"), 60, history="all") == ["old", "load"]
    scene.job("load", hidden=1, hidden_at=at(60))
    scene.save(database)
    assert show(database, dataset_node("old"), 15) == ["old", "table", "load"]
    assert show(database, dataset_node("table"), 60) == ["table"]


def recreated_dataset() -> Scene:
    """A table that was dropped at second 50 and written again in seconds 70 to 80."""
    scene = changing_job()
    scene.version("table", 1, at(20))
    scene.version("table", 2, at(50), lifecycle="DROP", created_at=at(49))
    again = scene.run("load", 70, 80, ["new"], ["table"])
    scene.version("table", 3, at(80), by=again, created_at=at(70))
    scene.dataset("table", hidden_at=at(50))
    return scene


@pytest.mark.parametrize("history", ["current", "all"])
def test_a_recreated_dataset_is_absent_while_dropped(database: Database, history: str) -> None:
    recreated_dataset().save(database)
    seconds = (49, 50, 69, 70, 90)
    is_shown = {
        second: "table" in show(database, job_node("load"), second, history=history)
        for second in seconds
    }
    assert is_shown == {49: True, 50: False, 69: False, 70: True, 90: True}
    # A direct request still shows it, marked as deleted.
    for second in seconds:
        with database.read() as tx:
            node = lineage(tx, dataset_node("table"), hops=0, as_of=at(second)).graph[0]
        assert isinstance(node, DatasetNode)
        assert node.data.deleted is not is_shown[second]


def test_a_dropped_dataset_returns_when_restored_or_read(database: Database) -> None:
    scene = recreated_dataset()
    scene.dataset("table", hidden_at=at(55))
    scene.save(database)
    seconds = [second for second in (54, 55) if "table" in show(database, job_node("load"), second)]
    assert seconds == [55]
    scene.dataset("table", hidden_at=at(50))
    drop = next(row for row in scene.versions.values() if row.lifecycle == "DROP")
    scene.touch(scene.run("peek", 60, 61), DatasetRole.INPUT, "table", drop)
    scene.save(database)
    seconds = [second for second in (59, 60) if "table" in show(database, job_node("load"), second)]
    assert seconds == [60]


def three_versions() -> Scene:
    """A table with three versions, of which the second was never published."""
    scene = Scene()
    first = scene.run("load", 10, 20, ["old"], ["table"])
    failed = scene.run("load", 30, 40, ["bad"], ["table"])
    third = scene.run("load", 50, 60, ["new"], ["table"])
    scene.job("load", ["old"], current=False, first_at=at(10))
    scene.job("load", ["bad"], current=False, first_at=at(30))
    for number, (run, published) in enumerate(
        ((first, at(20)), (failed, None), (third, at(60))), start=1
    ):
        scene.version(
            "table",
            number,
            published,
            by=run,
            created_at=run.created_at,
            fields=f'[{{"name":"c{number}","type":"INT","tags":[],"description":null}}]',
        )
    return scene


def field_of_table(database: Database, node_id: str, second: int | None) -> tuple[str, int | None]:
    """Return the name of the one field of `table` and the number of its version."""
    with database.read() as tx:
        graph = lineage(tx, node_id, as_of=None if second is None else at(second))
    (data,) = (
        node.data
        for node in graph.graph
        if isinstance(node, DatasetNode) and node.data.name == "table"
    )
    fields = msgspec.json.decode(stored_json(data.fields))
    return (fields[0]["name"] if fields else ""), data.current_version_number


def test_a_dataset_shows_the_version_current_at_that_time(database: Database) -> None:
    three_versions().save(database)
    expected = {
        5: ("", None),
        15: ("c1", None),
        20: ("c1", 1),
        45: ("c1", 1),
        60: ("c3", 3),
        None: ("c3", 3),
    }
    node_id = dataset_node("table")
    assert {second: field_of_table(database, node_id, second) for second in expected} == expected


@pytest.mark.parametrize("by_number", [True, False])
def test_a_version_in_the_node_id_selects_its_time(database: Database, by_number: bool) -> None:
    scene = three_versions()
    scene.save(database)
    table = dataset_node("table")
    ids = {row.number: row.id for row in scene.versions.values()}
    marks = {number: f"V{number}" if by_number else ids[number] for number in ids}
    assert show(database, f"{table}#{marks[1]}") == ["old", "table", "load"]
    assert show(database, f"{table}#{marks[2]}") == ["bad", "old", "table", "load"]
    assert show(database, f"{table}#{marks[3]}") == ["new", "table", "load"]
    for number in (1, 2, 3):
        node_id = f"{table}#{marks[number]}"
        assert field_of_table(database, node_id, None) == (f"c{number}", number)


def test_a_version_known_from_readers_dates_from_the_first_read(database: Database) -> None:
    scene = changing_job()
    scene.version("old", 1, published=0, origin=Origin.IMPLIED, created_at=at(10))
    scene.save(database)
    assert show(database, dataset_node("old") + "#1") == ["old", "table", "load"]


def test_a_dataset_name_that_looks_versioned_is_found_first(database: Database) -> None:
    scene = Scene()
    scene.version("table", 2, published=at(1))
    scene.dataset("table#2")
    scene.save(database)
    assert show(database, dataset_node("table#2")) == ["table#2"]
    assert show(database, dataset_node("table#V2")) == ["table"]


def test_a_version_together_with_a_time_is_refused(database: Database) -> None:
    three_versions().save(database)
    with pytest.raises(Invalid, match="leave one of them out"):
        show(database, dataset_node("table") + "#V1", 20)


def test_a_job_version_in_the_node_id_shows_its_edges(database: Database) -> None:
    scene = changing_job()
    scene.job("after", ["table"], ["sum"])
    scene.save(database)
    old, new = (
        next(row.id for row in scene.job_versions.values() if name in row.inputs)
        for name in ("old", "new")
    )
    assert show(database, f"{job_node('load')}#{new}") == ["new", "sum", "table", "after", "load"]
    with database.read() as tx:
        graph = lineage(tx, f"{job_node('load')}#{old}")
    assert nodes(graph) == ["old", "sum", "table", "after", "load"]
    assert ("old", "load") in arrows(graph)
    with pytest.raises(NotFound, match="has no version"):
        show(database, f"{job_node('after')}#{old}")


def test_a_run_node_shows_its_job_at_its_end(database: Database) -> None:
    scene = changing_job()
    unfinished = scene.run("load", 50, None, ["extra"], ["table"])
    scene.save(database)
    first = next(run for run in scene.runs.values() if run.created_at == at(10))
    assert show(database, f"run:{first.id}") == ["old", "table", "load"]
    assert show(database, f"run:{unfinished.id}") == ["extra", "new", "table", "load"]


def test_the_latest_run_has_its_state_at_that_time(database: Database) -> None:
    changing_job().save(database)

    def latest_run(second: int) -> GraphRun | None:
        with database.read() as tx:
            (node,) = lineage(tx, job_node("load"), hops=0, as_of=at(second)).graph
        assert isinstance(node, JobNode)
        return node.data.latest_run

    assert latest_run(5) is None
    unfinished, done = latest_run(35), latest_run(25)
    assert unfinished is not None
    assert done is not None
    assert (unfinished.state, unfinished.ended_at, unfinished.duration_ms) == (
        "RUNNING",
        None,
        None,
    )
    assert (done.state, done.ended_at) == ("COMPLETED", format_time(at(20)))
