"""Stories for the convergence tests: earlier events, and the events of one run.

Sometimes a child of the run sends events too. Values come from small sets, so that times, names and
facets collide.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

Document = dict[str, Any]

RUN_ID = "01930000-0000-7000-8000-000000000001"
OTHER_RUNS = ["01930000-0000-7000-8000-00000000000a", "a run without a uuid"]
CHILD_RUN = "01930000-0000-7000-8000-0000000000c1"
PARENT_RUNS = ["01930000-0000-7000-8000-0000000000f1", "parent"]
TERMINAL = ("COMPLETE", "FAIL", "ABORT")
GOING = ("START", "RUNNING", "OTHER")
NAMES = [("s3://lake", "orders"), ("s3://lake", "a/b c"), ("pg://db:5432", "public.t#1")]


class Story(msgspec.Struct, frozen=True):
    """The earlier events in any order, and the events of a run or its child by time."""

    background: list[Document]
    run: list[Document]


def times() -> st.SearchStrategy[str]:
    """Draw one of a few times within two hours."""
    return st.integers(0, 5).map(lambda step: f"2026-03-01T1{step // 4}:{step % 4}5:00Z")


def optional_facets(**choices: st.SearchStrategy[Any]) -> st.SearchStrategy[Document]:
    """Draw any subset of these facets, mostly a small one."""
    return st.fixed_dictionaries({}, optional=choices)


_docs = st.sampled_from(["old words", "new words", 7]).map(lambda text: {"description": text})
_tags = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["pii", "gold"])},
        optional={"value": st.sampled_from(["true", "7"]), "field": st.sampled_from(["id", "x"])},
    ),
    max_size=2,
).map(lambda tags: {"tags": tags})
_schema = st.sampled_from([[], ["id"], ["id", "x"]]).map(
    lambda names: {"fields": [{"name": name, "type": "INT"} for name in names]}
)
_column_lineage = st.sampled_from(["id", "x"]).map(
    lambda column: {
        "fields": {
            "id": {
                "inputFields": [
                    {"namespace": NAMES[0][0], "name": NAMES[0][1], "field": column},
                ]
            }
        }
    }
)
_unknown = st.sampled_from([{"v": 1}, {"v": 2.50}, None, {}, "odd"])
_source = st.sampled_from([{"name": "lake", "uri": "s3://lake"}, {"name": "db", "uri": "pg://db"}])
_lifecycle = st.sampled_from(["CREATE", "OVERWRITE", "DROP", None]).map(
    lambda change: {"lifecycleStateChange": change}
)


def dataset_facets() -> st.SearchStrategy[Document]:
    return optional_facets(
        schema=_schema,
        documentation=_docs,
        tags=_tags,
        columnLineage=_column_lineage,
        dataSource=_source,
        lifecycleStateChange=_lifecycle,
        ownership=st.sampled_from([{"owners": [{"name": "ann"}]}, {"owners": []}]),
        unknown=_unknown,
    )


@st.composite
def mentions(draw: st.DrawFn, side: str) -> Document:
    """Draw a dataset as an event names it."""
    namespace, name = draw(st.sampled_from(NAMES))
    facets = draw(dataset_facets())
    if draw(st.booleans()):
        second = {"namespace": namespace, "name": f"{name}, also", "type": "TABLE"}
        facets["symlinks"] = {"identifiers": [second]}
    of_side = draw(optional_facets(counted=_unknown, quality=_unknown))
    return {"namespace": namespace, "name": name, "facets": facets, f"{side}Facets": of_side}


def run_facets() -> st.SearchStrategy[Document]:
    parent = st.builds(
        lambda run, job: {"run": {"runId": run}, "job": {"namespace": "flows", "name": job}},
        st.sampled_from(PARENT_RUNS),
        st.just("flow"),
    )
    nominal = st.sampled_from(["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "never"]).map(
        lambda start: {"nominalStartTime": start}
    )
    return optional_facets(parent=parent, nominalTime=nominal, unknown=_unknown)


def job_facets(*, streams: bool) -> st.SearchStrategy[Document]:
    return optional_facets(
        documentation=_docs,
        sourceCodeLocation=st.sampled_from(["v1", "v2"]).map(lambda url: {"url": url}),
        jobType=st.just({"processingType": "STREAMING" if streams else "BATCH"}),
        tags=_tags,
        unknown=_unknown,
    )


@st.composite
def run_events(
    draw: st.DrawFn,
    run_id: str,
    job: str,
    terminal: str,
    *,
    streams: bool = False,
    other_names: Sequence[str] = (),
) -> Document:
    """Draw one event of a run, with the name of its job or another one."""
    job = draw(st.sampled_from([job, *other_names]))
    return {
        "eventTime": draw(times()),
        "eventType": draw(st.sampled_from([*GOING, terminal])),
        "run": {"runId": run_id, "facets": draw(run_facets())},
        "job": {"namespace": "jobs", "name": job, "facets": draw(job_facets(streams=streams))},
        "inputs": draw(st.lists(mentions("input"), max_size=2)),
        "outputs": draw(st.lists(mentions("output"), max_size=2)),
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }


@st.composite
def child_events(draw: st.DrawFn) -> Document:
    """Draw a run whose parent is the run of the story."""
    parent = {"run": {"runId": RUN_ID}, "job": {"namespace": "jobs", "name": "j"}}
    return {
        "eventTime": draw(times()),
        "eventType": draw(st.sampled_from(GOING)),
        "run": {"runId": CHILD_RUN, "facets": {"parent": parent}},
        "job": {"namespace": "jobs", "name": "child"},
        "inputs": [],
        "outputs": [],
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }


@st.composite
def dataset_events(draw: st.DrawFn) -> Document:
    """Draw an event of a dataset without a run."""
    mention = draw(mentions("input"))
    return {
        "eventTime": draw(times()),
        "dataset": mention,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
    }


@st.composite
def job_events(draw: st.DrawFn) -> Document:
    """Draw an event of a job without a run."""
    return {
        "eventTime": draw(times()),
        "job": {"namespace": "jobs", "name": "j", "facets": draw(job_facets(streams=False))},
        "inputs": draw(st.lists(mentions("input"), max_size=1)),
        "outputs": draw(st.lists(mentions("output"), max_size=1)),
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent",
    }


@st.composite
def other_run_events(draw: st.DrawFn) -> Document:
    """Draw an event of an earlier run: of the same job, another job or a parent."""
    run, job = draw(
        st.sampled_from([*zip(OTHER_RUNS, "jk", strict=True), (PARENT_RUNS[0], "flow")])
    )
    event = draw(run_events(run, job, "COMPLETE"))
    if job == "flow":
        event["job"]["namespace"] = "flows"
    return event


@st.composite
def deletions(draw: st.DrawFn) -> Document:
    """Draw a deletion of a dataset or job by an administrator."""
    job, dataset = ("jobs", "j"), st.sampled_from(NAMES)
    delete = draw(
        st.one_of(st.tuples(st.just("job"), st.just(job)), st.tuples(st.just("dataset"), dataset))
    )
    return {
        "eventTime": draw(times()),
        "delete": delete[0],
        "namespace": delete[1][0],
        "name": delete[1][1],
    }


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Draw the earlier events, and the events of one run that ends in at most one way."""
    before = st.one_of(other_run_events(), dataset_events(), job_events(), deletions())
    terminal = draw(st.sampled_from(TERMINAL))
    streams = draw(st.integers(0, 4)) == 0
    # A stream publishes at once. With two names for a dataset its versions need not converge.
    names = ("unknown", "k") if not streams and draw(st.booleans()) else ()
    run = run_events(RUN_ID, "j", terminal, streams=streams, other_names=names)
    events = draw(st.lists(run, min_size=1, max_size=6))
    events += draw(st.lists(child_events(), max_size=1))
    background = draw(st.lists(before, max_size=4))
    # A run that drops a dataset and reports its end with two times need not converge.
    if len({event["eventTime"] for event in events if event["eventType"] == terminal}) > 1:
        _forget_drops(events)
    return Story(background, sorted(events, key=lambda e: e["eventTime"]))


