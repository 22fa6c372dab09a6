"""What a server answers about itself, as values."""

from penstock.client.documents.catalog import Document, EntityId
from penstock.client.documents.lots import Held, HeldWhole, Wiring


class Key(Document, frozen=True):
    """A key without its secret."""

    id: str
    name: str
    role: str
    namespace: str | None
    created_at: str
    revoked_at: str | None
    requests_per_second: int | None = None
    bytes_per_second: int | None = None


class Caller(Document, frozen=True):
    """Who is asking; `name` is None where no key was sent and none is needed: all is allowed."""

    name: str | None
    role: str
    namespace: str | None


class Keys(Document, frozen=True):
    """The keys there are."""

    keys: tuple[Key, ...]


class CreatedKey(Document, frozen=True):
    """A new key with its token, which is shown this once."""

    key: Key
    token: str


class Health(Document, frozen=True):
    """That all is well."""

    status: str


class JobStanding(Document, frozen=True):
    """How many lots of a job are open, in which state; counted up to a thousand."""

    namespace: str
    job: str
    ready: int
    waiting: int
    later: int
    held: int
    running: int


class StuckLot(Document, frozen=True):
    """A lot that a job failed with, or that somebody held.

    `held_lot_of` is the dataset of which that lot is held, if nothing else holds the work on it.
    """

    namespace: str
    job: str
    lot: str
    state: str
    attempts: int
    attempts_max: int
    error: str
    since: str
    not_before: str | None
    run: str | None
    held: str | None
    held_lot_of: EntityId | None


class LateDataset(Document, frozen=True):
    """A dataset whose newest lots are overdue: the first of them, how many, and since when."""

    namespace: str
    dataset: str
    interval: str
    first: str
    count: int
    since: str


class LotHour(Document, frozen=True):
    """How many lots were published, or something else, in an hour."""

    start: str
    counts: dict[str, int]


class Standing(Document, frozen=True):
    """How everything stands; `at_least` says that there are more jobs or lots than were counted."""

    jobs: dict[str, int]
    work: tuple[JobStanding, ...]
    stuck: tuple[StuckLot, ...]
    holds: tuple[HeldWhole, ...]
    late: tuple[LateDataset, ...]
    hours: tuple[LotHour, ...]
    at_least: bool


class DatasetStanding(Document, frozen=True):
    """Whether a dataset is held, and by which interval its gaps can be named, if by any."""

    held: Held | None
    interval: str | None


class LotJobStanding(Document, frozen=True):
    """How a job's lots are worked on; None if it does not work lot by lot."""

    wiring: Wiring | None
    is_arc: bool
