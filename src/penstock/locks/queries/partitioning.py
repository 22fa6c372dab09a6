"""Whether a dataset or a job goes lot by lot at all, for whoever does not know before asking."""

from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound
from penstock.locks.gaps.spans import find_span
from penstock.locks.queries.claims import find_dataset, get_held_dataset, get_wiring
from penstock.schema.catalog import EntityId
from penstock.schema.locks import LotwiseDataset, LotwiseJob
from penstock.schema.lot_ids import Interval


def lotwise_dataset(tx: Transaction, namespace: str, dataset: str, now: Micros) -> LotwiseDataset:
    """How the lots of a dataset can be looked at."""
    dataset_id = find_dataset(tx, namespace, dataset)
    interval: Interval | None
    try:
        name = EntityId(namespace, dataset)
        interval = find_span(tx, dataset_id, name, None, None, now).interval
    except Invalid:
        interval = None
    return LotwiseDataset(get_held_dataset(tx, namespace, dataset).held, interval)


def lotwise_job(tx: Transaction, namespace: str, job: str, *, is_arc: bool) -> LotwiseJob:
    """How a job's lots are worked on, if they are."""
    try:
        return LotwiseJob(get_wiring(tx, namespace, job), is_arc)
    except NotFound:
        return LotwiseJob(None, is_arc)
