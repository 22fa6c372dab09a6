"""Calls of the server itself: overview, counts, keys, the audit log, health."""

from typing import Any, Literal

import msgspec

from penstock.client.request import Request, call, delete, get, json_body, page, post, put, reader
from penstock.schema.admin import (
    AuditExport,
    AuditLog,
    CreatedKey,
    Health,
    KeyRole,
    ShownCaller,
    ShownKey,
    ShownKeys,
    SystemOverview,
)
from penstock.schema.catalog import EventInterval, IntervalCount
from penstock.schema.locks import DatasetPartitioning, JobPartitioning

Period = Literal["DAY", "WEEK"]


class AdminCalls:
    """Calls for operators. Keys and the audit log need an administrator's key."""

    @call
    def standing(self) -> Request[SystemOverview]:
        """The overview: open work by job, stuck and held lots, lots by the hour."""
        return get(SystemOverview, "standing")

    @call
    def dataset_standing(self, namespace: str, dataset: str) -> Request[DatasetPartitioning]:
        """The hold of a dataset, and the interval of its gaps."""
        at = ("namespaces", namespace, "datasets", dataset, "standing")
        return get(DatasetPartitioning, *at)

    @call
    def job_standing(self, namespace: str, job: str) -> Request[JobPartitioning]:
        """The wiring of a job, if it works lot by lot, and whether it is an arc."""
        return get(JobPartitioning, "namespaces", namespace, "jobs", job, "standing")

    @call
    def event_stats(
        self, period: Period = "DAY", timezone: str = "UTC"
    ) -> Request[tuple[EventInterval, ...]]:
        """The number of events, by hour of a day or by day of a week."""
        shape = tuple[EventInterval, ...]
        return get(shape, "stats", "lineage-events", period=period, timezone=timezone)

    @call
    def count_stats(
        self,
        what: Literal["datasets", "jobs", "sources"],
        period: Period = "DAY",
        timezone: str = "UTC",
    ) -> Request[tuple[IntervalCount, ...]]:
        """The number of datasets, jobs or sources at the end of each interval."""
        shape = tuple[IntervalCount, ...]
        return get(shape, "stats", what, period=period, timezone=timezone)

    @call
    def audit(
        self,
        *,
        who: str | None = None,
        action: str | None = None,
        since: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Request[AuditLog]:
        """The audit log, newest first; `action` is a part of an action's name."""
        query = {"who": who, "action": action, "since": since}
        return get(AuditLog, "audit", limit=limit, offset=offset, **query)

    @call
    def export_audit(
        self, *, since: str | None = None, after: str | None = None, limit: int = 1000
    ) -> Request[AuditExport]:
        """A page of the audit log, oldest first; `after` is the `next` of the previous page.

        `penstock check` verifies the log by the hash of each entry.
        """
        return get(AuditExport, "audit", "export", limit=limit, since=since, after=after)

    @call
    def my_key(self) -> Request[ShownCaller]:
        """The key of this client, and its rights."""
        return get(ShownCaller, "key")

    @call
    def keys(self, *, revoked: bool = False) -> Request[ShownKeys]:
        """The active keys, or with `revoked` all keys."""
        return get(ShownKeys, "keys", revoked=revoked)

    @call
    def create_key(
        self,
        name: str,
        role: KeyRole | str,
        *,
        namespace: str | None = None,
        requests_per_second: int | None = None,
        bytes_per_second: int | None = None,
    ) -> Request[CreatedKey]:
        """Create a key; its token is in the answer and nowhere else."""
        body = json_body(
            name=name,
            role=role,
            namespace=namespace,
            requestsPerSecond=requests_per_second,
            bytesPerSecond=bytes_per_second,
        )
        return post(CreatedKey, "keys", body=body)

    @call
    def limit_key(
        self,
        name: str,
        *,
        requests_per_second: int | None = None,
        bytes_per_second: int | None = None,
    ) -> Request[ShownKey]:
        """Set the rates of a key per second.

        None is the server's default, 0 is no limit.
        """
        body = json_body(requestsPerSecond=requests_per_second, bytesPerSecond=bytes_per_second)
        return put(ShownKey, "keys", name, "rates", body=body)

    @call
    def revoke_key(self, name: str) -> Request[ShownKey]:
        """Revoke a key; it stops working within seconds."""
        return delete(ShownKey, "keys", name)

    @call
    def is_alive(self) -> Request[bool]:
        """Whether the server's process is alive; raises Unreachable if nothing answers."""
        return page(reader(Health), "/livez").then(_is_well)

    @call
    def is_ready(self) -> Request[bool]:
        """Whether the server is ready; raises ApiError (503) if it is not."""
        return page(reader(Health), "/readyz").then(_is_well)

    @call
    def metrics(self) -> Request[str]:
        """Counters and timings in Prometheus' text format."""
        return page(bytes.decode, "/metrics")

    @call
    def openapi(self) -> Request[dict[str, Any]]:
        """The API as an OpenAPI 3.1 document."""
        return page(msgspec.json.decode, "/openapi.json")


def _is_well(health: Health) -> bool:
    return health.status == "ok"
