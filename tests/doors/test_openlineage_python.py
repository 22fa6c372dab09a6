"""The real openlineage-python, through its whole surface, against a running server."""

import enum
import inspect
import types
import typing
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Union

import attr
import httpx
import pytest
import requests
from openlineage.client import OpenLineageClient, facet_v2
from openlineage.client.event_v2 import (
    DatasetEvent,
    InputDataset,
    Job,
    JobEvent,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    StaticDataset,
)
from openlineage.client.facet_v2 import (
    BaseFacet,
    DatasetFacet,
    InputDatasetFacet,
    JobFacet,
    OutputDatasetFacet,
    RunFacet,
    column_lineage_dataset,
    documentation_job,
    nominal_time_run,
    parent_run,
    schema_dataset,
    source_code_location_job,
    symlinks_dataset,
    tags_dataset,
)
from openlineage.client.serde import Serde
from openlineage.client.transport.async_http import AsyncHttpConfig, AsyncHttpTransport
from openlineage.client.transport.http import (
    ApiKeyTokenProvider,
    HttpCompression,
    HttpConfig,
    HttpTransport,
)

from penstock.schema.admin import KeyRole
from tests.acceptance.calls import SPEC, Calls
from tests.running import ServerProcess

# One worker has the servers that these tests share.
pytestmark = [pytest.mark.both_databases, pytest.mark.xdist_group("server")]

PRODUCER = "https://example.org/producer"
DEPTH = 8
SUFFIXES = ("InputDatasetFacet", "OutputDatasetFacet", "DatasetFacet", "JobFacet", "RunFacet")
BASES = (BaseFacet, DatasetFacet, InputDatasetFacet, JobFacet, OutputDatasetFacet, RunFacet)


@pytest.fixture
def calls(server: ServerProcess) -> Iterator[Calls]:
    """A way to read back, in a namespace that nobody else uses."""
    with server.client() as client:
        yield Calls(client, f"s3://bucket-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def guarded_calls(guarded_server: ServerProcess) -> Iterator[Calls]:
    """The same on a server that has keys."""
    with guarded_server.client() as client:
        yield Calls(client, f"s3://bucket-{uuid.uuid4().hex[:12]}")


def now() -> str:
    return datetime.now(UTC).isoformat()


def facet_classes() -> Iterator[type[BaseFacet]]:
    """Every facet that the package knows."""
    for _, module in inspect.getmembers(facet_v2, inspect.ismodule):
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, BaseFacet) and kind not in BASES:
                yield kind


def key_of(facet: type[BaseFacet]) -> str:
    """The key under which a facet stands: its name without what it belongs to."""
    suffix = next(suffix for suffix in SUFFIXES if facet.__name__.endswith(suffix))
    name = facet.__name__.removesuffix(suffix)
    return name[0].lower() + name[1:]