def _forget_drops(events: list[Document]) -> None:
    for event in events:
        declared = [event["dataset"]] if "dataset" in event else []
        for mention in [*event.get("outputs", ()), *event.get("inputs", ()), *declared]:
            mention["facets"].pop("lifecycleStateChange", None)


# The datasets that each run of a history reads and writes, never the same one for both.
_SIDES = {
    RUN_ID: ("j", "COMPLETE", NAMES[:1], NAMES[1:]),
    OTHER_RUNS[0]: ("j", "COMPLETE", NAMES[1:2], NAMES[::2]),
    OTHER_RUNS[1]: ("k", "FAIL", NAMES[:2], NAMES[2:]),
}


@st.composite
def histories(draw: st.DrawFn) -> list[Document]:
    """Draw events of several runs and events without a run, in order of time."""
    runs = [run_events(run, job, end) for run, (job, end, _, _) in _SIDES.items()]
    events = draw(
        st.lists(st.one_of(*runs, dataset_events(), job_events()), min_size=1, max_size=8)
    )
    ended: set[str] = set()
    for minute, event in enumerate(events):
        event["eventTime"] = f"2026-03-01T10:{minute:02}:00Z"
        if "run" in event:
            _fix_sides(event, ended)
        elif "job" in event:
            event["outputs"] = [m for m in event["outputs"] if m["name"] not in _datasets_of(event)]
    return events


def _fix_sides(event: Document, ended: set[str]) -> None:
    run = event["run"]["runId"]
    _, _, reads, writes = _SIDES[run]
    event["inputs"] = [m for m in event["inputs"] if (m["namespace"], m["name"]) in reads]
    event["outputs"] = [
        m for m in event["outputs"] if (m["namespace"], m["name"]) in writes and run not in ended
    ]
    if event["eventType"] in TERMINAL:
        ended.add(run)


def _datasets_of(event: Document) -> set[str]:
    return {mention["name"] for mention in event["inputs"]}
