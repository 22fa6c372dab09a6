"""Wire types of keys, the audit log, health and the overview."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from penstock.schema.catalog import EntityId
from penstock.schema.locks import HeldWhole
from penstock.schema.lot_ids import Interval
from penstock.schema.shape import Shape
from penstock.states import RunState, WorkState


class KeyRole(StrEnum):
    """The rights of a key. Each role has the rights of the roles before it."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def covers(self, needed: "KeyRole") -> bool:
        """Return whether this role has the rights of another."""
        return _RANK[self] >= _RANK[needed]


_RANK = {role: rank for rank, role in enumerate(KeyRole)}


class ShownKey(Shape, frozen=True):
    """A key without its secret."""

    id: str
    name: str
    role: KeyRole
    namespace: str | None
    created_at: str
    revoked_at: str | None
    requests_per_second: int | None
    bytes_per_second: int | None


class ShownKeys(Shape, frozen=True):
    """A list of keys."""

    keys: Sequence[ShownKey]


class CreatedKey(Shape, frozen=True):
    """A new key with its token, which is shown this once."""

    key: ShownKey
    token: str


class ShownEntry(Shape, frozen=True):
    """An entry of the audit log.

    The address is empty for a process that opened the database itself. The hash covers the entry
    and the one before it.
    """

    id: int
    at: str
    who: str
    address: str
    action: str
    target: str
    detail: str
    hash: str


class AuditLog(Shape, frozen=True):
    """A page of the audit log."""

    entries: Sequence[ShownEntry]


class AuditExport(Shape, frozen=True):
    """A page of the audit log, oldest first. `next` leads to the next page, if it exists."""

    entries: Sequence[ShownEntry]
    next: str | None


class ShownCaller(Shape, frozen=True):
    """The caller. Without a key, where none is needed, `name` is null and all is allowed.

    A key with a `namespace` may touch only that one.
    """

    name: str | None
    role: KeyRole
    namespace: str | None


class Health(Struct, frozen=True):
    """The answer of a healthy server."""

    status: Literal["ok"] = "ok"


class LateDataset(Shape, frozen=True):
    """A dataset whose newest lots are overdue: the first, their number, and since when.

    A lot is overdue when a whole interval has passed since its own ended. Lots that are missing
    before the newest one are gaps.
    """

    namespace: str
    dataset: str
    interval: Interval
    first: str
    count: int
    since: str


class JobStanding(Shape, frozen=True):
    """The open lots of a job by state. Each state but running is counted up to a thousand."""

    namespace: str
    job: str
    ready: int
    waiting: int
    retryable: int
    held: int
    running: int

    @property
    def open(self) -> int:
        """The number of lots that are not done."""
        return self.ready + self.waiting + self.retryable + self.held + self.running


class StuckLot(Shape, frozen=True):
    """A lot that failed in a job, or that is held.

    `held_lot_of` is the dataset of which that lot is held, if nothing else holds the work on it.
    """

    namespace: str
    job: str
    lot: str
    state: WorkState
    attempts: int
    attempts_max: int
    error: str
    since: str
    not_before: str | None
    run: str | None
    held: str | None
    held_lot_of: EntityId | None


class LotHour(Shape, frozen=True):
    """The number of lot events of one hour, by kind."""

    start: str
    counts: Mapping[str, int]


class SystemOverview(Shape, frozen=True):
    """The state of the system. With `at_least`, more jobs or lots exist than were counted."""

    jobs: Mapping[RunState, int]
    work: Sequence[JobStanding]
    stuck: Sequence[StuckLot]
    holds: Sequence[HeldWhole]
    late: Sequence[LateDataset]
    hours: Sequence[LotHour]
    at_least: bool
