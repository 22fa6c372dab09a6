"""The datasets of the demo: a shop's tables, its lake, its warehouse."""

from dataclasses import dataclass
from typing import Any

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