def sample(kind: Any, name: str, depth: int = 0) -> Any:
    """A value of any type that facets are made of; those that hold their own kind end somewhere."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        if depth > DEPTH and types.NoneType in args:
            return None
        return sample(next(arg for arg in args if arg is not types.NoneType), name, depth + 1)
    if origin is list:
        return [sample(args[0], name, depth + 1)]
    if origin is dict:
        return {"key": sample(args[1], name, depth + 1)}
    if attr.has(kind):
        hints = typing.get_type_hints(kind)
        given = [f for f in attr.fields(kind) if f.init and not f.name.startswith("_")]
        return kind(**{f.name: sample(hints[f.name], f.name, depth + 1) for f in given})
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    if kind is str:
        return _text(name)
    return {int: 7, float: 1.5, bool: True}.get(kind, {"any": ["thing"]})


def _text(name: str) -> str:
    lower = name.lower()
    if lower == "runid":
        return str(uuid.uuid4())
    if lower.endswith(("time", "date", "updated")):
        return "2026-11-15T10:00:00Z"
    if lower.endswith(("url", "uri")):
        return "https://example.org/x"
    return f"some {name}"


def samples(base: type[BaseFacet]) -> dict[str, Any]:
    """One of every facet that belongs here."""
    return {
        key_of(kind): sample(kind, kind.__name__)
        for kind in facet_classes()
        if issubclass(kind, base)
    }


def test_every_facet_of_the_package_comes_back_as_it_was_sent(
    server: ServerProcess, calls: Calls
) -> None:
    run = str(uuid.uuid4())
    event = RunEvent(
        eventTime=now(),
        eventType=RunState.COMPLETE,
        run=Run(run, facets=samples(RunFacet)),
        job=Job(calls.namespace, "everything", facets=samples(JobFacet)),
        inputs=[
            InputDataset(
                calls.namespace,
                "read",
                facets=samples(DatasetFacet),
                inputFacets=samples(InputDatasetFacet),
            )
        ],
        outputs=[
            OutputDataset(
                calls.namespace,
                "written",
                facets=samples(DatasetFacet),
                outputFacets=samples(OutputDatasetFacet),
            )
        ],
        producer=PRODUCER,
    )
    transport = HttpTransport(HttpConfig(server.url))
    OpenLineageClient(transport=transport).emit(event)

    sent = Serde.to_dict(event)
    found = calls.run(run)
    assert found["facets"] == sent["run"]["facets"]
    of_job = calls.get("jobs", "runs", run, "facets", type="job")
    assert of_job["facets"] == sent["job"]["facets"]
    assert calls.job("everything")["facets"] == sent["job"]["facets"]
    output, source = sent["outputs"][0], sent["inputs"][0]
    quality = ("dataQualityAssertions", "dataQualityMetrics")
    tested = {name: facet for name, facet in source["inputFacets"].items() if name in quality}
    assert len(tested) == len(quality)
    assert calls.dataset("written")["facets"] == output["facets"] | output["outputFacets"]
    assert calls.dataset("read")["facets"] == source["facets"] | tested
    [read], [written] = found["inputDatasetVersions"], found["outputDatasetVersions"]
    assert read["facets"] == sent["inputs"][0]["inputFacets"]
    assert written["facets"] == sent["outputs"][0]["outputFacets"]
    assert len(sent["run"]["facets"]) > 5
    assert len(sent["outputs"][0]["facets"]) > 10
    assert calls.get("jobs", "runs", run, "events")["events"] == [sent]


def run_event(calls: Calls, run: str, state: RunState, **facets: Any) -> RunEvent:
    """An event of a job that reads orders and writes totals."""
    columns = [schema_dataset.SchemaDatasetFacetFields("total", "DECIMAL", "the sum")]
    made_from = column_lineage_dataset.InputField(
        calls.namespace,
        "orders",
        "price",
        [column_lineage_dataset.Transformation("DIRECT", "AGGREGATION", "sum")],
    )
    lineage = column_lineage_dataset.ColumnLineageDatasetFacet(
        {"total": column_lineage_dataset.Fields([made_from])}
    )
    price = schema_dataset.SchemaDatasetFacetFields("price", "DECIMAL")
    tag = tags_dataset.TagsDatasetFacetFields("gold", "true", "TEST")
    second = symlinks_dataset.Identifier(calls.namespace, "shop.totals", "TABLE")
    return RunEvent(
        eventTime=now(),
        eventType=state,
        run=Run(run, facets=facets),
        job=Job(
            calls.namespace,
            "dag.sum",
            facets={
                "documentation": documentation_job.DocumentationJobFacet("adds up"),
                "sourceCodeLocation": source_code_location_job.SourceCodeLocationJobFacet(
                    "git", "https://git.example.org/sum.py"
                ),
            },
        ),
        inputs=[
            InputDataset(
                calls.namespace,
                "orders",
                facets={"schema": schema_dataset.SchemaDatasetFacet([price])},
            )
        ],
        outputs=[
            OutputDataset(
                calls.namespace,
                "totals",
                facets={
                    "schema": schema_dataset.SchemaDatasetFacet(columns),
                    "columnLineage": lineage,
                    "tags": tags_dataset.TagsDatasetFacet([tag]),
                    "symlinks": symlinks_dataset.SymlinksDatasetFacet([second]),
                },
            )
        ],
        producer=PRODUCER,
    )


def check_run(calls: Calls, run: str, parent: str) -> None:
    """What the catalog knows after START and COMPLETE of such a run."""
    found = calls.run(run)
    assert (found["state"], found["nominalStartTime"]) == ("COMPLETED", "2026-11-14T00:00:00.000Z")
    assert found["parent"] == {"namespace": calls.namespace, "name": "dag", "runId": parent}
    job = calls.job("dag.sum")
    assert (job["simpleName"], job["description"]) == ("sum", "adds up")
    assert job["location"] == "https://git.example.org/sum.py"
    totals = calls.dataset("shop.totals")
    assert (totals["name"], totals["tags"]) == ("totals", ["gold"])
    assert totals["fields"][0] == {
        "name": "total",
        "type": "DECIMAL",
        "tags": [],
        "description": "the sum",
    }
    assert totals["columnLineage"][0]["inputFields"][0]["field"] == "price"
    assert totals["currentVersionNumber"] == 1


def emit_run(client: OpenLineageClient, calls: Calls) -> None:
    run, parent = str(uuid.uuid4()), str(uuid.uuid4())
    of_parent = parent_run.ParentRunFacet(
        parent_run.Run(parent), parent_run.Job(calls.namespace, "dag")
    )
    nominal = nominal_time_run.NominalTimeRunFacet("2026-11-14T00:00:00Z", "2026-11-15T00:00:00Z")
    client.emit(run_event(calls, run, RunState.START, parent=of_parent, nominalTime=nominal))
    client.emit(run_event(calls, run, RunState.RUNNING))
    client.emit(run_event(calls, run, RunState.COMPLETE))
    client.close()
    check_run(calls, run, parent)


def test_a_run_over_plain_http(server: ServerProcess, calls: Calls) -> None:
    emit_run(OpenLineageClient(transport=HttpTransport(HttpConfig(server.url))), calls)


def test_a_run_packed_and_with_a_key(guarded_server: ServerProcess, guarded_calls: Calls) -> None:
    key = ApiKeyTokenProvider({"apiKey": guarded_server.key(KeyRole.WRITER)})
    config = HttpConfig(guarded_server.url, auth=key, compression=HttpCompression.GZIP)
    emit_run(OpenLineageClient(transport=HttpTransport(config)), guarded_calls)


def test_a_run_over_the_asynchronous_transport(server: ServerProcess, calls: Calls) -> None:
    config = AsyncHttpConfig(server.url, compression=HttpCompression.GZIP)
    emit_run(OpenLineageClient(transport=AsyncHttpTransport(config)), calls)


def test_a_run_with_a_client_made_from_a_configuration(
    guarded_server: ServerProcess, guarded_calls: Calls
) -> None:
    auth = {"type": "api_key", "apiKey": guarded_server.key(KeyRole.WRITER)}
    http = {"type": "http", "url": guarded_server.url, "compression": "gzip", "auth": auth}
    both = {"type": "composite", "transports": {"first": http}, "continue_on_failure": False}
    emit_run(OpenLineageClient(config={"transport": both}), guarded_calls)


def test_a_run_with_a_client_made_from_the_environment(
    guarded_server: ServerProcess, guarded_calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "OPENLINEAGE__TRANSPORT__TRANSPORTS__DEFAULT_HTTP"
    for variable in (f"{name}__TYPE", f"{name}__URL", f"{name}__AUTH", f"{name}__ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv(variable, "")  # so that what the client sets is taken back afterwards
        monkeypatch.delenv(variable)
    monkeypatch.setenv("OPENLINEAGE_URL", guarded_server.url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", guarded_server.key(KeyRole.WRITER))
    monkeypatch.setenv("OPENLINEAGE_ENDPOINT", "api/v1/lineage")
    emit_run(OpenLineageClient(), guarded_calls)


@pytest.mark.parametrize("state", list(RunState))
def test_every_type_of_run_event(server: ServerProcess, calls: Calls, state: RunState) -> None:
    run = str(uuid.uuid4())
    client = OpenLineageClient(transport=HttpTransport(HttpConfig(server.url)))
    client.emit(run_event(calls, run, state))
    states = {
        RunState.START: "RUNNING",
        RunState.RUNNING: "RUNNING",
        RunState.COMPLETE: "COMPLETED",
        RunState.FAIL: "FAILED",
        RunState.ABORT: "ABORTED",
        RunState.OTHER: "NEW",
    }
    assert calls.run(run)["state"] == states[state]


def test_job_and_dataset_events(server: ServerProcess, calls: Calls) -> None:
    client = OpenLineageClient(transport=HttpTransport(HttpConfig(server.url)))
    columns = [schema_dataset.SchemaDatasetFacetFields("id", "INT")]
    facets: dict[str, Any] = {"schema": schema_dataset.SchemaDatasetFacet(columns)}
    client.emit(
        DatasetEvent(
            eventTime=now(),
            dataset=StaticDataset(calls.namespace, "orders", facets=facets),
            producer=PRODUCER,
        )
    )
    client.emit(
        JobEvent(
            eventTime=now(),
            job=Job(calls.namespace, "sum"),
            inputs=[InputDataset(calls.namespace, "orders")],
            outputs=[OutputDataset(calls.namespace, "totals")],
            producer=PRODUCER,
        )
    )
    assert calls.dataset("orders")["currentVersionNumber"] == 1
    assert calls.dataset("orders")["fields"][0]["name"] == "id"
    job = calls.job("sum")
    assert [dataset["name"] for dataset in job["inputs"]] == ["orders"]
    assert [dataset["name"] for dataset in job["outputs"]] == ["totals"]
    assert job["latestRun"] is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_older_classes_of_the_package(
    guarded_server: ServerProcess, guarded_calls: Calls
) -> None:
    from openlineage.client import facet
    from openlineage.client import run as older
    from openlineage.client.client import OpenLineageClientOptions

    run_id = str(uuid.uuid4())
    columns = [facet.SchemaField("id", "INT")]
    options = OpenLineageClientOptions(api_key=guarded_server.key(KeyRole.WRITER))
    client = OpenLineageClient(guarded_server.url, options=options)
    client.emit(
        older.RunEvent(
            older.RunState.COMPLETE,
            now(),
            older.Run(run_id, {"nominalTime": facet.NominalTimeRunFacet("2026-11-14T00:00:00Z")}),
            older.Job(guarded_calls.namespace, "sum", {"sql": facet.SqlJobFacet("SELECT 1")}),
            PRODUCER,
            [older.Dataset(guarded_calls.namespace, "orders")],
            [
                older.Dataset(
                    guarded_calls.namespace, "totals", {"schema": facet.SchemaDatasetFacet(columns)}
                )
            ],
        )
    )
    client.emit(
        older.DatasetEvent(
            now(),
            PRODUCER,
            f"{SPEC}/DatasetEvent",
            older.Dataset(guarded_calls.namespace, "stated"),
        )
    )
    client.emit(
        older.JobEvent(
            now(), PRODUCER, f"{SPEC}/JobEvent", older.Job(guarded_calls.namespace, "stated")
        )
    )
    assert guarded_calls.run(run_id)["state"] == "COMPLETED"
    assert guarded_calls.dataset("totals")["fields"][0]["name"] == "id"
    assert guarded_calls.dataset("stated")["currentVersionNumber"] == 1
    assert guarded_calls.job("stated")["latestRun"] is None


def test_a_client_without_rights_is_told_so(
    guarded_server: ServerProcess, guarded_calls: Calls
) -> None:
    run = str(uuid.uuid4())
    for key, status in ((guarded_server.key(KeyRole.READER), 403), ("pk_wrong", 401)):
        config = HttpConfig(guarded_server.url, auth=ApiKeyTokenProvider({"apiKey": key}))
        with pytest.raises(requests.HTTPError) as refusal:
            OpenLineageClient(transport=HttpTransport(config)).emit(
                run_event(guarded_calls, run, RunState.START)
            )
        assert refusal.value.response is not None
        assert refusal.value.response.status_code == status
    answer: httpx.Response = guarded_calls.client.get(f"/api/v1/jobs/runs/{run}")
    assert answer.status_code == 404
