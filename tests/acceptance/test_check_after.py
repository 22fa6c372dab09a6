"""Calls that are odd and allowed: `check` finds that everything still holds after them."""

import json

from tests.acceptance.calls import Calls, new_run_id, path


def broken(calls: Calls, name: str) -> list[str]:
    """What a check says against an invariant."""
    lines = calls.client.get(path("check")).text.splitlines()
    verdicts = {each["name"]: each for each in map(json.loads, lines)}
    said: list[str] = verdicts[name]["first"]
    return said


def test_events_before_1970_are_counted_in_the_hour_they_are_in(calls: Calls) -> None:
    for at in ("1969-12-31T23:59:59Z", "1969-12-31T23:00:00Z", "1600-06-01T12:30:00Z"):
        calls.report("START", new_run_id(), "job", at=at)
    assert broken(calls, "event-counts") == []


def test_what_a_stream_wrote_stays_current_when_its_job_is_no_stream_any_more(
    calls: Calls,
) -> None:
    calls.put_namespace()
    calls.put_source("warehouse")
    calls.put_job("job", type="STREAM")
    run = calls.create_run("job")
    calls.mark(run, "start")
    calls.put_dataset("out", runId=run)
    calls.mark(run, "abort")
    current = calls.dataset("out")["currentVersion"]
    calls.put_job("job", type="BATCH")
    assert calls.dataset("out")["currentVersion"] == current is not None
    assert not [said for said in broken(calls, "current-versions") if calls.namespace in said]


def test_a_job_that_ran_at_the_end_of_time_is_wired_and_shown(calls: Calls) -> None:
    run = new_run_id()
    calls.report("COMPLETE", run, "job", at="9999-12-31T23:59:59.999999Z", outputs=["out"])
    job = ("namespaces", calls.namespace, "jobs", "job")
    wires = {"inputs": calls.names(["in"]), "outputs": calls.names(["other"])}
    for _ in range(2):
        calls.ask("PUT", path(*job, "wiring"), json=wires)
        current = calls.job("job")
        assert [each["name"] for each in current["outputs"]] == ["other"]
        versions = calls.get(*job, "versions")["versions"]
        assert current["currentVersion"] in [each["version"] for each in versions]
