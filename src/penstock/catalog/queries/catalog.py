"""The read queries of the catalog for the server.

Each takes a transaction first. A list costs the same few statements at any length. A missing thing
raises `NotFound`.
"""

from penstock.catalog.queries.datasets import (
    get_dataset,
    get_dataset_version,
    list_dataset_versions,
    list_datasets,
)
from penstock.catalog.queries.events import list_events
from penstock.catalog.queries.jobs import (
    RunPlace,
    get_job,
    get_job_version,
    list_all_runs,
    list_job_versions,
    list_jobs,
    list_runs,
)
from penstock.catalog.queries.names import (
    get_namespace,
    get_source,
    get_tag,
    list_grants,
    list_namespaces,
    list_sources,
    list_tags,
)
from penstock.catalog.queries.runs import get_run, get_run_facets
from penstock.catalog.queries.search import SearchKind, SearchSort, search
from penstock.catalog.queries.stats import (
    Period,
    dataset_stats,
    job_stats,
    lineage_event_stats,
    source_stats,
)

__all__ = [
    "Period",
    "RunPlace",
    "SearchKind",
    "SearchSort",
    "dataset_stats",
    "get_dataset",
    "get_dataset_version",
    "get_job",
    "get_job_version",
    "get_namespace",
    "get_run",
    "get_run_facets",
    "get_source",
    "get_tag",
    "job_stats",
    "lineage_event_stats",
    "list_all_runs",
    "list_dataset_versions",
    "list_datasets",
    "list_events",
    "list_grants",
    "list_job_versions",
    "list_jobs",
    "list_namespaces",
    "list_runs",
    "list_sources",
    "list_tags",
    "search",
    "source_stats",
]
