"""A week in the life of a small data platform, as OpenLineage events.

Names, ids and durations are the same each time; only the dates follow the clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from penstock import ids
from penstock.clock import DAY, HOUR, SECOND, Micros, format_time

Facets = dict[str, Any]

PRODUCER = "https://penstock.dev/demo"
SHOP_DB = "postgres://shop-db:5432"
LAKE = "s3://shop-lake"
WAREHOUSE = "postgres://warehouse:5432"
BROKER = "kafka://broker:9092"
TAGGED_FIELDS = {"email": "pii", "address": "pii"}


@dataclass(frozen=True)
class Table:
    """A dataset: where it is, its fields as `name TYPE, …`, and those that came on a later day."""

    namespace: str
    name: str
    fields: str
    about: str = ""
    later: str = ""
    later_from_day: int = 0

    def columns(self, day: int) -> list[tuple[str, str]]:
        """The fields that the table has on a day; a later field replaces one of its name."""
        pairs = dict(_pair(text) for text in self.fields.split(", "))
        if self.later and day >= self.later_from_day:
            pairs |= dict(_pair(text) for text in self.later.split(", "))
        return list(pairs.items())


def _pair(text: str) -> tuple[str, str]:
    name, _, kind = text.partition(" ")
    return name, kind


_ORDERS = "id BIGINT, customer_id BIGINT, product_id BIGINT, amount NUMERIC, ordered_at TIMESTAMP"
_COUPON = "coupon_code TEXT"
_CUSTOMERS = "id BIGINT, name TEXT, email TEXT, address TEXT"
_PAYMENTS = "id BIGINT, order_id BIGINT, paid NUMERIC, method TEXT"
_PRODUCTS = "id BIGINT, title TEXT, price NUMERIC, category TEXT"
_SHIPMENTS = "id BIGINT, order_id BIGINT, shipped_at TIMESTAMP, delivered_at TIMESTAMP"
_CLICKS = "session TEXT, customer_id BIGINT, page TEXT, at TIMESTAMP"

TABLES: dict[str, Table] = {
    "db.orders": Table(SHOP_DB, "public.orders", _ORDERS, "Orders of the web shop.", _COUPON, 3),
    "db.customers": Table(SHOP_DB, "public.customers", _CUSTOMERS),
    "db.payments": Table(SHOP_DB, "public.payments", _PAYMENTS),
    "db.products": Table(SHOP_DB, "public.products", _PRODUCTS),
    "db.shipments": Table(SHOP_DB, "public.shipments", _SHIPMENTS),
    "topic.clicks": Table(BROKER, "shop.clicks", _CLICKS, "Every click, as it happens."),
    "lake.orders": Table(LAKE, "raw/orders", _ORDERS, "", _COUPON, 3),
    "lake.customers": Table(LAKE, "raw/customers", _CUSTOMERS),
    "lake.payments": Table(LAKE, "raw/payments", _PAYMENTS),
    "lake.products": Table(LAKE, "raw/products", _PRODUCTS),
    "lake.shipments": Table(LAKE, "raw/shipments", _SHIPMENTS),
    "lake.clicks": Table(LAKE, "raw/clicks", _CLICKS),
    "staging.orders": Table(
        WAREHOUSE, "staging.orders", _ORDERS, "Orders, cleaned: no tests, no doubles.", _COUPON, 3
    ),
    "staging.customers": Table(WAREHOUSE, "staging.customers", _CUSTOMERS, "Who buys."),
    "staging.payments": Table(WAREHOUSE, "staging.payments", _PAYMENTS),
    "staging.products": Table(WAREHOUSE, "staging.products", _PRODUCTS),
    "staging.shipments": Table(WAREHOUSE, "staging.shipments", _SHIPMENTS),
    "staging.sessions": Table(
        WAREHOUSE, "staging.sessions", "session TEXT, customer_id BIGINT, pages INT, seconds INT"
    ),
    "staging.orders_2019": Table(WAREHOUSE, "staging.orders_2019", _ORDERS, "Left from a move."),
    "marts.order_lines": Table(
        WAREHOUSE,
        "marts.order_lines",
        "order_id BIGINT, customer_id BIGINT, category TEXT, amount NUMERIC, ordered_on DATE",
        "One line for each product in an order.",
    ),
    "marts.daily_revenue": Table(
        WAREHOUSE,
        "marts.daily_revenue",
        "day DATE, category TEXT, revenue FLOAT, paid FLOAT",
        "What was sold and what was paid, by day and category.",
        "revenue NUMERIC(12,2), paid NUMERIC(12,2), discount NUMERIC(12,2)",
        4,
    ),
    "marts.customer_value": Table(
        WAREHOUSE,
        "marts.customer_value",
        "customer_id BIGINT, email TEXT, lifetime_value NUMERIC, visits INT",
    ),
    "marts.delivery_times": Table(
        WAREHOUSE, "marts.delivery_times", "order_id BIGINT, hours INT, late BOOLEAN"
    ),
    "marts.inventory": Table(
        WAREHOUSE, "marts.inventory", "product_id BIGINT, stock INT, counted_at TIMESTAMP"
    ),
    "archive.orders": Table(WAREHOUSE, "archive.orders", _ORDERS, "All orders since 2020."),
    "exports.finance": Table(LAKE, "exports/finance.csv", "day DATE, revenue NUMERIC"),
    "bi.dashboard": Table(WAREHOUSE, "bi.dashboard", "panel TEXT, value NUMERIC"),
    "models.recommender": Table(
        LAKE, "models/recommender", "customer_id BIGINT, product_id BIGINT"
    ),
} | {
    f"lake.archive_{month}": Table(LAKE, f"archive/orders/2026-{month:02}", _ORDERS)
    for month in range(1, 7)
}


def facet(kind: str, **values: Any) -> Facets:
    """A facet as OpenLineage wants it."""
    url = f"https://openlineage.io/spec/facets/1-0-0/{kind}.json"
    return {"_producer": PRODUCER, "_schemaURL": url, **values}


def mention(key: str, day: int) -> dict[str, Any]:
    """A dataset as an event names it."""
    table = TABLES[key]
    columns = table.columns(day)
    fields = [{"name": name, "type": kind} for name, kind in columns]
    facets: Facets = {"schema": facet("SchemaDatasetFacet", fields=fields)}
    if table.about:
        facets["documentation"] = facet("DocumentationDatasetFacet", description=table.about)
    tags = [
        {"key": TAGGED_FIELDS[name], "value": "true", "field": name}
        for name, _ in columns
        if name in TAGGED_FIELDS
    ]
    if tags:
        facets["tags"] = facet("TagsDatasetFacet", tags=tags)
    return {"namespace": table.namespace, "name": table.name, "facets": facets}


Event = dict[str, Any]

JOBS = "shop"
PARENT = "daily_shop"
DAYS = 7
STORY = 20261115
BEGINS_AT_HOUR = 2
MINUTE: Micros = 60 * SECOND
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_CODE = "https://github.com/example/shop-pipelines/blob/main"


@dataclass(frozen=True)
class Step:
    """A job of the daily flow: what it reads and writes, and when it begins."""

    name: str
    reads: tuple[str, ...]
    writes: str
    minute: int
    columns: tuple[tuple[str, str, str], ...] = ()
    keys: tuple[tuple[str, str, str], ...] = ()  # table, field, and what it is the key of

    @property
    def job(self) -> str:
        """The job's whole name."""
        return f"{PARENT}.{self.name}"


