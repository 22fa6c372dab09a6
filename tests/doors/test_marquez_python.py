"""The real marquez-python, through its whole surface, against a running server."""

import inspect
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from marquez_client import Clients, MarquezClient
from marquez_client import client as marquez
from marquez_client.errors import APIError
from marquez_client.models import DatasetId, DatasetType, JobType

from penstock.schema.admin import KeyRole
from tests.running import ServerProcess

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("server"),  # one worker has the servers that these tests share
]

FIELDS = [
    {"name": "id", "type": "INTEGER", "tags": [], "description": "which one"},
    {"name": "email", "type": "VARCHAR"},
]


class Recorder:
    """A client that remembers which of its methods were called."""

    def __init__(self, client: MarquezClient) -> None:
        self._client = client
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self.called.add(name)
        method: Callable[..., Any] = getattr(self._client, name)
        return method


@pytest.fixture
def headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package keeps its headers, and the key among them, for all clients of the process."""
    monkeypatch.setattr(marquez, "_HEADERS", dict(marquez._HEADERS))


@pytest.fixture
def client(server: ServerProcess, headers: None) -> Recorder:
    return Recorder(MarquezClient(server.url, timeout_ms=60_000))


@pytest.fixture
def name() -> Iterator[str]:
    """A namespace as it is in real life, and nobody else's."""
    return iter(f"s3://bucket-{uuid.uuid4().hex[:12]}/{n}" for n in range(100))


def public_methods() -> set[str]:
    found = inspect.getmembers(MarquezClient, inspect.isfunction)
    return {each for each, _ in found if not each.startswith("_")}


def test_every_method_of_the_client_works(client: Recorder, name: Iterator[str]) -> None:
    namespace = next(name)
    created = client.create_namespace(namespace, "ann", "a shop")
    assert (created["name"], created["ownerName"]) == (namespace, "ann")
    assert client.get_namespace(namespace) == created
    assert created in client.list_namespaces(limit=10_000)["namespaces"]
    assert len(client.list_namespaces(limit=1, offset=0)["namespaces"]) == 1

    source = f"warehouse {namespace}"
    url = "jdbc:postgresql://db:5432/shop"
    made = client.create_source(source, "postgresql", url, "the warehouse")
    assert (made["type"], made["connectionUrl"]) == ("POSTGRESQL", url)
    assert client.get_source(source) == made
    assert made in client.list_sources(limit=10_000)["sources"]

    tag = client.create_tag("PII", "of a person")
    assert tag == {"name": "PII", "description": "of a person"}
    assert tag in client.list_tags()["tags"]
    assert tag in client.list_tags(limit=10_000, offset=0)["tags"]

    orders = client.create_dataset(
        namespace, "public.orders", DatasetType.DB_TABLE, "public.orders", source,
        description="all orders", fields=FIELDS, tags=["PII"],
    )  # fmt: skip
    assert orders["id"] == {"namespace": namespace, "name": "public.orders"}
    assert orders["tags"] == ["PII"]
    stream = client.create_dataset(
        namespace, "clicks", DatasetType.STREAM, "clicks", source,
        schema_location="https://schemas.example.org/clicks",
    )  # fmt: skip
    assert stream["type"] == "STREAM"
    assert stream["schemaLocation"] == "https://schemas.example.org/clicks"
    assert client.get_dataset(namespace, "public.orders") == orders
    listed = client.list_datasets(namespace, limit=10, offset=0)
    assert [dataset["name"] for dataset in listed["datasets"]] == ["clicks", "public.orders"]
    assert client.tag_dataset(namespace, "clicks", "PII")["tags"] == ["PII"]
    tagged = client.tag_dataset_field(namespace, "public.orders", "email", "PII")
    assert {f["name"]: f["tags"] for f in tagged["fields"]} == {"id": [], "email": ["PII"]}

    run = _a_run_from_its_job_to_its_end(client, namespace, source)

    versions = client.list_dataset_versions(namespace, "totals", limit=10)["versions"]
    assert [version["number"] for version in versions] == [1]
    version = versions[0]["version"]
    assert client.get_dataset_version(namespace, "totals", version) == versions[0]
    assert versions[0]["createdByRun"]["id"] == run

    _column_lineage(client, namespace, version)
    _events(client)

    assert public_methods() - client.called == set()


