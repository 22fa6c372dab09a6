"""The runs upstream of a run, on both databases."""

import msgspec
import pytest

from penstock.catalog.lineage.runs import upstream_runs
from penstock.catalog.rows import RunRow, VersionRow
from penstock.clock import format_time
from penstock.db import Database
from penstock.errors import Invalid, NotFound
from penstock.schema.catalog import DatasetRole
from penstock.schema.lineage import UpstreamRuns
from tests.contract.catalog_rows import NAMESPACE
from tests.contract.lineage_rows import Scene, at


def add_run(scene: Scene, job: str, began: int, number: int, reads: list[VersionRow]) -> RunRow:
    """Add a run that reads these versions and writes a version of its job's own table."""
    run = scene.run(job, began, began + 1, writes=[f"{job} table"])
    output = scene.version(f"{job} table", number, at(began + 1), by=run)
    scene.touch(run, DatasetRole.OUTPUT, f"{job} table", output)
    for version in reads:
        name = next(row.name for row in scene.datasets.values() if row.id == version.dataset_id)
        scene.touch(run, DatasetRole.INPUT, name, version)
    return run


def made_by(scene: Scene, run: RunRow) -> VersionRow:
    return next(row for row in scene.versions.values() if row.run_id == run.id)


def jobs(upstream: UpstreamRuns) -> list[str]:
    return [entry.job.name for entry in upstream.runs]


def chain() -> tuple[Scene, dict[str, RunRow]]:
    """source → first → second → third; a later run of `first` has no readers."""
    scene = Scene()
    source = scene.version("source", 1, published=at(0))
    first = add_run(scene, "first", 1, 1, [source])
    second = add_run(scene, "second", 3, 1, [made_by(scene, first)])
    add_run(scene, "first", 5, 2, [source])
    third = add_run(scene, "third", 7, 1, [made_by(scene, second)])
    return scene, {"first": first, "second": second, "third": third}


def test_runs_are_shown_with_inputs_and_their_producers(database: Database) -> None:
    scene, runs = chain()
    scene.save(database)
    with database.read() as tx:
        upstream = upstream_runs(tx, runs["third"].id)
    assert [entry.run.id for entry in upstream.runs] == [
        runs["third"].id,
        runs["second"].id,
        runs["first"].id,
    ]
    wire = msgspec.json.decode(msgspec.json.encode(upstream))
    assert wire["runs"][1] == {
        "job": {
            "namespace": NAMESPACE,
            "name": "second",
            "version": runs["second"].job_version_id,
        },
        "run": {
            "id": runs["second"].id,
            "start": format_time(at(3)),
            "end": format_time(at(4)),
            "status": "COMPLETED",
        },
        "inputs": [
            {
                "namespace": NAMESPACE,
                "name": "first table",
                "version": made_by(scene, runs["first"]).id,
                "producedByRunId": runs["first"].id,
            }
        ],
    }
    assert wire["runs"][2]["inputs"][0]["producedByRunId"] is None


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(0, ["third"]), (1, ["third", "second"]), (2, ["third", "second", "first"])],
)
def test_depth_counts_runs(database: Database, depth: int, expected: list[str]) -> None:
    scene, runs = chain()
    scene.save(database)
    with database.read() as tx:
        upstream = upstream_runs(tx, runs["third"].id, depth)
    assert jobs(upstream) == expected
    assert all(entry.inputs for entry in upstream.runs)


def test_a_run_reached_twice_is_shown_once(database: Database) -> None:
    scene = Scene()
    top = add_run(scene, "top", 1, 1, [])
    left = add_run(scene, "left", 3, 1, [made_by(scene, top)])
    right = add_run(scene, "right", 3, 1, [made_by(scene, top), made_by(scene, left)])
    last = add_run(scene, "last", 5, 1, [made_by(scene, left), made_by(scene, right)])
    scene.save(database)
    with database.read() as tx:
        upstream = upstream_runs(tx, last.id)
    assert sorted(jobs(upstream)) == ["last", "left", "right", "top"]
    assert [read.name for read in upstream.runs[0].inputs] == ["left table", "right table"]


def test_a_job_that_reads_its_output_is_followed_by_run(database: Database) -> None:
    scene = Scene()
    run = add_run(scene, "append", 1, 1, [])
    for number in (2, 3):
        run = add_run(scene, "append", number * 2, number, [made_by(scene, run)])
    scene.save(database)
    with database.read() as tx:
        upstream = upstream_runs(tx, run.id)
    assert [entry.run.start for entry in upstream.runs] == [
        format_time(at(second)) for second in (6, 4, 1)
    ]


def test_the_walk_passes_over_a_run_that_was_pruned(database: Database) -> None:
    scene, runs = chain()
    del scene.runs[runs["second"].id]
    scene.save(database)
    with database.read() as tx:
        assert jobs(upstream_runs(tx, runs["third"].id)) == ["third", "first"]


def test_the_walk_ends_at_a_version_that_was_pruned(database: Database) -> None:
    scene, runs = chain()
    pruned = made_by(scene, runs["second"]).id
    del scene.versions[pruned]
    scene.save(database)
    with database.read() as tx:
        (entry,) = upstream_runs(tx, runs["third"].id).runs
    assert [(read.version, read.produced_by_run_id) for read in entry.inputs] == [(pruned, None)]


def test_unknown_runs_and_invalid_depths_are_refused(database: Database) -> None:
    scene, runs = chain()
    scene.save(database)
    with database.read() as tx:
        with pytest.raises(NotFound, match="there is no run 'nothing'"):
            upstream_runs(tx, "nothing")
        with pytest.raises(Invalid, match="depth -1"):
            upstream_runs(tx, runs["first"].id, -1)