def _load(name: str) -> Iterator[Step]:
    """A table's way from the shop to the warehouse."""
    yield Step(f"extract_{name}", (f"db.{name}",), f"lake.{name}", 0)
    yield Step(f"stage_{name}", (f"lake.{name}",), f"staging.{name}", 10)


STEPS: tuple[Step, ...] = (
    *(
        step
        for name in ("orders", "customers", "payments", "products", "shipments")
        for step in _load(name)
    ),
    Step("sessionize_clicks", ("lake.clicks",), "staging.sessions", 12),
    Step(
        "build_order_lines",
        ("staging.orders", "staging.products"),
        "marts.order_lines",
        25,
        (
            ("order_id", "staging.orders", "id"),
            ("customer_id", "staging.orders", "customer_id"),
            ("category", "staging.products", "category"),
            ("amount", "staging.orders", "amount"),
            ("ordered_on", "staging.orders", "ordered_at"),
        ),
    ),
    Step(
        "build_daily_revenue",
        ("marts.order_lines", "staging.payments"),
        "marts.daily_revenue",
        40,
        (
            ("day", "marts.order_lines", "ordered_on"),
            ("category", "marts.order_lines", "category"),
            ("revenue", "marts.order_lines", "amount"),
            ("paid", "staging.payments", "paid"),
        ),
        (
            ("marts.order_lines", "order_id", "JOIN"),
            ("staging.payments", "order_id", "JOIN"),
            ("marts.order_lines", "ordered_on", "GROUP_BY"),
        ),
    ),
    Step(
        "build_customer_value",
        ("marts.order_lines", "staging.customers", "staging.sessions"),
        "marts.customer_value",
        40,
        (
            ("email", "staging.customers", "email"),
            ("lifetime_value", "marts.order_lines", "amount"),
        ),
    ),
    Step("build_delivery_times", ("staging.shipments",), "marts.delivery_times", 40),
    Step("update_inventory", ("marts.inventory", "staging.products"), "marts.inventory", 42),
    Step("export_finance", ("marts.daily_revenue",), "exports.finance", 55),
    Step("refresh_dashboard", ("marts.daily_revenue", "marts.customer_value"), "bi.dashboard", 55),
)
# What goes wrong: the step, the day, how often it fails, and why.
TROUBLES: dict[tuple[str, int], tuple[int, str]] = {
    ("stage_payments", 2): (1, "duplicate key value violates unique constraint payments_pkey"),
    ("extract_shipments", 4): (2, "could not connect to shop-db:5432: connection timed out"),
    ("export_finance", 6): (1, "disk quota of s3://shop-lake/exports is used up"),
}
RECOVERS = frozenset({("stage_payments", 2)})


