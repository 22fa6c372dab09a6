"""HTTP calls of the acceptance tests, in one namespace."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx

API = "/api/v1"
PRODUCER = "https://example.org/acceptance"
SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"

Document = dict[str, Any]
NO_FACETS: Mapping[str, Any] = {}


def path(*segments: str) -> str:
    """Return a path below the API's base, with each segment encoded."""
    return "/".join([API, *(quote(segment, safe="") for segment in segments)])


def fields(*names: str) -> list[Document]:
    """Return fields as the REST API takes them."""
    return [{"name": name, "type": "INTEGER"} for name in names]


def schema(*names: str) -> Document:
    """Return the schema facet with these fields."""
    return {"schema": {"_producer": PRODUCER, "_schemaURL": f"{SPEC}/x", "fields": fields(*names)}}


class Calls:
    """A client for one namespace. Event times count up from an hour ago."""

    def __init__(self, client: httpx.Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self._at = datetime.now(UTC) - timedelta(hours=1)

    def now(self) -> str:
        """Return the next event time, a second after the last."""
        self._at += timedelta(seconds=1)
        return self._at.isoformat().replace("+00:00", "Z")

    # Any call, with its expected status.

    def ask(self, method: str, where: str, *, status: int = 200, **options: Any) -> Any:
        """Make a call, check its status and return the decoded response."""
        answer = self.client.request(method, where, **options)
        assert answer.status_code == status, f"{method} {where}: {answer.status_code} {answer.text}"
        return answer.json()

    def get(self, *segments: str, status: int = 200, **params: Any) -> Any:
        """Get the document at this path."""
        return self.ask("GET", path(*segments), status=status, params=params)

    # The REST lifecycle.

    def put_namespace(self) -> Document:
        """Put the namespace."""
        body = {"ownerName": "ann", "description": "a test's own"}
        answer: Document = self.ask("PUT", path("namespaces", self.namespace), json=body)
        return answer

    def put_source(self, name: str) -> Document:
        """Put a source."""
        body = {"type": "POSTGRESQL", "connectionUrl": "jdbc:postgresql://db:5432/shop"}
        answer: Document = self.ask("PUT", path("sources", name), json=body)
        return answer

    def put_dataset(self, name: str, *, status: int = 200, **body: Any) -> Document:
        """Put a dataset of source `warehouse`."""
        document = {"type": "DB_TABLE", "physicalName": name, "sourceName": "warehouse"} | body
        where = path("namespaces", self.namespace, "datasets", name)
        answer: Document = self.ask("PUT", where, status=status, json=document)
        return answer

    def put_job(
        self,
        name: str,
        inputs: Iterable[str] = (),
        outputs: Iterable[str] = (),
        *,
        status: int = 200,
        **body: Any,
    ) -> Document:
        """Put a job with its inputs and outputs in this namespace."""
        document = {"type": "BATCH", "inputs": self.names(inputs), "outputs": self.names(outputs)}
        where = path("namespaces", self.namespace, "jobs", name)
        answer: Document = self.ask("PUT", where, status=status, json=document | body)
        return answer

    def create_run(self, job: str, **body: Any) -> str:
        """Create a run of a job and return its id."""
        where = path("namespaces", self.namespace, "jobs", job, "runs")
        return str(self.ask("POST", where, status=201, json=body)["id"])

    def mark(self, run: str, action: str, *, status: int = 200, **params: str) -> Document:
        """Report a state of a run: start, complete, fail or abort."""
        where = path("jobs", "runs", run, action)
        answer: Document = self.ask("POST", where, status=status, params=params)
        return answer

    def names(self, names: Iterable[str]) -> list[Document]:
        """Return references to datasets of this namespace."""
        return [{"namespace": self.namespace, "name": name} for name in names]

    # OpenLineage events.

    def event(
        self,
        kind: str,
        run: str,
        job: str,
        *,
        at: str | None = None,
        run_facets: Mapping[str, Any] = NO_FACETS,
        job_facets: Mapping[str, Any] = NO_FACETS,
        inputs: Sequence[str | Document] = (),
        outputs: Sequence[str | Document] = (),
    ) -> Document:
        """Return a run event."""
        return {
            "eventTime": at or self.now(),
            "eventType": kind,
            "producer": PRODUCER,
            "schemaURL": f"{SPEC}/RunEvent",
            "run": {"runId": run, "facets": run_facets},
            "job": {"namespace": self.namespace, "name": job, "facets": job_facets},
            "inputs": [self.dataset_ref(dataset) for dataset in inputs],
            "outputs": [self.dataset_ref(dataset) for dataset in outputs],
        }

    def dataset_ref(self, dataset: str | Document, **facets: Any) -> Document:
        """Return a dataset as events refer to it."""
        if isinstance(dataset, str):
            dataset = {"namespace": self.namespace, "name": dataset, "facets": facets}
        return dataset

    def send(self, event: Mapping[str, Any], *, status: int = 201) -> Any:
        """Send one event."""
        return self.ask("POST", path("lineage"), status=status, json=event)

    def report(self, kind: str, run: str, job: str, **parts: Any) -> None:
        """Send a run event."""
        self.send(self.event(kind, run, job, **parts))

    # Reads.

    def dataset(self, name: str) -> Document:
        """Get the dataset."""
        answer: Document = self.get("namespaces", self.namespace, "datasets", name)
        return answer

    def versions(self, name: str) -> list[Document]:
        """Get the versions of a dataset, oldest first."""
        page = self.get("namespaces", self.namespace, "datasets", name, "versions")
        assert page["totalCount"] == len(page["versions"])
        return sorted(page["versions"], key=lambda version: int(version["number"]))

    def job(self, name: str) -> Document:
        """Get the job."""
        answer: Document = self.get("namespaces", self.namespace, "jobs", name)
        return answer

    def run(self, run: str) -> Document:
        """Get the run."""
        answer: Document = self.get("jobs", "runs", run)
        return answer


def new_run_id() -> str:
    """Return a run id as clients create them."""
    return str(uuid.uuid4())


def version_numbers(versions: Iterable[Document]) -> dict[str, int]:
    """Return the numbers of the versions that a run read or wrote, by dataset."""
    return {entry["datasetVersionId"]["name"]: entry["number"] for entry in versions}
