"""The static, the dynamic and the unified order of calls all end in the same state."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.calls import Calls, Document, fields

READ, WRITTEN, JOB = "orders", "totals", "sum_orders"
BEFORE, AFTER = fields("day"), fields("day", "total")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIMES = {
    "createdAt", "updatedAt", "startedAt", "endedAt", "durationMs", "lastModifiedAt",
}  # fmt: skip
NUMBERS = {"number", "currentVersionNumber"}
HOW: dict[str, Any] = {"location": "https://git.example.org/sum.sql", "description": "adds up"}

Order = Callable[[Calls], str]


def put_input(calls: Calls) -> None:
    calls.put_dataset(READ, fields=fields("id", "amount"), description="all orders")


def put_output(calls: Calls, columns: list[Document], run: str | None = None) -> None:
    calls.put_dataset(WRITTEN, fields=columns, description="by day", runId=run)


def put_dependencies(calls: Calls) -> None:
    calls.put_namespace()
    calls.put_source("warehouse")


def start_run(calls: Calls) -> str:
    run = calls.create_run(JOB, args={"day": "2026-11-15"})
    calls.mark(run, "start")
    return run


def static_order(calls: Calls) -> str:
    put_dependencies(calls)
    put_input(calls)
    put_output(calls, BEFORE)
    calls.put_job(JOB, [READ], [WRITTEN], **HOW)
    run = start_run(calls)
    put_output(calls, AFTER, run)
    calls.mark(run, "complete")
    return run


def dynamic_order(calls: Calls) -> str:
    calls.put_namespace()
    calls.put_job(JOB, **HOW)
    run = start_run(calls)
    calls.put_source("warehouse")
    put_input(calls)
    put_output(calls, AFTER, run)
    calls.put_job(JOB, [READ], [WRITTEN], runId=run, **HOW)
    calls.mark(run, "complete")
    return run


def unified_order(calls: Calls) -> str:
    put_dependencies(calls)
    put_input(calls)
    put_output(calls, BEFORE)
    calls.put_job(JOB, [READ], [WRITTEN], **HOW)
    run = start_run(calls)
    calls.put_source("warehouse")
    put_input(calls)
    put_output(calls, AFTER, run)
    calls.put_job(JOB, [READ], [WRITTEN], runId=run, **HOW)
    calls.mark(run, "complete")
    return run


def unified_order_without_extraction(calls: Calls) -> str:
    """Report in the unified order, without any lineage known before the run."""
    calls.put_namespace()
    calls.put_job(JOB, **HOW)
    run = start_run(calls)
    calls.put_source("warehouse")
    put_input(calls)
    put_output(calls, AFTER, run)
    calls.put_job(JOB, [READ], [WRITTEN], runId=run, **HOW)
    calls.mark(run, "complete")
    return run


def state(calls: Calls, run: str) -> Document:
    """Get every document that the calls have changed."""
    job = calls.job(JOB)
    of_job = ("namespaces", calls.namespace, "jobs", JOB)
    return {
        "namespace": calls.get("namespaces", calls.namespace),
        "source": calls.get("sources", "warehouse"),
        "datasets": [calls.dataset(name) for name in (READ, WRITTEN)],
        "current": [
            next(v for v in calls.versions(name) if v["isCurrent"]) for name in (READ, WRITTEN)
        ],
        "job": job,
        "job version": calls.get(*of_job, "versions", job["currentVersion"]),
        "runs": calls.get(*of_job, "runs"),
        "run": calls.run(run),
    }


def comparable(documents: Any, calls: Calls, *, left_out: set[str]) -> Any:
    """Return the documents without times, and with names for namespaces and ids."""
    ids: dict[str, str] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in left_out}
        if isinstance(value, list):
            return [plain(each) for each in value]
        if isinstance(value, str):
            value = value.replace(calls.namespace, "the namespace")
            return UUID.sub(lambda match: ids.setdefault(match[0], f"id {len(ids)}"), value)
        return value

    return plain(documents)


@pytest.mark.parametrize(
    "order",
    [static_order, unified_order, unified_order_without_extraction],
    ids=lambda o: o.__name__,
)
def test_every_order_ends_alike_on_an_empty_catalog(calls: Calls, order: Order) -> None:
    """A dataset declared before its run exists before it, so only the version numbers differ."""
    other = Calls(calls.client, f"{calls.namespace}-dynamic")
    dynamic = state(other, dynamic_order(other))
    documents = state(calls, order(calls))

    left_out = TIMES | NUMBERS
    assert comparable(documents, calls, left_out=left_out) == comparable(
        dynamic, other, left_out=left_out
    )
    assert [v["number"] for v in other.versions(WRITTEN)] == [1]
    declared_first = order in (static_order, unified_order)
    assert [v["number"] for v in calls.versions(WRITTEN)] == ([1, 2] if declared_first else [1])


@pytest.mark.parametrize(
    "order",
    [static_order, unified_order, unified_order_without_extraction],
    ids=lambda o: o.__name__,
)
def test_every_order_ends_alike_on_existing_datasets(calls: Calls, order: Order) -> None:
    other = Calls(calls.client, f"{calls.namespace}-dynamic")
    for each in (calls, other):
        put_dependencies(each)
        put_input(each)
        put_output(each, BEFORE)
    dynamic = state(other, dynamic_order(other))
    documents = state(calls, order(calls))

    assert comparable(documents, calls, left_out=TIMES) == comparable(
        dynamic, other, left_out=TIMES
    )
    assert documents["datasets"][1]["currentVersionNumber"] == 2
    assert documents["datasets"][1]["fields"] == [
        {"name": name, "type": "INTEGER", "tags": [], "description": None}
        for name in ("day", "total")
    ]
    assert documents["current"][1]["createdByRun"]["id"] == documents["run"]["id"]


def test_an_update_with_a_run_id_creates_that_runs_version(calls: Calls) -> None:
    put_dependencies(calls)
    put_output(calls, BEFORE)
    calls.put_job(JOB, outputs=[WRITTEN])
    run = start_run(calls)

    put_output(calls, AFTER, run)
    put_output(calls, AFTER, run)

    declared, written = calls.versions(WRITTEN)
    assert declared["createdByRun"] is None
    assert written["createdByRun"]["id"] == run
    assert (declared["isCurrent"], written["isCurrent"]) == (True, False)
    calls.mark(run, "complete")
    assert calls.dataset(WRITTEN)["currentVersion"] == written["version"]


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_a_job_declared_after_its_run_ends_up_the_same(calls: Calls, end: str) -> None:
    early, late = calls, Calls(calls.client, f"{calls.namespace}-late")
    documents = []
    for each in (early, late):
        put_dependencies(each)
        put_input(each)
        put_output(each, BEFORE)
        each.put_job(JOB)
        run = start_run(each)
        steps = [
            lambda each=each, run=run: each.put_job(JOB, [READ], [WRITTEN], runId=run, **HOW),
            lambda each=each, run=run: each.mark(run, end),
        ]
        for step in steps if each is early else reversed(steps):
            step()
        documents.append(comparable(state(each, run), each, left_out=TIMES))
    assert documents[1] == documents[0]
    assert len(documents[1]["run"]["outputDatasetVersions"]) == (1 if end == "complete" else 0)
    versions = late.get("namespaces", late.namespace, "jobs", JOB, "versions")["versions"]
    assert [bool(v["latestRun"]) for v in versions] == [True, False], "it never had the first shape"


def test_updates_without_a_run_id_create_no_unchanged_version(calls: Calls) -> None:
    put_dependencies(calls)
    put_input(calls)
    put_output(calls, BEFORE)
    before = calls.versions(WRITTEN)
    calls.put_job(JOB, [READ], [WRITTEN])
    run = start_run(calls)

    put_input(calls)
    put_output(calls, BEFORE)
    calls.put_job(JOB, [READ], [WRITTEN], runId=run)
    calls.mark(run, "fail")

    assert calls.versions(WRITTEN) == before
    assert calls.run(run)["outputDatasetVersions"] == []
    assert [v["number"] for v in calls.run(run)["inputDatasetVersions"]] == [1]
    assert calls.job(JOB)["latestRun"]["state"] == "FAILED"


def test_a_version_cannot_change_once_its_run_has_ended(calls: Calls) -> None:
    run = dynamic_order(calls)
    refusal = calls.put_dataset(WRITTEN, status=409, fields=fields("other"), runId=run)
    assert refusal["code"] == 409
    assert run in refusal["message"]
    assert [f["name"] for f in calls.dataset(WRITTEN)["fields"]] == ["day", "total"]


@pytest.mark.parametrize("by_job", [False, True], ids=["by run", "by job"])
def test_runs_never_return_to_an_earlier_state(calls: Calls, by_job: bool) -> None:
    calls.put_namespace()
    calls.put_job(JOB)

    def mark(run: str, action: str, status: int = 200) -> Document:
        of_job = f"/api/v1/namespaces/{calls.namespace}/jobs/{JOB}/runs/{run}/{action}"
        where = of_job if by_job else f"/api/v1/jobs/runs/{run}/{action}"
        answer: Document = calls.ask("POST", where, status=status)
        return answer

    for action, state_after in (
        ("complete", "COMPLETED"),
        ("fail", "FAILED"),
        ("abort", "ABORTED"),
    ):
        run = calls.create_run(JOB)
        assert calls.run(run)["state"] == "NEW"
        assert mark(run, "start")["state"] == "RUNNING"
        assert mark(run, "start")["state"] == "RUNNING"
        assert mark(run, action)["state"] == state_after
        ended = mark(run, action)
        assert ended["state"] == state_after
        refusal = mark(run, "start", status=409)
        assert state_after in refusal["message"]
        assert "RUNNING" in refusal["message"]
        other = "abort" if action != "abort" else "fail"
        assert mark(run, other, status=409)["code"] == 409
        assert calls.run(run) == ended


def test_a_mark_that_ends_a_new_run_implies_its_start(calls: Calls) -> None:
    calls.put_namespace()
    calls.put_job(JOB)
    run = calls.mark(calls.create_run(JOB), "abort", at="2026-11-15T10:00:00Z")
    assert run["startedAt"] == run["endedAt"] == "2026-11-15T10:00:00.000Z"
    assert (run["state"], run["durationMs"]) == ("ABORTED", 0)
