"""The address of every view of the page, on the filled server."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

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
    """An address of the page; every segment is encoded whole."""
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    return f"{path}?{urlencode(query)}" if query else path


def views(scene: Scene) -> Mapping[str, str]:
    """Every view, by the name of its picture."""
    failed, good = scene.hour(FAILED_HOURS_AGO), scene.hour(WORKING_HOURS_AGO)
    job = ("jobs", SHOP, CLEANING)
    lots = ("datasets", SHOP, CLEAN)
    revenue = ("datasets", WAREHOUSE, REVENUE)
    node = f"dataset:{WAREHOUSE}:{REVENUE}"
    return {
        "overview": "/",
        "lineage": address("lineage", node=node, depth="4"),
        "lineage-columns": address("lineage", node=node, columns="1", direction="upstream"),
        "lineage-as-of": address("lineage", node=node, asOf=f"{scene.began:%Y-%m-%dT00:00:00Z}"),
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


def _run(scene: Scene, job: str) -> str:
    found = scene.call("GET", "namespaces", SHOP, "jobs", job, "runs", params={"limit": 1})
    return str(found["runs"][0]["id"])
