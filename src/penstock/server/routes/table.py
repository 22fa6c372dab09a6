"""The table of all routes; the OpenAPI document is made from it too."""

from penstock.server.routes import (
    admin,
    arcs,
    backfills,
    claims,
    collections,
    datasets,
    events,
    ingest,
    ingest_admin,
    jobs,
    lineage,
    lots,
    manifests,
    namespaces,
    overview,
    provenance,
    quality,
    replays,
    runs,
    search,
    status,
    stored,
    stream,
    subscribers,
    work,
)
from penstock.server.routes import admin as checks
from penstock.server.routes import admin as whose_key
from penstock.server.routes import arcs as arrivals
from penstock.server.routes import arcs as declaring
from penstock.server.routes import namespaces as sources
from penstock.server.routes import namespaces as tags
from penstock.server.routes import quality as held
from penstock.server.routes import stored as payloads
from penstock.server.routes import stream as pulse
from penstock.server.routes import work as wiring
from penstock.server.routing import Route

CAPABILITIES: tuple[tuple[str, tuple[Route, ...]], ...] = (
    ("events", events.ROUTES),
    ("lineage", lineage.ROUTES),
    ("namespaces", namespaces.NAMESPACE_ROUTES),
    ("sources", sources.SOURCE_ROUTES),
    ("datasets", datasets.ROUTES),
    ("jobs", jobs.ROUTES),
    ("runs", runs.ROUTES),
    ("lots", (*lots.ROUTES, *quality.ROUTES, *held.HELD_ROUTES)),
    ("wiring", wiring.WIRING_ROUTES),
    ("work", work.ROUTES),
    ("locks", claims.ROUTES),
    (
        "arcs",
        (
            *arcs.ROUTES,
            *manifests.ROUTES,
            *backfills.ROUTES,
            *arrivals.ARRIVAL_ROUTES,
            *declaring.DECLARING_ROUTES,
        ),
    ),
    ("replays", replays.ROUTES),
    (
        "ingest",
        (
            *collections.ROUTES,
            *payloads.PAYLOAD_ROUTES,
            *ingest.ROUTES,
            *ingest_admin.ROUTES,
            *stored.ROUTES,
        ),
    ),
    ("provenance", (*provenance.ROUTES, *checks.CHECK_ROUTES)),
    ("stream", (*stream.ROUTES, *pulse.PULSE_ROUTES)),
    ("subscribers", subscribers.ROUTES),
    ("tags", tags.ROUTES),
    ("search", search.ROUTES),
    ("stats", (*overview.STATS_ROUTES, *overview.ROUTES)),
    ("admin", (*admin.ROUTES, *whose_key.KEY_ROUTES)),
    ("operations", status.ROUTES),
)
ROUTES: tuple[Route, ...] = tuple(route for _, routes in CAPABILITIES for route in routes)
