"""Three ways to report the life of a run: REST calls in two orders, or events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.acceptance.calls import Calls, Document, fields, new_run_id, schema, version_numbers

Names = Sequence[str]


@dataclass(frozen=True)
class Run:
    """A run that exists, with its job and the inputs and outputs known so far."""

    id: str
    job: str
    reads: Names
    writes: Names


class Lifecycle(Protocol):
    """A way to report a run. Inputs and outputs may be reported early or late."""

    calls: Calls

    def dataset_exists(self, name: str) -> None:
        """Create a dataset that no run wrote."""

    def run_exists(
        self, job: str, reads: Names = (), writes: Names = (), parent: Run | None = None
    ) -> Run:
        """Create a run that has not ended."""

    def succeeds(self, run: Run) -> None:
        """End the run successfully, with its inputs and outputs."""

    def fails(self, run: Run) -> None:
        """End the run as failed, with its inputs and outputs."""


class DynamicCalls:
    """REST calls that report inputs and outputs when the run ends."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        calls.put_namespace()
        calls.put_source("warehouse")

    def dataset_exists(self, name: str) -> None:
        self.calls.put_dataset(name, fields=fields("id"))

    def run_exists(
        self, job: str, reads: Names = (), writes: Names = (), parent: Run | None = None
    ) -> Run:
        self.calls.put_job(job)
        run = Run(self.calls.create_run(job), job, reads, writes)
        _report_parent(self.calls, run, parent)
        return run

    def succeeds(self, run: Run) -> None:
        self._describe(run)
        self.calls.mark(run.id, "complete")

    def fails(self, run: Run) -> None:
        self._describe(run)
        self.calls.mark(run.id, "fail")

    def _describe(self, run: Run) -> None:
        self.calls.mark(run.id, "start")
        for name in run.reads:
            self.calls.put_dataset(name, fields=fields("id"))
        for name in run.writes:
            self.calls.put_dataset(name, fields=fields("id"), runId=run.id)
        self.calls.put_job(run.job, run.reads, run.writes, runId=run.id)


class DeclaredCalls(DynamicCalls):
    """REST calls that declare the inputs and outputs that exist before the run.

    Only a failed run reports the versions that it wrote: it would otherwise have written none.
    """

    def run_exists(
        self, job: str, reads: Names = (), writes: Names = (), parent: Run | None = None
    ) -> Run:
        existing = self._existing()
        self.calls.put_job(
            job, [n for n in reads if n in existing], [n for n in writes if n in existing]
        )
        run = Run(self.calls.create_run(job), job, reads, writes)
        _report_parent(self.calls, run, parent)
        return run

    def succeeds(self, run: Run) -> None:
        if {*run.reads, *run.writes} <= self._declared(run):
            self.calls.mark(run.id, "start")
        else:
            self._describe(run)
        self.calls.mark(run.id, "complete")

    def _existing(self) -> set[str]:
        page = self.calls.get("namespaces", self.calls.namespace, "datasets")
        return {dataset["name"] for dataset in page["datasets"]}

    def _declared(self, run: Run) -> set[str]:
        job = self.calls.job(run.job)
        return {dataset["name"] for dataset in [*job["inputs"], *job["outputs"]]}


class Events:
    """OpenLineage: a START when the run exists, and an event with all its data at its end."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def dataset_exists(self, name: str) -> None:
        event = {
            "eventTime": self.calls.now(),
            "dataset": self.calls.dataset_ref(name, **schema("id")),
            "producer": "https://example.org/acceptance",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
        }
        self.calls.send(event)

    def run_exists(
        self, job: str, reads: Names = (), writes: Names = (), parent: Run | None = None
    ) -> Run:
        run = Run(new_run_id(), job, reads, writes)
        facets = _parent_facet(self.calls, parent) if parent is not None else {}
        self.calls.report("START", run.id, job, run_facets=facets)
        return run

    def succeeds(self, run: Run) -> None:
        self._end("COMPLETE", run)

    def fails(self, run: Run) -> None:
        self._end("FAIL", run)

    def _end(self, kind: str, run: Run) -> None:
        dataset = self.calls.dataset_ref
        self.calls.report(
            kind,
            run.id,
            run.job,
            inputs=[dataset(name, **schema("id")) for name in run.reads],
            outputs=[dataset(name, **schema("id")) for name in run.writes],
        )


def _parent_facet(calls: Calls, parent: Run) -> Document:
    job = {"namespace": calls.namespace, "name": parent.job}
    return {"parent": {"run": {"runId": parent.id}, "job": job}}


def _report_parent(calls: Calls, run: Run, parent: Run | None) -> None:
    """Report the parent by an event. REST has no field for it."""
    if parent is not None:
        calls.report("OTHER", run.id, run.job, run_facets=_parent_facet(calls, parent))


class Outcome:
    """The catalog's state at the end, in the terms of the scenarios."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def versions(self, dataset: str) -> list[int]:
        """Return the numbers of all versions, oldest first."""
        return [version["number"] for version in self._calls.versions(dataset)]

    def current(self, dataset: str) -> int:
        """Return the number of the current version. The API shows it in two places."""
        shown = self._calls.dataset(dataset)
        [current] = [v for v in self._calls.versions(dataset) if v["isCurrent"]]
        assert current["number"] == shown["currentVersionNumber"]
        assert current["version"] == shown["currentVersion"]
        number: int = current["number"]
        return number

    def maker(self, dataset: str, number: int) -> str | None:
        """Return the run that wrote a version."""
        by_number = self._calls.get(
            "namespaces", self._calls.namespace, "datasets", dataset, "versions", f"V{number}"
        )
        run = by_number["createdByRun"]
        return str(run["id"]) if run is not None else None

    def consumed(self, run: Run) -> dict[str, int]:
        """Return the version numbers that a run read."""
        return version_numbers(self._calls.run(run.id)["inputDatasetVersions"])

    def produced(self, run: Run) -> dict[str, int]:
        """Return the version numbers that a run wrote. Each must name this run."""
        numbers = version_numbers(self._calls.run(run.id)["outputDatasetVersions"])
        for dataset, number in numbers.items():
            assert self.maker(dataset, number) == run.id
        return numbers

    def state(self, run: Run) -> str:
        """Return the state of a run."""
        return str(self._calls.run(run.id)["state"])

    def parent(self, run: Run) -> tuple[str, str] | None:
        """Return the job and run that started a run."""
        parent = self._calls.run(run.id)["parent"]
        return (parent["name"], parent["runId"]) if parent is not None else None

    def job_versions(self, job: str) -> list[Document]:
        """Return the shapes of a job and of a run."""
        page = self._calls.get("namespaces", self._calls.namespace, "jobs", job, "versions")
        return [version for version in page["versions"] if version["latestRun"] is not None]
