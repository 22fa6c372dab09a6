"""The table of all routes; the OpenAPI document is made from it too."""

from penstock.api import (
    admin,
    datasets,
    events,
    jobs,
    lineage,
    locks,
    lots,
    namespaces,
    operations,
    runs,
    search,
    sources,
    stats,
    tags,
    wiring,
    work,
)
from penstock.api.routing import Route

CAPABILITIES: tuple[tuple[str, tuple[Route, ...]], ...] = (
    ("events", events.ROUTES),
    ("lineage", lineage.ROUTES),
    ("namespaces", namespaces.ROUTES),
    ("sources", sources.ROUTES),
    ("datasets", datasets.ROUTES),
    ("jobs", jobs.ROUTES),
    ("runs", runs.ROUTES),
    ("lots", lots.ROUTES),
    ("wiring", wiring.ROUTES),
    ("work", work.ROUTES),
    ("locks", locks.ROUTES),
    ("tags", tags.ROUTES),
    ("search", search.ROUTES),
    ("stats", stats.ROUTES),
    ("admin", admin.ROUTES),
    ("operations", operations.ROUTES),
)
ROUTES: tuple[Route, ...] = tuple(route for _, routes in CAPABILITIES for route in routes)