@dataclass(frozen=True)
class Attempt:
    """One run of a job."""

    job: str
    key: str
    began: Micros
    took: Micros
    day: int
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    parent: str = ""
    error: str = ""
    going: bool = False
    columns: tuple[tuple[str, str, str], ...] = ()
    keys: tuple[tuple[str, str, str], ...] = ()
    streams: bool = False

    @property
    def run_id(self) -> str:
        """The run's id, the same each time."""
        return ids.derived_id("demo", self.job, self.key)

    def events(self) -> Iterator[tuple[Micros, Event]]:
        """Its beginning and, if it came to one, its end."""
        yield self.began, self._event("START", self.began)
        if not self.going:
            ended = self.began + self.took
            yield ended, self._event("FAIL" if self.error else "COMPLETE", ended)

    def _event(self, kind: str, at: Micros) -> Event:
        return {
            "eventTime": format_time(at),
            "eventType": kind,
            "producer": PRODUCER,
            "schemaURL": _SCHEMA,
            "run": {"runId": self.run_id, "facets": self._run_facets(kind)},
            "job": {"namespace": JOBS, "name": self.job, "facets": self._job_facets()},
            "inputs": [mention(key, self.day) for key in self.reads],
            "outputs": [self._output(key, kind) for key in self.writes],
        }

    def _run_facets(self, kind: str) -> dict[str, Any]:
        facets: dict[str, Any] = {}
        if self.parent:
            facets["parent"] = facet(
                "ParentRunFacet",
                run={"runId": self.parent},
                job={"namespace": JOBS, "name": PARENT},
            )
        if kind == "FAIL":
            facets["errorMessage"] = facet(
                "ErrorMessageRunFacet", message=self.error, programmingLanguage="SQL"
            )
        return facets

    def _job_facets(self) -> dict[str, Any]:
        processing = "STREAMING" if self.streams else "BATCH"
        path = self.job.replace(".", "/")
        return {
            "jobType": facet(
                "JobTypeJobFacet", processingType=processing, integration="SHOP", jobType="TASK"
            ),
            "sourceCodeLocation": facet(
                "SourceCodeLocationJobFacet", type="git", url=f"{_CODE}/{path}.sql"
            ),
        }

    def _output(self, key: str, kind: str) -> dict[str, Any]:
        output = mention(key, self.day)
        if self.columns:
            output["facets"]["columnLineage"] = facet(
                "ColumnLineageDatasetFacet",
                fields=_column_lineage(self.columns),
                dataset=_indirect_lineage(self.keys),
            )
        if kind == "COMPLETE":
            rows = 1000 * (1 + self.day) + len(self.job)
            output["outputFacets"] = {
                "outputStatistics": facet("OutputStatisticsOutputDatasetFacet", rowCount=rows)
            }
        return output


