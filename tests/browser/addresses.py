"""The address of every view on the filled servers, by the name of its screenshot."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from tests.browser.mill import (
    BAKING,
    BREAD,
    FLOUR,
    HOURS,
    MILL,
    MISSING,
    SACKS,
    UNSALTED,
    WEIGHED,
    WEIGHING,
    Mill,
)
from tests.browser.scene import (
    CLEAN,
    CLEANING,
    FAILED_HOURS_AGO,
    SHOP,
    WORKING_HOURS_AGO,
    Scene,
)

WAREHOUSE = "postgres://warehouse:5432"
REVENUE = "marts.daily_revenue"


def address(*segments: str, **query: str) -> str:
    """Format an address of the page; each part is encoded as one segment."""
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    return f"{path}?{urlencode(query)}" if query else path


def views(scene: Scene) -> Mapping[str, str]:
    """List every view of the catalog, its lots and jobs."""
    failed, good = scene.hour(FAILED_HOURS_AGO), scene.hour(WORKING_HOURS_AGO)
    job = ("jobs", SHOP, CLEANING)
    lots = ("datasets", SHOP, CLEAN)
    revenue = ("datasets", WAREHOUSE, REVENUE)
    node = f"dataset:{WAREHOUSE}:{REVENUE}"
    return {
        "overview": "/",
        "lineage-first": "/lineage",
        "lineage": address("lineage", node=node, hops="4"),
        "lineage-columns": address("lineage", node=node, columns="1", direction="upstream"),
        "lineage-indirect": address("lineage", node=node, columns="1", indirect="1", depth="2"),
        "lineage-as-of": address("lineage", node=node, asOf=f"{scene.started:%Y-%m-%dT00:00:00Z}"),
        "datasets": "/datasets",
        "datasets-found": address("datasets", q="orders"),
        "dataset-lots": address(*lots, lot=failed),
        "dataset-versions": address(*revenue, tab="versions"),
        "dataset-use": address(*revenue, tab="use"),
        "dataset-about": address(*revenue, tab="about"),
        "lot": address(*lots, "lots", good),
        "lot-manifest": address(*lots, "lots", good, tab="manifest"),
        "lot-history": address(*lots, "lots", failed, tab="log"),
        "jobs": "/jobs",
        "jobs-open": address("jobs", open="1"),
        "jobs-failed": address("jobs", state="FAILED"),
        "job-runs": address(*job),
        "job-lots": address(*job, tab="lots"),
        "job-backfill": address(*job, tab="backfill"),
        "job-versions": address(*job, tab="versions"),
        "job-history": address(*job, tab="log"),
        "job-about": address(*job, tab="about"),
        "work": address(*job, "lots", failed),
        "run": address("runs", _run(scene, "daily_shop")),
        "run-failed": address("runs", _run(scene, "daily_shop.export_finance")),
        "run-facets": address("runs", _run(scene, "daily_shop"), tab="facets"),
        "run-events": address("runs", _run(scene, "daily_shop"), tab="events"),
    }


def ingest_views(mill: Mill) -> Mapping[str, str]:
    """List every view of ingest."""
    batch, job = ("ingest", "batches", mill.failed), mill.jobs(mill.failed)["oats.csv"]["id"]
    return {
        "ingest": "/ingest",
        "ingest-pending": address("ingest", state="pending", collection=SACKS),
        "ingest-none": address("ingest", state="reporting"),
        "ingest-jobs": address("ingest", tab="jobs", status="failed"),
        "ingest-collections": address("ingest", tab="collections"),
        "ingest-stored": address("ingest", tab="stored"),
        "object": address(
            "ingest", tab="stored", ark=mill.jobs(mill.failed)["rye.csv"]["primaryId"]
        ),
        "batch": address(*batch),
        "batch-failed": address(*batch, status="failed"),
        "batch-report": address(*batch, tab="report"),
        "batch-about": address(*batch, tab="about"),
        "batch-pending": address("ingest", "batches", mill.pending[-1]),
        "ingest-job": address("ingest", "jobs", job),
        "ingest-job-good": address("ingest", "jobs", mill.jobs(mill.failed)["rye.csv"]["id"]),
        "collection": address("ingest", "collections", SACKS),
        "collection-stored": address("ingest", "collections", SACKS, tab="stored"),
        "collection-profile": address("ingest", "collections", SACKS, tab="profile"),
    }


def admin_views(mill: Mill) -> Mapping[str, str]:
    """List every view of locks, quality, replay, gaps, provenance and the audit log."""
    bread = {"namespace": MILL, "dataset": BREAD}
    return {
        "locks": "/locks",
        "locks-found": address("locks", namespace=MILL, job=WEIGHING, lot=WEIGHED),
        "locks-none": address("locks", lot="nowhere"),
        "locks-held": address("locks", tab="held"),
        "locks-why": address("locks", tab="why", namespace=MILL, job=BAKING, lot=MISSING),
        "locks-why-first": address("locks", tab="why"),
        "quality": "/quality",
        "quality-checks": address("quality", lot=f"{MILL}/{BREAD}/{UNSALTED}"),
        "quality-stale": address("quality", tab="stale"),
        "replay": "/replay",
        "replay-backfills": address("replay", tab="backfills"),
        "replay-new": "/replay/new",
        "replay-preview": address("replay", "new", namespace=MILL, dataset=FLOUR, lot=HOURS[3]),
        "replay-one": address("replay", mill.replay),
        "backfill": address("backfills", mill.backfill),
        "gaps-first": "/gaps",
        "gaps": address("gaps", **bread, range=MISSING),
        "provenance-first": "/provenance",
        "provenance": address("provenance", **bread, lot=HOURS[3]),
        "audit": "/audit",
        "audit-found": address("audit", q="arc"),
    }


def _run(scene: Scene, job: str) -> str:
    answer = scene.call("GET", "namespaces", SHOP, "jobs", job, "runs", params={"limit": 1})
    return str(answer["runs"][0]["id"])
