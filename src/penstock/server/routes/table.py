"""The table of all routes. The OpenAPI document lists them under the same headings.

CONTRIBUTING.md lists the files of a new endpoint.
"""

from penstock.server.routes import (
    admin,
    arcs,
    claims,
    datasets,
    events,
    ingest,
    ingest_admin,
    jobs,
    lineage,
    lot_events,
    lots,
    manifests,
    namespaces,
    operations,
    provenance,
    runs,
    search,
    status,
    stored,
    work,
)
from penstock.server.routing import Route

CAPABILITIES: tuple[tuple[str, tuple[Route, ...]], ...] = (
    ("events", events.ROUTES),
    ("lineage", lineage.ROUTES),
    ("namespaces", namespaces.ROUTES),
    ("datasets", datasets.ROUTES),
    ("jobs", jobs.ROUTES),
    ("runs", runs.ROUTES),
    ("lots", lots.ROUTES),
    ("manifests", manifests.ROUTES),
    ("work", work.ROUTES),
    ("claims", claims.ROUTES),
    ("arcs", arcs.ROUTES),
    ("operations", operations.ROUTES),
    ("ingest", (*ingest.ROUTES, *ingest_admin.ROUTES, *stored.ROUTES)),
    ("provenance", provenance.ROUTES),
    ("lot-events", lot_events.ROUTES),
    ("search", search.ROUTES),
    ("status", status.ROUTES),
    ("admin", admin.ROUTES),
)
ROUTES: tuple[Route, ...] = tuple(route for _, routes in CAPABILITIES for route in routes)
