"""Runs of this server as OpenLineage events for another backend.

The events are made from the catalog after a run has ended, when it no longer changes: a START and
the event of its end, with its datasets, their versions and its lot.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from penstock import __version__
from penstock.catalog.entities.runs import lot_facet
from penstock.catalog.queries.runs import load_runs
from penstock.db import Transaction
from penstock.lots.rows import ManifestRow
from penstock.schema.catalog import Run, RunDatasetVersion
from penstock.schema.shape import stored_json
from penstock.states import RunState

Json = dict[str, Any]

PRODUCER: Final = f"urn:penstock:{__version__}"
_SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"
_FACETS: Final = "https://openlineage.io/spec/facets/"
_SUBSET: Final = f"{_FACETS}1-0-0/BaseSubsetDatasetFacet.json#/$defs/"
_VERSION: Final = (
    f"{_FACETS}1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet"
)
_STATISTICS: Final = (
    f"{_FACETS}1-0-2/OutputStatisticsOutputDatasetFacet.json"
    "#/$defs/OutputStatisticsOutputDatasetFacet"
)
_PARENT: Final = f"{_FACETS}1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet"
_END: Final = {
    RunState.COMPLETED: "COMPLETE",
    RunState.FAILED: "FAIL",
    RunState.ABORTED: "ABORT",
}


def load_reports(tx: Transaction, run_ids: Iterable[str]) -> dict[str, tuple[Run, bytes, bytes]]:
    """Load each run that exists and has ended, with its START and the event of its end."""
    runs = load_runs(tx, list(dict.fromkeys(run_ids)))
    version_ids = [
        v.dataset_version_id.version for r in runs.values() for v in r.output_dataset_versions
    ]
    rows = tx.rows(ManifestRow, "lot_manifests_by_versions", ids=version_ids) if version_ids else []
    manifests = {row.version_id: row for row in rows}
    return {run.id: (run, *_events(run, manifests)) for run in runs.values() if run.state in _END}


def list_datasets(run: Run) -> Iterable[tuple[str, str]]:
    """Yield the datasets that a run read and wrote, by namespace and name."""
    for version in (*run.input_dataset_versions, *run.output_dataset_versions):
        yield version.dataset_version_id.namespace, version.dataset_version_id.name


def _events(run: Run, manifests: Mapping[str, ManifestRow]) -> tuple[bytes, bytes]:
    facet = lot_facet(stored_json(run.facets).decode())
    lots = facet.all_lots if facet is not None else ()
    inputs = [_dataset(version, "input", lots, {}) for version in run.input_dataset_versions]
    outputs = [
        _dataset(version, "output", lots, _statistics(version, manifests))
        for version in run.output_dataset_versions
    ]
    common = {
        "run": {"runId": run.id, "facets": _run_facets(run)},
        "job": {"namespace": run.job.namespace, "name": run.job.name, "facets": {}},
        "inputs": inputs,
        "outputs": outputs,
        "producer": PRODUCER,
        "schemaURL": f"{_SPEC}RunEvent",
    }
    start = {"eventType": "START", "eventTime": run.started_at or run.created_at, **common}
    end = {"eventType": _END[run.state], "eventTime": run.ended_at or run.updated_at, **common}
    return msgspec.json.encode(start), msgspec.json.encode(end)


def _run_facets(run: Run) -> Json:
    facets: dict[str, Json] = {
        name: _facet(f"{_SPEC}RunFacet", **facet)
        for name, facet in msgspec.json.decode(stored_json(run.facets)).items()
        if isinstance(facet, dict)
    }
    if run.parent is not None:
        facets["parent"] = _facet(
            _PARENT,
            run={"runId": run.parent.run_id},
            job={"namespace": run.parent.namespace, "name": run.parent.name},
        )
    return facets


def _dataset(version: RunDatasetVersion, side: str, lots: Sequence[str], more: Json) -> Json:
    """Return a dataset with the version and the lots that a run read or wrote."""
    facets = dict(more)
    if lots:
        partitions = [{"identifier": lot, "dimensions": {"lot": lot}} for lot in lots]
        condition = {"type": "partition", "partitions": partitions}
        shape = f"{side.title()}Subset{side.title()}DatasetFacet"
        facets["subset"] = _facet(f"{_SUBSET}{shape}", **{f"{side}Condition": condition})
    dataset = version.dataset_version_id
    return {
        "namespace": dataset.namespace,
        "name": dataset.name,
        "facets": {"version": _facet(_VERSION, datasetVersion=dataset.version)},
        f"{side}Facets": facets,
    }


def _statistics(version: RunDatasetVersion, manifests: Mapping[str, ManifestRow]) -> Json:
    manifest = manifests.get(version.dataset_version_id.version)
    if manifest is None:
        return {}
    return {"outputStatistics": _facet(_STATISTICS, size=manifest.bytes, fileCount=manifest.uris)}


def _facet(schema: str, /, **fields: Any) -> Json:
    return {"_producer": PRODUCER, "_schemaURL": schema, **fields}
