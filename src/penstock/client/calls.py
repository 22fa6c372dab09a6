"""Every call of the server's API, in both colours."""

from penstock.client.admin import AdminCalls
from penstock.client.arcs import ArcCalls
from penstock.client.catalog import CatalogCalls
from penstock.client.claim_calls import ClaimCalls
from penstock.client.history import HistoryCalls
from penstock.client.ingest import IngestCalls
from penstock.client.ingest_admin import IngestAdminCalls
from penstock.client.lots import LotCalls
from penstock.client.outbox import OutboxCalls
from penstock.client.provenance import ProvenanceCalls
from penstock.client.replays import ReplayCalls
from penstock.client.stream import StreamCalls


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
    """What a server shows and does."""
