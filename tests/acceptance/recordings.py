"""Recorded events of real clients, sent with new names and run ids."""

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.calls import Calls, Document

FOLDER = Path(__file__).parent / "recorded"


class Recording:
    """The recorded events of one client, and reads of their results."""

    def __init__(self, calls: Calls, name: str) -> None:
        self._calls = calls
        lines = (FOLDER / f"{name}.ndjson").read_text().splitlines()
        self.events: list[Document] = [self._own(json.loads(line)) for line in lines]

    def send(self, events: Sequence[Document] | None = None) -> None:
        """Send all recorded events, or some of them. The server must accept each."""
        for event in self.events if events is None else events:
            self._calls.send(event)

    def space(self, recorded: str) -> str:
        """Return the namespace that replaces a recorded one."""
        return f"{self._calls.namespace}/{recorded}"

    def runs(self, job: str, namespace: str = "dbt") -> list[Document]:
        """Get the runs of a job, newest first."""
        answer = self._calls.get("namespaces", self.space(namespace), "jobs", job, "runs")
        runs: list[Document] = answer["runs"]
        return runs

    def dataset(self, name: str, namespace: str) -> Document:
        """Get a dataset."""
        answer: Document = self._calls.get("namespaces", self.space(namespace), "datasets", name)
        return answer

    def makers(self, name: str, namespace: str) -> dict[str, str]:
        """Return the run that wrote each version of a dataset."""
        where = ("namespaces", self.space(namespace), "datasets", name, "versions")
        versions = self._calls.get(*where)["versions"]
        return {v["version"]: v["createdByRun"]["id"] for v in versions if v["createdByRun"]}

    def _own(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._own(each) for each in node]
        if not isinstance(node, dict):
            return node
        return {key: self._renamed(key, value) for key, value in node.items()}

    def _renamed(self, key: str, value: Any) -> Any:
        if key == "namespace":
            return self.space(value)
        if key == "runId":
            return str(uuid.uuid5(uuid.NAMESPACE_URL, self.space(value)))
        return self._own(value)


def read(run: Document) -> dict[str, str]:
    """Return the version of each dataset that a run has read, by name."""
    pinned = (each["datasetVersionId"] for each in run["inputDatasetVersions"])
    return {each["name"]: each["version"] for each in pinned}
