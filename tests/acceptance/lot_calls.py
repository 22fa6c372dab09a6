"""The calls that acceptance tests of locks make: a framework that runs jobs lot by lot."""

from collections.abc import Sequence
from typing import Any

from tests.acceptance.calls import Calls, Document, path

Names = Sequence[str]


class LotCalls:
    """Jobs and datasets of one namespace, and what is locked; tries follow each other at once."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    # What the framework does.

    def wire(self, job: str, inputs: Names, outputs: Names, **settings: Any) -> Document:
        """Configure a job with its inputs and outputs."""
        names = {"inputs": self.calls.names(inputs), "outputs": self.calls.names(outputs)}
        body = {"backOffSeconds": 0, **names, **settings}
        answer: Document = self.calls.ask("PUT", self._job(job, "wiring"), json=body)
        return answer

    def register(self, dataset: str, *lots: str, **body: Any) -> int:
        """Lots that come from outside are there."""
        where = self._dataset(dataset, "lots")
        return int(self.calls.ask("POST", where, json={"lots": lots, **body})["registered"])

    def claim(self, job: str, owner: str = "worker", **body: Any) -> list[Document]:
        """Have the framework find chunks for a job; an empty list says that it found none."""
        where = self._job(job, "claims")
        found = self.calls.ask("POST", where, json={"owner": owner, **body})
        assert bool(found["claims"]) == (found["why"] is None)
        claims: list[Document] = found["claims"]
        return claims

    def claim_one(self, job: str, owner: str = "worker", **body: Any) -> Document:
        """Have the framework find one chunk, which must be there."""
        [claim] = self.claim(job, owner, **body)
        return claim

    def complete(self, claim: Document, *, status: int = 200) -> Document:
        """The job has completed successfully."""
        return self._end(claim, "complete", status)

    def fail(self, claim: Document, error: str = "", *, status: int = 200) -> Document:
        """The job has failed."""
        return self._end(claim, "fail", status, error=error)

    def _end(self, claim: Document, how: str, status: int, **body: Any) -> Document:
        where = path("claims", claim["id"], how)
        given = {"token": claim["token"], **body}
        answer: Document = self.calls.ask("POST", where, status=status, json=given)
        return answer

    def run_once(self, job: str, **body: Any) -> Document:
        """The framework finds a chunk, and the job completes on it."""
        claim = self.claim_one(job, **body)
        self.complete(claim)
        return claim

    def act(self, job: str, lot: str, action: str, *, status: int = 200) -> Document:
        """An administrator acts on a job's work on one chunk."""
        where = self._job(job, "lots", lot, action)
        answer: Document = self.calls.ask("POST", where, status=status, json={"why": "a test"})
        return answer

    def hold(self, dataset: str, lot: str) -> None:
        """An administrator holds one chunk of a dataset."""
        self.calls.ask("POST", self._dataset(dataset, "lots", lot, "hold"), json={"why": "a test"})

    # What is there.

    def lot(self, dataset: str, lot: str) -> Document:
        """One chunk of a dataset."""
        answer: Document = self.calls.ask("GET", self._dataset(dataset, "lots", lot))
        return answer

    def output(self, dataset: str, lot: str) -> str | None:
        """The status of the OUTPUT row of a chunk; None if there is no row."""
        answer = self.calls.client.get(self._dataset(dataset, "lots", lot))
        assert answer.status_code in (200, 404), answer.text
        return str(answer.json()["status"]) if answer.status_code == 200 else None

    def input(self, dataset: str, lot: str, job: str) -> str | None:
        """The status of the INPUT row that a job has on a chunk; None if there is no row."""
        statuses = {c["job"]: c["status"] for c in self.lot(dataset, lot)["consumers"]}
        return statuses.get(job)

    def live(self, **which: str) -> list[Document]:
        """The live claims of a job, or on a lot."""
        params = {"namespace": self.calls.namespace, **which}
        found = self.calls.ask("GET", path("locks"), params=params)
        locks: list[Document] = found["locks"]
        return locks

    def work(self, job: str, lot: str) -> Document:
        """What a job has to do with a chunk."""
        answer: Document = self.calls.ask("GET", self._job(job, "lots", lot))
        return answer

    def why(self, job: str, lot: str) -> Document:
        """What stops a job from a chunk."""
        answer: Document = self.calls.ask("GET", self._job(job, "lots", lot, "why"))
        return answer

    def log(self, job: str, **which: str) -> list[Document]:
        """The transitions of a job, newest first."""
        entries: list[Document] = self.calls.ask("GET", self._job(job, "log"), params=which)[
            "entries"
        ]
        return entries

    def log_of_run(self, run: str) -> list[Document]:
        """The transitions of a run, newest first."""
        entries: list[Document] = self.calls.get("jobs", "runs", run, "log")["entries"]
        return entries

    def _job(self, job: str, *segments: str) -> str:
        return path("namespaces", self.calls.namespace, "jobs", job, *segments)

    def _dataset(self, dataset: str, *segments: str) -> str:
        return path("namespaces", self.calls.namespace, "datasets", dataset, *segments)
