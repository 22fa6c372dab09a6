"""A job of an external scheduler that reports its runs with the real OpenLineage client."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import base_subset_dataset
from openlineage.client.transport.http import HttpConfig, HttpTransport

from tests.acceptance.calls import PRODUCER, Calls, Document
from tests.acceptance.lot_calls import LotCalls
from tests.running import ServerProcess

RAW, CLEAN, JOB = "raw", "clean", "load"
DAY = "2024-10-15"


class Reporter:
    """A job of an external scheduler that reports with the real client."""

    def __init__(self, server: ServerProcess, calls: Calls, job: str = JOB) -> None:
        self._client = OpenLineageClient(transport=HttpTransport(HttpConfig(server.url)))
        self._namespace = calls.namespace
        self._job = job

    def send(
        self,
        state: RunState,
        run: str,
        *,
        reads: Mapping[str, list[str]] | None = None,
        writes: Mapping[str, list[str]] | None = None,
        **facets: Any,
    ) -> None:
        """Report a state, with the partitions that the run reads and writes of each dataset."""
        inputs = [
            InputDataset(self._namespace, name, inputFacets={"subset": _read(lots)})
            for name, lots in (reads or {}).items()
        ]
        outputs = [
            OutputDataset(self._namespace, name, outputFacets={"subset": _written(lots)})
            for name, lots in (writes or {}).items()
        ]
        self._client.emit(
            RunEvent(
                eventTime=datetime.now(UTC).isoformat(),
                eventType=state,
                run=Run(run, facets=facets),
                job=Job(self._namespace, self._job),
                inputs=inputs,
                outputs=outputs,
                producer=PRODUCER,
            )
        )

    def start(self, *lots: str, run: str | None = None) -> str:
        """Start a run from raw to clean."""
        run = run or str(uuid.uuid4())
        self.send(RunState.START, run, reads={RAW: list(lots)}, writes={CLEAN: list(lots)})
        return run


def _partitions(lots: list[str]) -> base_subset_dataset.PartitionSubsetCondition:
    return base_subset_dataset.PartitionSubsetCondition(
        [base_subset_dataset.Partition({"day": lot}, identifier=lot) for lot in lots]
    )


def _read(lots: list[str]) -> base_subset_dataset.InputSubsetInputDatasetFacet:
    return base_subset_dataset.InputSubsetInputDatasetFacet(_partitions(lots))


def _written(lots: list[str]) -> base_subset_dataset.OutputSubsetOutputDatasetFacet:
    return base_subset_dataset.OutputSubsetOutputDatasetFacet(_partitions(lots))


def conflicts(framework: LotCalls, job: str = JOB) -> list[Document]:
    """Return the lock conflicts in the log of a job, newest first."""
    return [entry for entry in framework.log(job) if entry["action"] == "conflict"]
