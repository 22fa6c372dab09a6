"""Whether a dataset or a job is processed lot by lot."""

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound
from penstock.locks.gaps.spans import find_span
from penstock.locks.queries.claims import find_dataset, get_held_dataset, get_lot_job, get_wiring
from penstock.schema.catalog import EntityId
from penstock.schema.locks import DatasetPartitioning, JobPartitioning
from penstock.schema.lot_ids import Interval


def get_dataset_partitioning(
    tx: Transaction, namespace: str, dataset: str, now: Micros
) -> DatasetPartitioning:
    """Read how the lots of a dataset can be listed."""
    dataset_id = find_dataset(tx, namespace, dataset)
    interval: Interval | None
    try:
        name = EntityId(namespace, dataset)
        interval = find_span(tx, dataset_id, name, None, None, now).interval
    except Invalid:
        interval = None
    return DatasetPartitioning(get_held_dataset(tx, namespace, dataset).held, interval)


def get_job_partitioning(tx: Transaction, namespace: str, job: str) -> JobPartitioning:
    """Read how a job processes lots."""
    try:
        row = get_lot_job(tx, namespace, job)
    except NotFound:
        return JobPartitioning(None, is_arc=False)
    return JobPartitioning(get_wiring(tx, namespace, job), is_arc=row.managed_by is not None)
