"""The rows of lots, one frozen value per table; field order is column order."""

from penstock.catalog.rows import Row
from penstock.clock import Micros
from penstock.states import ManifestState


class LotDatasetRow(Row, frozen=True):
    """How the lots of a dataset are cut."""

    dataset_id: str
    interval: str
    label: str
    running_max: int
    updated_at: Micros


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
