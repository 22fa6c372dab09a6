"""Events that arrive late, twice or in the wrong order, seen through the API."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.calls import Calls, new_run_id, schema, version_numbers


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["in order", "late"])
def test_the_run_that_completed_last_owns_the_current_version(
    calls: Calls, order: tuple[int, int]
) -> None:
    runs = [new_run_id(), new_run_id()]
    events = [
        calls.event("COMPLETE", run, "j", outputs=[calls.dataset_ref("d", **schema(f"f{number}"))])
        for number, run in enumerate(runs)
    ]
    for index in order:
        calls.send(events[index])

    [current] = [version for version in calls.versions("d") if version["isCurrent"]]
    assert current["createdByRun"]["id"] == runs[1]
    assert [field["name"] for field in calls.dataset("d")["fields"]] == ["f1"]
    assert calls.job("j")["latestRun"]["id"] == runs[1]


@pytest.mark.parametrize("end", ["COMPLETE", "FAIL", "ABORT"])
def test_a_late_start_does_not_reset_a_run(calls: Calls, end: str) -> None:
    run = new_run_id()
    start = calls.event("START", run, "j", inputs=["a"])
    calls.report(end, run, "j", outputs=["b"])
    ended = calls.run(run)
    calls.send(start)
    calls.send(start)

    shown = calls.run(run)
    assert (shown["state"], shown["endedAt"]) == (ended["state"], ended["endedAt"])
    assert shown["startedAt"][:19] == start["eventTime"][:19]
    assert [v["datasetVersionId"]["name"] for v in shown["inputDatasetVersions"]] == ["a"]
    assert calls.job("j")["latestRun"]["state"] == ended["state"]
    assert [d["name"] for d in calls.job("j")["inputs"]] == ["a"]


def test_an_event_that_comes_twice_counts_once(calls: Calls) -> None:
    run = new_run_id()
    event = calls.event(
        "COMPLETE", run, "j", inputs=["a"], outputs=[calls.dataset_ref("b", **schema("id"))]
    )
    calls.send(event)
    before = [
        calls.run(run),
        calls.job("j"),
        calls.dataset("a"),
        calls.dataset("b"),
        calls.versions("b"),
    ]
    calls.send(event)
    after = [
        calls.run(run),
        calls.job("j"),
        calls.dataset("a"),
        calls.dataset("b"),
        calls.versions("b"),
    ]
    assert after == before


def test_the_inputs_of_a_run_never_change(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "make", outputs=["d"])
    reader = new_run_id()
    calls.report("START", reader, "use", inputs=["d"])
    calls.report("COMPLETE", new_run_id(), "make", outputs=["d"])
    calls.report("COMPLETE", reader, "use", inputs=["d"])
    [read] = calls.run(reader)["inputDatasetVersions"]
    assert (read["number"], calls.dataset("d")["currentVersionNumber"]) == (1, 2)


def test_readers_of_a_later_version_do_not_change_earlier_ones(calls: Calls) -> None:
    """Only readers reported the first version; a run wrote the second one."""

    def read(run: str, *fields: str) -> None:
        calls.report("START", run, "use", inputs=[calls.dataset_ref("d", **schema(*fields))])

    first, second = new_run_id(), new_run_id()
    read(first, "id")
    calls.report(
        "COMPLETE", new_run_id(), "make", outputs=[calls.dataset_ref("d", **schema("id", "x"))]
    )
    read(second, "id", "x")

    def field_names() -> list[list[str]]:
        return [[field["name"] for field in each["fields"]] for each in calls.versions("d")]

    assert field_names() == [["id"], ["id", "x"]]
    read(first, "id", "y")  # a reader may still report it
    assert field_names() == [["id", "y"], ["id", "x"]]


def test_a_run_that_updates_a_dataset_reads_the_previous_version(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "make", outputs=["d"])
    run = new_run_id()
    calls.report("COMPLETE", run, "update", outputs=["d"])
    calls.report("START", run, "update", inputs=["d"])
    shown = calls.run(run)
    assert [v["number"] for v in shown["inputDatasetVersions"]] == [1]
    assert [v["number"] for v in shown["outputDatasetVersions"]] == [2]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_run_belongs_to_the_job_that_it_names_last(
    calls: Calls, order: tuple[int, int, int]
) -> None:
    run = new_run_id()
    events = [
        calls.event("START", run, "unknown", inputs=["a"], at="2026-03-01T10:00:00Z"),
        calls.event("RUNNING", run, "unknown", at="2026-03-01T10:01:00Z"),
        calls.event("COMPLETE", run, "k", outputs=["d"], at="2026-03-01T10:02:00Z"),
    ]

    for number in order:
        calls.send(events[number])

    assert calls.run(run)["job"]["name"] == "k"
    assert calls.run(run)["state"] == "COMPLETED"
    job = calls.job("k")
    assert [each["name"] for each in job["inputs"]] == ["a"]
    assert [each["name"] for each in job["outputs"]] == ["d"]
    assert job["latestRun"]["id"] == run
    page = calls.get("namespaces", calls.namespace, "jobs")
    assert ([each["name"] for each in page["jobs"]], page["totalCount"]) == (["k"], 1)
    calls.get("namespaces", calls.namespace, "jobs", "unknown", status=404)


def test_a_job_keeps_its_other_runs_when_one_is_renamed(calls: Calls) -> None:
    stays, goes = new_run_id(), new_run_id()
    calls.report("COMPLETE", stays, "unknown", inputs=["a"], at="2026-03-01T10:00:00Z")
    calls.report("COMPLETE", goes, "unknown", inputs=["b"], at="2026-03-01T10:01:00Z")

    calls.report("OTHER", goes, "k", at="2026-03-01T10:02:00Z")

    job = calls.job("unknown")
    assert [each["name"] for each in job["inputs"]] == ["a"]
    assert [run["id"] for run in job["latestRuns"]] == [stays]
    assert [each["name"] for each in calls.job("k")["inputs"]] == ["b"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_child_event_may_only_move_its_parents_start_back(
    calls: Calls, order: tuple[int, int, int]
) -> None:
    parent, child = new_run_id(), new_run_id()
    job = {"namespace": calls.namespace, "name": "flow"}
    facets = {"parent": {"run": {"runId": parent}, "job": job}}
    events = [
        calls.event("START", child, "task", run_facets=facets),
        calls.event("COMPLETE", parent, "flow", outputs=["d"]),
        calls.event("COMPLETE", child, "task", run_facets=facets),
    ]
    for index in order:
        calls.send(events[index])
    began, ended = (event["eventTime"][:19] for event in events[:2])
    shown = calls.run(parent)
    assert (shown["createdAt"][:19], shown["updatedAt"][:19]) == (began, ended)
    [version] = calls.get("namespaces", calls.namespace, "jobs", "flow", "versions")["versions"]
    assert version["createdAt"][:19] == began
    assert calls.dataset("d")["updatedAt"][:19] == ended


def test_a_job_shape_is_as_old_as_its_first_run(calls: Calls) -> None:
    ahead = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    calls.send(calls.event("COMPLETE", new_run_id(), "j", outputs=["d"], at=ahead))
    run = calls.run(calls.create_run("j"))
    [version] = calls.get("namespaces", calls.namespace, "jobs", "j", "versions")["versions"]
    assert version["createdAt"] == run["createdAt"]


def test_events_and_rest_calls_may_report_one_run(calls: Calls) -> None:
    calls.put_namespace()
    calls.put_job("j")
    run = calls.create_run("j", nominalStartTime="2026-11-14T00:00:00Z", args={"day": "14"})
    calls.report("START", run, "j", inputs=["a"])
    calls.report("RUNNING", run, "j", outputs=["b"])
    shown = calls.mark(run, "complete")
    assert (shown["state"], shown["args"]) == ("COMPLETED", {"day": "14"})
    assert shown["nominalStartTime"] == "2026-11-14T00:00:00.000Z"
    assert [v["number"] for v in shown["outputDatasetVersions"]] == [1]
    assert calls.dataset("b")["currentVersionNumber"] == 1


@pytest.mark.parametrize(
    ("began", "version"), [(1, 1), (3, 2)], ids=["before it was published", "after"]
)
def test_a_late_version_is_an_input_if_published_before_start(
    calls: Calls, began: int, version: int
) -> None:
    moments = [calls.now() for _ in range(5)]
    reader, second = new_run_id(), new_run_id()
    calls.report("COMPLETE", new_run_id(), "maker", outputs=["d"], at=moments[0])
    calls.report("START", reader, "reader", inputs=["d"], at=moments[began])
    calls.report("COMPLETE", second, "maker", outputs=["d"], at=moments[2])
    assert version_numbers(calls.run(reader)["inputDatasetVersions"]) == {"d": 1}

    calls.report("COMPLETE", reader, "reader", inputs=["d"], at=moments[4])
    assert version_numbers(calls.run(reader)["inputDatasetVersions"]) == {"d": version}

    calls.report("COMPLETE", new_run_id(), "maker", outputs=["d"], at=moments[0])
    calls.report("COMPLETE", reader, "reader", inputs=["d"], at=moments[4])
    assert version_numbers(calls.run(reader)["inputDatasetVersions"]) == {"d": version}
