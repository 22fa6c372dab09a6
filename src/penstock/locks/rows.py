"""The rows of locks, one frozen value for each table; field order is column order."""

from typing import Self

import msgspec

from penstock.catalog.rows import Row
from penstock.clock import SECOND, Micros
from penstock.schema.catalog import DatasetRole
from penstock.schema.locks import Stale
from penstock.schema.lots import Status
from penstock.states import WorkState

LINEAGE = "LINEAGE"  # the kind of a hold that follows the hold of a dataset upstream
EXTERNAL_JOB = "00000000-0000-0000-0000-000000000000"  # the job of lots from outside
HOLD_SENTINEL = (
    EXTERNAL_JOB  # the dataset of the INPUT row by which a person keeps a job from a lot
)
RELEASE_PREFIX = "given back: "  # begins the error of work whose dependency was unavailable

_encode_ids = msgspec.json.Encoder().encode
_decode_ids = msgspec.json.Decoder(tuple[str, ...]).decode


class LotJobRow(Row, frozen=True):
    """The wiring of a job: its inputs, its outputs, and how its lots are claimed."""

    job_id: str
    inputs: str
    outputs: str
    lease_seconds: int
    tries_max: int
    back_off_seconds: int
    enforced: int
    stated: int
    stale: Stale
    created_at: Micros
    updated_at: Micros
    managed_by: str | None = None  # the engine that claims its lots; no other worker may

    @property
    def input_ids(self) -> tuple[str, ...]:
        """The ids of the inputs."""
        return _decode_ids(self.inputs)

    @property
    def input_row_ids(self) -> tuple[str, ...]:
        """The dataset ids of its INPUT rows: its inputs, and the sentinel of a hold."""
        return (*self.input_ids, HOLD_SENTINEL)

    @property
    def output_ids(self) -> tuple[str, ...]:
        """The ids of the outputs."""
        return _decode_ids(self.outputs)


class LotJobDatasetRow(Row, frozen=True):
    """A wire: a job reads or writes the lots of a dataset."""

    dataset_id: str
    role: DatasetRole
    job_id: str


class LotHoldRow(Row, frozen=True):
    """The hold of a whole dataset or job.

    A hold that follows the hold of a dataset upstream has that dataset as `source_id`.
    """

    id: str
    kind: str
    who: str
    why: str
    since: Micros
    source_id: str | None = None


class StatusRow(Row, frozen=True):
    """The status of a lot of a dataset for one job."""

    dataset_id: str
    lot: str
    role: DatasetRole
    job_id: str
    status: Status
    held_from: str
    run_id: str | None
    version_id: str | None
    since: Micros


class WorkRow(Row, frozen=True):
    """The work of a job on one lot, and its claim."""

    job_id: str
    lot: str
    lot_key: str
    rank: int
    state: WorkState
    tries: int
    token: int
    run_id: str | None
    owner: str
    lease_seconds: int
    lease_until: Micros
    not_before: Micros
    since: Micros
    error: str
    stale_since: Micros = 0  # when an input got a newer version than the one that was read
    unmade: int = 0  # 1: it is done, but an output that was wired later lacks the lot

    @property
    def renewed_at(self) -> Micros:
        """When the lease was acquired or renewed last, by the clock of that server."""
        return self.lease_until - self.lease_seconds * SECOND


class ReasonsRow(Row, frozen=True):
    """The reasons of a lot's hold: ids of held datasets that it is or was made from, or QUALITY."""

    dataset_id: str
    lot: str
    why: str

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons as ids."""
        return _decode_ids(self.why)

    @classmethod
    def of(cls, dataset_id: str, lot: str, reasons: tuple[str, ...]) -> Self:
        """Encode a row with these reasons."""
        return cls(dataset_id, lot, _encode_ids(reasons).decode())


class GateOwnerRow(Row, frozen=True):
    """An owner of the replay gate: a replay that decides when its work may start."""

    id: str
    name: str
    is_paused: int


class GatedWorkRow(Row, frozen=True):
    """Work behind the replay gate: it starts only when its owners allow it.

    If the work became stale behind the gate, `kept_since` is its `stale_since` from before.
    """

    job_id: str
    lot: str
    keepers: str
    kept_since: Micros | None

    @property
    def owner_ids(self) -> tuple[str, ...]:
        """The ids of the owners."""
        return _decode_ids(self.keepers)

    @classmethod
    def of(cls, job_id: str, lot: str, ids: tuple[str, ...], kept_since: Micros | None) -> Self:
        """Encode a row with these owners."""
        return cls(job_id, lot, _encode_ids(ids).decode(), kept_since)


class CheckRow(Row, frozen=True):
    """The result of a check of a version of a lot."""

    version_id: str
    name: str
    field: str
    dataset_id: str
    lot: str
    success: int
    detail: str
    run_id: str | None
    at: Micros


class LogRow(Row, frozen=True):
    """A transition in the log."""

    at: Micros
    action: str
    lot: str
    job_id: str | None
    dataset_id: str | None
    run_id: str | None
    was: str
    became: str
    who: str
    why: str


class ClockRow(Row, frozen=True):
    """A clock dataset that is in use; `due_at` is the end of its next interval."""

    dataset_id: str
    interval: str
    due_at: Micros
