"""The rows of lots, one frozen value per table; field order is column order."""

from penstock.catalog.rows import Row
from penstock.clock import Micros
from penstock.schema.subscribers import SubscriberKind
from penstock.states import ManifestState


class LotDatasetRow(Row, frozen=True):
    """How the lots of a dataset are cut."""

    dataset_id: str
    interval: str
    label: str
    running_max: int
    updated_at: Micros


class LandingRow(Row, frozen=True):
    """That the objects of a dataset arrive, and what was met where they do.

    `error` says why it could not be looked at, since `failed_at`. Of the objects there that cannot
    be taken into lots `example` is one, and `reason` why.
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
    """That a run of ours has ended."""

    at: Micros
    run_id: str


class LotEventRow(Row, frozen=True):
    """Something that happened to a lot."""

    at: Micros
    kind: str
    dataset_id: str
    lot: str
    state: str
    version_id: str | None
    job_id: str | None
    run_id: str | None


class SubscriberRow(Row, frozen=True):
    """Who is told of what happens, how far it was told, and who is at it."""

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
        """Whether it is told of what happens to this dataset."""
        return self.namespace in ("", namespace) and self.dataset in ("", dataset)
