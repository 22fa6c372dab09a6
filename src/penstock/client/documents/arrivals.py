"""What a server answers about arrivals, as values."""

from penstock.client.documents.catalog import Document


class RefusedObject(Document, frozen=True):
    """An object that is in no lot as it is now."""

    uri: str
    lot: str
    size: int
    at: str


class ArrivalFailure(Document, frozen=True):
    """Why the place where objects arrive cannot be looked at, and since when."""

    since: str
    error: str


class UntakenObjects(Document, frozen=True):
    """How many objects cannot be taken into lots, by their names; one of them, and why not."""

    count: int
    example: str
    reason: str


class Arrival(Document, frozen=True):
    """Where a dataset arrives; every interval before `open_from` is closed."""

    namespace: str
    dataset: str
    version: str
    location: str
    interval: str
    time: str
    pattern: str
    grace_seconds: int
    late: str
    start: str
    missing: str
    digest_bytes_max: int
    open_from: str
    created_at: str
    updated_at: str
    refused: tuple[RefusedObject, ...]
    failed: ArrivalFailure | None
    untaken: UntakenObjects | None


class Arrivals(Document, frozen=True):
    """Where datasets arrive, by name; what was refused is not listed here."""

    arrivals: tuple[Arrival, ...]
