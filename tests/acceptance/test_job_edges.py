"""Inputs and outputs of a job: during a run, from run to run, and in the past."""

from tests.acceptance.calls import Calls, Document, new_run_id


def graph_nodes(calls: Calls, job: str, **params: object) -> dict[str, Document]:
    """Return the node ids of the graph around a job, without the namespace."""
    node = f"job:{calls.namespace}:{job}"
    nodes = calls.get("lineage", nodeId=node, **params)["graph"]  # type: ignore[arg-type]
    return {each["id"].replace(f":{calls.namespace}:", " "): each for each in nodes}


def inputs_and_outputs(calls: Calls, job: str) -> tuple[list[str], list[str]]:
    """Return the names of the job's current inputs and outputs."""
    document = calls.job(job)
    return [d["name"] for d in document["inputs"]], [d["name"] for d in document["outputs"]]


def test_a_running_job_shows_its_lineage_before_it_ends(calls: Calls) -> None:
    run = new_run_id()
    calls.report("START", run, "j", inputs=["a"])
    assert inputs_and_outputs(calls, "j") == (["a"], [])
    calls.report("RUNNING", run, "j", outputs=["b"])
    assert inputs_and_outputs(calls, "j") == (["a"], ["b"])
    assert set(graph_nodes(calls, "j")) == {"job j", "dataset a", "dataset b"}
    assert graph_nodes(calls, "j")["job j"]["data"]["latestRun"]["state"] == "RUNNING"


def test_an_event_with_empty_inputs_removes_no_edges(calls: Calls) -> None:
    run = new_run_id()
    calls.report("START", run, "j", inputs=["a"], outputs=["b"])
    calls.report("COMPLETE", run, "j")
    assert inputs_and_outputs(calls, "j") == (["a"], ["b"])

    silent = new_run_id()
    calls.report("START", silent, "j")
    calls.report("COMPLETE", silent, "j")
    assert inputs_and_outputs(calls, "j") == (["a"], ["b"])
    assert calls.run(silent)["jobVersion"] == calls.run(run)["jobVersion"]
    assert set(graph_nodes(calls, "j")) == {"job j", "dataset a", "dataset b"}


def test_a_run_that_names_other_datasets_moves_the_edges(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "j", inputs=["a"], outputs=["b"])
    calls.report("COMPLETE", new_run_id(), "j", inputs=["c"])
    assert inputs_and_outputs(calls, "j") == (["c"], ["b"])


def test_a_failed_run_shows_its_intended_inputs(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "j", inputs=["a"], outputs=["b"])
    calls.report("FAIL", new_run_id(), "j", inputs=["a", "c"], outputs=["b"])
    assert inputs_and_outputs(calls, "j") == (["a", "c"], ["b"])
    assert calls.dataset("b")["currentVersionNumber"] == 1


def test_a_job_with_one_chunk_per_run_shows_all_edges(calls: Calls) -> None:
    for chunk in range(5):
        calls.report(
            "COMPLETE", new_run_id(), "j", inputs=[f"in {chunk}"], outputs=[f"out {chunk}"]
        )
    assert inputs_and_outputs(calls, "j") == (["in 4"], ["out 4"])
    assert len(graph_nodes(calls, "j")) == 3
    everything = graph_nodes(calls, "j", history="all")
    assert len(everything) == 11
    assert len(everything["job j"]["inEdges"]) == len(everything["job j"]["outEdges"]) == 5


def test_the_graph_of_a_past_time_has_edges_of_then(calls: Calls) -> None:
    calls.report("COMPLETE", new_run_id(), "j", inputs=["a"], outputs=["x"])
    then = calls.now()
    calls.report("COMPLETE", new_run_id(), "j", inputs=["b"], outputs=["x"])
    later = calls.now()
    assert set(graph_nodes(calls, "j", asOf=then)) == {"job j", "dataset a", "dataset x"}
    assert set(graph_nodes(calls, "j", asOf=later)) == {"job j", "dataset b", "dataset x"}
    assert set(graph_nodes(calls, "j")) == {"job j", "dataset b", "dataset x"}


def test_a_streaming_job_publishes_while_it_runs(calls: Calls) -> None:
    run = new_run_id()
    streams = {"jobType": {"processingType": "STREAMING", "integration": "FLINK"}}
    calls.report("START", run, "j", job_facets=streams, inputs=["a"], outputs=["b"])
    assert calls.job("j")["type"] == "STREAM"
    assert calls.dataset("b")["currentVersionNumber"] == 1
    assert calls.job("j")["currentVersion"] is not None
    assert calls.run(run)["state"] == "RUNNING"