def _a_run_from_its_job_to_its_end(client: Recorder, namespace: str, source: str) -> str:
    inputs = [DatasetId(namespace, "public.orders")]
    job = client.create_job(
        namespace, "sum", JobType.BATCH, "https://git.example.org/sum.sql",
        inputs=inputs, description="adds up", context={"SQL": "SELECT 1"},
    )  # fmt: skip
    assert (job["type"], job["location"]) == ("BATCH", "https://git.example.org/sum.sql")
    assert client.get_job(namespace, "sum")["description"] == "adds up"
    assert client.get_job(namespace, "sum")["latestRuns"] is None
    assert client.list_jobs(namespace, limit=10)["totalCount"] == 1

    run_id = str(uuid.uuid4())
    run = client.create_job_run(
        namespace, "sum", run_id,
        nominal_start_time="2026-11-14T00:00:00Z", nominal_end_time="2026-11-15T00:00:00Z",
        run_args={"day": "14"}, mark_as_running=True,
    )  # fmt: skip
    assert (run["id"], run["state"], run["args"]) == (run_id, "RUNNING", {"day": "14"})
    client.create_dataset(
        namespace, "totals", DatasetType.DB_TABLE, "totals", source, run_id=run_id, fields=FIELDS
    )
    client.create_job(
        namespace, "sum", JobType.BATCH, inputs=inputs,
        outputs=[DatasetId(namespace, "totals")], run_id=run_id,
    )  # fmt: skip
    done = client.mark_job_run_as_completed(run_id)
    assert (done["state"], done["nominalStartTime"]) == ("COMPLETED", "2026-11-14T00:00:00.000Z")
    assert client.get_job_run(run_id) == done

    for mark, state in (
        (client.mark_job_run_as_failed, "FAILED"),
        (client.mark_job_run_as_aborted, "ABORTED"),
    ):
        other = client.create_job_run(namespace, "sum")["id"]
        started = client.mark_job_run_as_started(other, at="2026-11-15T10:00:00.5+00:00")
        assert started["startedAt"] == "2026-11-15T10:00:00.500Z"
        assert mark(other, at="2026-11-15T10:00:01Z")["state"] == state
        assert client.get_job_run(other)["durationMs"] == 500
    runs = client.list_job_runs(namespace, "sum", limit=2, offset=1)
    assert (len(runs["runs"]), runs["totalCount"]) == (2, 3)
    return run_id


def _column_lineage(client: Recorder, namespace: str, version: str) -> None:
    by_dataset = client.get_column_lineage_by_dataset(namespace, "totals", depth=5)
    assert isinstance(by_dataset["graph"], list)
    by_version = client.get_column_lineage_by_dataset(namespace, "totals", version=version)
    assert isinstance(by_version["graph"], list)
    of_field = client.get_column_lineage_by_dataset_field(
        namespace, "totals", "email", with_downstream=True
    )
    assert isinstance(of_field["graph"], list)
    by_job = client.get_column_lineage_by_job(namespace, "sum")
    assert isinstance(by_job["graph"], list)


def _events(client: Recorder) -> None:
    namespace, before = f"shop-{uuid.uuid4()}", client.list_events()["totalCount"]
    event = {
        "eventTime": "2026-11-15T10:00:00Z",
        "eventType": "START",
        "run": {"runId": str(uuid.uuid4())},
        "job": {"namespace": namespace, "name": "sum"},
    }
    client._post(client._url("/lineage"), payload=event)
    assert client.list_events(namespace) == {"events": [event], "totalCount": 1}
    assert client.list_events(limit=1, offset=0)["totalCount"] > before


def test_a_refusal_is_the_clients_own_error(client: Recorder, name: Iterator[str]) -> None:
    with pytest.raises(APIError) as refusal:
        client.get_namespace(next(name))
    answer = refusal.value.__cause__.response
    assert answer.status_code == 404
    assert answer.json()["code"] == 404


def test_the_client_shows_its_key(
    guarded_server: ServerProcess,
    headers: None,
    name: Iterator[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MARQUEZ_URL", guarded_server.url)
    monkeypatch.setenv("MARQUEZ_API_KEY", guarded_server.key(KeyRole.READER))
    with pytest.raises(APIError) as refusal:
        Clients.new_client().create_namespace(next(name), "ann")
    assert refusal.value.__cause__.response.status_code == 403

    namespace = next(name)
    writer = MarquezClient(guarded_server.url, api_key=guarded_server.key(KeyRole.WRITER))
    assert writer.create_namespace(namespace, "ann")["name"] == namespace
    with pytest.raises(APIError) as refusal:
        MarquezClient(guarded_server.url, api_key="pk_wrong").get_namespace(namespace)
    assert refusal.value.__cause__.response.status_code == 401
