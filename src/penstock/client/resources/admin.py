"""The calls of the client about the server itself: counts, keys, the audit log, its health."""

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
    """What operators ask. Keys and the audit log are an administrator's matter."""

    @call
    def standing(self) -> Request[SystemOverview]:
        """How everything stands: open work by job, what is stuck or held, lots by the hour."""
        return get(SystemOverview, "standing")

    @call
    def dataset_standing(self, namespace: str, dataset: str) -> Request[DatasetPartitioning]:
        """Whether a dataset is held, and by which interval its gaps can be named."""
        at = ("namespaces", namespace, "datasets", dataset, "standing")
        return get(DatasetPartitioning, *at)

    @call
    def job_standing(self, namespace: str, job: str) -> Request[JobPartitioning]:
        """Whether a job works lot by lot, and how; and whether it is an arc."""
        return get(JobPartitioning, "namespaces", namespace, "jobs", job, "standing")

    @call
    def event_stats(
        self, period: Period = "DAY", timezone: str = "UTC"
    ) -> Request[tuple[EventInterval, ...]]:
        """How many events there were, by hour of a day or by day of a week."""
        shape = tuple[EventInterval, ...]
        return get(shape, "stats", "lineage-events", period=period, timezone=timezone)

    @call
    def count_stats(
        self,
        what: Literal["datasets", "jobs", "sources"],
        period: Period = "DAY",
        timezone: str = "UTC",
    ) -> Request[tuple[IntervalCount, ...]]:
        """How many datasets, jobs or sources there were at the end of each interval."""
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
        """What administrators did, newest first; `action` is a part of what was done."""
        asked = {"who": who, "action": action, "since": since}
        return get(AuditLog, "audit", limit=limit, offset=offset, **asked)

    @call
    def export_audit(
        self, *, since: str | None = None, after: str | None = None, limit: int = 1000
    ) -> Request[AuditExport]:
        """A page of what administrators did, oldest first; `after` is the page before's `next`.

        Each entry has the hash by which `penstock check` verifies the log.
        """
        return get(AuditExport, "audit", "export", limit=limit, since=since, after=after)

    @call
    def my_key(self) -> Request[ShownCaller]:
        """Whose key this client sends, and what it may do."""
        return get(ShownCaller, "key")

    @call
    def keys(self, *, revoked: bool = False) -> Request[ShownKeys]:
        """The keys that work, or with `revoked` every key there ever was."""
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
        """Make a key; its token is in the answer and nowhere else."""
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
        """Set how much a key may send in a second.

        None is the server's default, 0 is without limit.
        """
        body = json_body(requestsPerSecond=requests_per_second, bytesPerSecond=bytes_per_second)
        return put(ShownKey, "keys", name, "rates", body=body)

    @call
    def revoke_key(self, name: str) -> Request[ShownKey]:
        """Let a key work no more, within seconds."""
        return delete(ShownKey, "keys", name)

    @call
    def is_alive(self) -> Request[bool]:
        """Whether the server's process is alive; raises Unreachable if nothing answers."""
        return page(reader(Health), "/livez").then(_is_well)

    @call
    def is_ready(self) -> Request[bool]:
        """Whether the server can serve calls; raises ApiError (503) if it cannot yet."""
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
