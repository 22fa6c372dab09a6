"""The rows of locks, one frozen value per table; field order is column order."""

from typing import Self

import msgspec

from penstock.catalog.rows import Row
from penstock.clock import SECOND, Micros
from penstock.schema.catalog import DatasetRole
from penstock.schema.locks import Stale
from penstock.schema.lots import Status
from penstock.states import WorkState

LINEAGE = "LINEAGE"  # the hold of a job that works on what is made of a dataset that is held
OUTSIDE = "00000000-0000-0000-0000-000000000000"  # the job of lots that no job made
NOWHERE = OUTSIDE  # the dataset of the INPUT row by which a person keeps a job from a lot
GIVEN_BACK = "given back: "  # before what was away, where a claim was given back for that

_encode_ids = msgspec.json.Encoder().encode
_decode_ids = msgspec.json.Decoder(tuple[str, ...]).decode


class LotJobRow(Row, frozen=True):
    """How a job's lots are worked on, and which datasets it reads and writes lot by lot."""

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

    @property
    def input_ids(self) -> tuple[str, ...]:
        """The datasets it reads."""
        return _decode_ids(self.inputs)

    @property
    def own_ids(self) -> tuple[str, ...]:
        """The datasets of its INPUT rows: what it reads, and that of being kept from a lot."""
        return (*self.input_ids, NOWHERE)

    @property
    def output_ids(self) -> tuple[str, ...]:
        """The datasets it writes."""
        return _decode_ids(self.outputs)


class LotJobDatasetRow(Row, frozen=True):
    """That a job reads or writes the lots of a dataset."""

    dataset_id: str
    role: DatasetRole
    job_id: str


class HoldRow(Row, frozen=True):
    """A dataset or job that an administrator has stopped.

    `source_id` is there if the hold follows that of a dataset upstream.
    """

    id: str
    kind: str
    who: str
    why: str
    since: Micros
    source_id: str | None = None


class StatusRow(Row, frozen=True):
    """What a job does with a lot of a dataset."""

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
    """What a job has to do with one lot, and its claim on it."""

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
    stale_since: Micros = 0  # since when an input has a newer version than the one it read
    unmade: int = 0  # 1: it is done, and an output that its job writes by now lacks it

    @property
    def renewed_at(self) -> Micros:
        """When the claim was given or renewed last, by the clock that did."""
        return self.lease_until - self.lease_seconds * SECOND


class ReasonsRow(Row, frozen=True):
    """Why a lot is held: datasets of which it, or what it was made from, is held; or its checks."""

    dataset_id: str
    lot: str
    why: str

    @property
    def reasons(self) -> tuple[str, ...]:
        """One for each."""
        return _decode_ids(self.why)

    @classmethod
    def of(cls, dataset_id: str, lot: str, reasons: tuple[str, ...]) -> Self:
        """The row with these reasons."""
        return cls(dataset_id, lot, _encode_ids(reasons).decode())


class KeeperRow(Row, frozen=True):
    """Who has work done in an order of their own, as a replay has while it stands."""

    id: str
    name: str
    is_paused: int


class TurnRow(Row, frozen=True):
    """That a job's work on a lot waits for its turn in the order of some keepers.

    `kept_since` is there if it became stale meanwhile: what `stale_since` of it was before.
    """

    job_id: str
    lot: str
    keepers: str
    kept_since: Micros | None

    @property
    def keeper_ids(self) -> tuple[str, ...]:
        """One for each."""
        return _decode_ids(self.keepers)

    @classmethod
    def of(cls, job_id: str, lot: str, ids: tuple[str, ...], kept_since: Micros | None) -> Self:
        """The row with these keepers."""
        return cls(job_id, lot, _encode_ids(ids).decode(), kept_since)


class CheckRow(Row, frozen=True):
    """What a check said about a version of a lot."""

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
    """One transition."""

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
    """A clock dataset in use."""

    dataset_id: str
    interval: str
    due_at: Micros
