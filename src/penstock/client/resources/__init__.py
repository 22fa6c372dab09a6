"""All calls of the API, for blocking and asynchronous clients."""

from penstock.client.resources.admin import AdminCalls
from penstock.client.resources.arcs import ArcCalls, ReplayCalls
from penstock.client.resources.catalog import CatalogCalls, HistoryCalls
from penstock.client.resources.claims import ClaimCalls
from penstock.client.resources.ingest import IngestAdminCalls, IngestCalls
from penstock.client.resources.lot_events import OutboxCalls, StreamCalls
from penstock.client.resources.lots import LotCalls
from penstock.client.resources.provenance import ProvenanceCalls


class Calls(
    CatalogCalls,
    HistoryCalls,
    LotCalls,
    ClaimCalls,
    ArcCalls,
    ReplayCalls,
    IngestCalls,
    IngestAdminCalls,
    OutboxCalls,
    ProvenanceCalls,
    StreamCalls,
    AdminCalls,
):
    """All calls of the API."""