def _column_lineage(columns: tuple[tuple[str, str, str], ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, key, source in columns:
        table = TABLES[key]
        inputs = {"namespace": table.namespace, "name": table.name, "field": source}
        entry = found.setdefault(field, {"inputFields": []})
        entry["inputFields"].append(inputs)
        entry["transformationType"] = "IDENTITY" if field == source else "AGGREGATION"
    return found


def _indirect_lineage(keys: tuple[tuple[str, str, str], ...]) -> list[dict[str, Any]]:
    return [
        {
            "namespace": TABLES[key].namespace,
            "name": TABLES[key].name,
            "field": field,
            "transformations": [{"type": "INDIRECT", "subtype": kind}],
        }
        for key, field, kind in keys
    ]


def pipeline(now: Micros) -> list[Event]:
    """Everything that happened until now, in its order."""
    choices = Random(STORY)
    attempts = [*_one_offs(now)]
    for day in range(DAYS):
        attempts += _day(now, day, choices)
    timed = [pair for attempt in attempts for pair in attempt.events()]
    return [event for at, event in sorted(timed, key=lambda pair: pair[0]) if at <= now]


def _midnight(now: Micros, day: int) -> Micros:
    """When a day of the story began; the last is yesterday."""
    return now - now % DAY - (DAYS - day) * DAY


def _day(now: Micros, day: int, choices: Random) -> Iterator[Attempt]:
    begins = _midnight(now, day) + BEGINS_AT_HOUR * HOUR
    parent = Attempt(PARENT, f"day {day}", begins, 65 * MINUTE, day)
    yield parent
    for step in STEPS:
        began = begins + step.minute * MINUTE
        failures, error = TROUBLES.get((step.name, day), (0, ""))
        tries = failures + ((step.name, day) in RECOVERS or not failures)
        for attempt in range(tries):
            took = choices.randrange(4, 300) * SECOND
            yield Attempt(
                step.job,
                f"day {day}, try {attempt}",
                began,
                took,
                day,
                step.reads,
                (step.writes,),
                parent.run_id,
                error if attempt < failures else "",
                columns=step.columns,
                keys=step.keys,
            )
            began += took + 2 * MINUTE


def _one_offs(now: Micros) -> Iterator[Attempt]:
    """What is not part of the daily flow."""
    before = _midnight(now, 0) - DAY
    yield Attempt("move_2019", "once", before, MINUTE, 0, (), ("staging.orders_2019",))
    yield Attempt(
        "click_stream", "since", before, 0, 0, ("topic.clicks",), ("lake.clicks",),
        going=True, streams=True,
    )  # fmt: skip
    for month in range(1, 7):
        began = before + month * HOUR
        chunk = (f"lake.archive_{month}",)
        yield Attempt(
            "load_archive", f"month {month}", began, 9 * MINUTE, 0, chunk, ("archive.orders",)
        )
    yield Attempt(
        "train_recommender", "now", now - 20 * MINUTE, 0, DAYS,
        ("marts.customer_value", "staging.sessions"), ("models.recommender",), going=True,
    )  # fmt: skip
