"""The rows of lots, one frozen value for each table; field order is column order."""

from penstock.catalog.rows import Row
from penstock.clock import Micros
from penstock.schema.subscribers import SubscriberKind
from penstock.states import ManifestState


class LotDatasetRow(Row, frozen=True):
    """The partitioning of a dataset."""

    dataset_id: str
    interval: str
    label: str
    running_max: int
    updated_at: Micros


class LandingRow(Row, frozen=True):
    """The arrival of objects of a dataset, and its problems.

    `error` is why the location cannot be read since `failed_at`. `untaken` objects fit into no lot;
    `example` is one of them, with its `reason`.
    """

    dataset_id: str
    error: str = ""
    failed_at: Micros = 0
    untaken: int = 0
    example: str = ""
    reason: str = ""


class ManifestRow(Row, frozen=True):
    """The manifest of one version of a lot."""

    version_id: str
    dataset_id: str
    lot: str
    state: ManifestState
    key: str
    uris: int
    bytes: int
    digest: str
    attempt: str
    at: Micros


class RunEndRow(Row, frozen=True):
    """The end of a run that claimed lots."""

    at: Micros
    run_id: str


class LotEventRow(Row, frozen=True):
    """An event of a lot."""

    at: Micros
    kind: str
    dataset_id: str
    lot: str
    state: str
    version_id: str | None
    job_id: str | None
    run_id: str | None


class SubscriberRow(Row, frozen=True):
    """A subscriber: its filter, its cursor, its lease and its last failure."""

    name: str
    kind: SubscriberKind
    url: str
    secret: str | None
    namespace: str
    dataset: str
    cursor: int
    token: int
    owner: str
    lease_until: Micros
    failures: int
    next_try_at: Micros
    error: str
    failed_at: Micros | None
    delivered_at: Micros | None
    created_at: Micros
    updated_at: Micros

    def wants(self, namespace: str, dataset: str) -> bool:
        """Whether it receives the events of a dataset."""
        return self.namespace in ("", namespace) and self.dataset in ("", dataset)
