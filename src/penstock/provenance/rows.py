"""What is read of versions and runs on the way back; field order is column order."""

import msgspec
from msgspec import Struct

from penstock.catalog.claimed_runs import LotFacet, lot_facet
from penstock.catalog.rows import Origin, Row
from penstock.clock import Micros

DEPOSIT_FACET = "penstock_deposit"


class DepositFacet(Struct, frozen=True, rename="camel"):
    """What the run of a deposit says of it."""

    batch: str
    ingest_job: str | None = None
    ark: str | None = None
    object_version: int | None = None
    location: str | None = None
    digest: str | None = None
    submitter: str | None = None


_decode_facets = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_deposit = msgspec.json.Decoder(DepositFacet).decode


class FoundVersion(Row, frozen=True):
    """A version, what it is of and what made it."""

    id: str
    dataset_id: str
    namespace: str
    name: str
    number: int
    origin: Origin
    run_id: str | None
    facets: str
    created_at: Micros
    published_at: Micros | None


class FoundRun(Row, frozen=True):
    """A run with its job and the shape that had."""

    id: str
    job_id: str
    namespace: str
    name: str
    job_version_id: str | None
    location: str | None
    state: str
    started_at: Micros | None
    ended_at: Micros | None
    facets: str

    @property
    def lots(self) -> LotFacet | None:
        """The lots that it works on."""
        return lot_facet(self.facets)

    @property
    def deposit(self) -> DepositFacet | None:
        """The deposit that it is the run of; None if it is of none, or if that makes no sense."""
        if f'"{DEPOSIT_FACET}"' not in self.facets:
            return None
        try:
            return _decode_deposit(_decode_facets(self.facets)[DEPOSIT_FACET])
        except (msgspec.DecodeError, KeyError):
            return None


class FoundBatch(Row, frozen=True):
    """A batch that a lot consists of, or that is part of it."""

    dataset_id: str
    lot: str
    id: str
    collection: str
    submitter: str
    at: Micros


class FoundObject(Row, frozen=True):
    """A stored version of an object."""

    ark: str
    version: int
    collection: str
    batch_id: str
    job_id: str
    location: str
    digest: str
    run_id: str
