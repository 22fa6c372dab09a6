"""Every call of the server's API, in both colours."""

from penstock.client.resources.admin import AdminCalls
from penstock.client.resources.arcs import ArcCalls
from penstock.client.resources.catalog import CatalogCalls
from penstock.client.resources.claims import ClaimCalls
from penstock.client.resources.history import HistoryCalls
from penstock.client.resources.ingest import IngestCalls
from penstock.client.resources.ingest_admin import IngestAdminCalls
from penstock.client.resources.lots import LotCalls
from penstock.client.resources.provenance import ProvenanceCalls
from penstock.client.resources.replays import ReplayCalls
from penstock.client.resources.subscribers import OutboxCalls
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
