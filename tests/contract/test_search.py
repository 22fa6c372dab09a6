"""Search: both databases find the same things by the same words."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from penstock.catalog.events.schema import read_schema
from penstock.catalog.queries.search import SearchKind, SearchSort, search, search_body
from penstock.catalog.rows import DatasetRow, JobRow, replace
from penstock.clock import DAY, SECOND, format_time
from penstock.db import Database, Transaction, open_database
from penstock.errors import Invalid
from penstock.schema.search import SearchResult, SearchResults
from tests.contract.catalog_rows import NOW, Tally, dataset, job, search_row

FIELDS, _ = read_schema(
    b'{"fields": [{"name": "customerEmail", "description": "where invoices go"}]}'
)
ORDERS = dataset("public.ordersDaily_v2", "s3://shop", tags='["gold"]', updated_at=NOW)
CLIENTS = dataset("clients", "crm", description="Who buys: Zoë, 東京", updated_at=NOW + SECOND)
DUMP = dataset("8e43z4-dump", "crm", updated_at=NOW)
DELETED = dataset("orders_old", "crm", hidden=1, hidden_at=NOW)
LOAD = job("load_orders", "etl", updated_at=NOW + 2 * SECOND)
HIDDEN_JOB = job("orders_gone", "etl", hidden=1)
PLACES = [(f"crowd_{n % 40}", f"town_{n % 3}", n) for n in range(120)]
CROWD_DATASETS = [
    dataset(name, namespace, hidden=int(n % 3 == n % 4), updated_at=NOW + n * 37 % 11 * SECOND)
    for name, namespace, n in PLACES
]
CROWD_JOBS = [
    job(name, namespace, hidden=int(n % 4 == 1), updated_at=NOW + n * 41 % 13 * SECOND)
    for name, namespace, n in PLACES
]
CROWD: list[DatasetRow | JobRow] = [*CROWD_DATASETS, *CROWD_JOBS]


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Three datasets and a job, and a deleted one of each kind."""
    opened = open_database(database_url)
    with opened.write() as tx:
        tx.write("put_datasets", [ORDERS, CLIENTS, DUMP, DELETED])
        tx.write("put_jobs", [LOAD, HIDDEN_JOB])
        rows = [search_row(row) for row in (CLIENTS, DUMP, DELETED, LOAD, HIDDEN_JOB)]
        tx.write("put_search_docs", [search_row(ORDERS, FIELDS), *rows])
    yield opened
    opened.close()


@pytest.fixture
def crowd(database_url: str) -> Iterator[Database]:
    """Many things with the same names in several namespaces, some of them hidden."""
    opened = open_database(database_url)
    with opened.write() as tx:
        tx.write("put_datasets", CROWD_DATASETS)
        tx.write("put_jobs", CROWD_JOBS)
        tx.write("put_search_docs", [search_row(row) for row in CROWD])
        visible = sum(not row.hidden for row in CROWD_JOBS)
        tx.write("add_tallies", [Tally("JOB", "town", "", visible)])
    yield opened
    opened.close()


def names_found(database: Database, q: str) -> list[str]:
    with database.read() as tx:
        results = search(tx, q, limit=100)
    assert results.total_count == len(results.results)
    return [result.name for result in results.results]


def every_page(database: Database, q: str, limit: int, **filters: Any) -> list[SearchResult]:
    """Return all pages in order. Each must have the same total."""
    results: list[SearchResult] = []
    totals: set[int] = set()
    while True:
        with database.read() as tx:
            page = search(tx, q, limit=limit, offset=len(results), **filters)
        results += page.results
        totals.add(page.total_count)
        if not page.results:
            assert totals == {len(results)}
            return results


def test_a_dataset_is_found_by_any_word_or_prefix(database: Database) -> None:
    queries = [
        "orders",
        "ord",
        "ORDERS",
        "ordersDaily",
        "ordersdaily",
        "orders_daily",
        "ordersdailyv2",
        "daily v2",
        "public.ordersDaily_v2",
        "gold",
        "customer",
        "customeremail",
        "customerEmail",
        "invoices",
        "s3://shop",
    ]
    assert [q for q in queries if ORDERS.name not in names_found(database, q)] == []


def test_every_word_must_match_and_deleted_things_are_excluded(database: Database) -> None:
    expected = {
        "orders": ["load_orders", ORDERS.name],
        "orders load": ["load_orders"],
        "orders daily gold": [ORDERS.name],
        "zoe": ["clients"],
        "ZOË": ["clients"],
        "東京": ["clients"],
        "東": ["clients"],
        "8e43z4": ["8e43z4-dump"],
        "8e": ["8e43z4-dump"],
        "z4": ["8e43z4-dump"],
        "rders": ["load_orders", ORDERS.name],
        "orders nothing": [],
        "ordersNothing": [],
    }
    assert {q: names_found(database, q) for q in expected} == expected


def test_a_name_is_found_by_parts_of_its_words(database: Database) -> None:
    expected = {
        "rder": ["load_orders", ORDERS.name],
        "DERS": ["load_orders", ORDERS.name],
        "ublic": [ORDERS.name],
        "ersDai": [ORDERS.name],
        "aily_v": [ORDERS.name],
        "load rder": ["load_orders"],
        "oad rder": ["load_orders"],
        "43z": ["8e43z4-dump"],
        "ie": ["clients"],
        "3z": ["8e43z4-dump"],
        "4": ["8e43z4-dump"],
        "x": [],
        "qz": [],
        "mail": [],
        "customerE": [ORDERS.name],
        "rdersx": [],
    }
    assert {q: names_found(database, q) for q in expected} == expected


def test_a_second_name_is_found_by_parts_too(database: Database) -> None:
    row = search_row(CLIENTS)
    body = search_body(row.namespace, row.name, second_names=["hive.kunden"])
    with database.write() as tx:
        tx.write("put_search_docs", [replace(row, body=body)])
    assert names_found(database, "unde") == ["clients"]


def test_a_text_without_words_finds_nothing(database: Database) -> None:
    queries = ["", "   ", "%", "_", "***", '"', "'", "--", ":", "()"]
    assert [q for q in queries if names_found(database, q)] == []


def test_operators_of_query_languages_are_only_punctuation(database: Database) -> None:
    expected: dict[str, list[str]] = {
        "orders' | 'clients": [],
        'orders" OR "clients': [],
        "clients:*": ["clients"],
        "body:clients": [],
        "clients) OR (orders": [],
        "NOT clients": [],
        "clients\x00": ["clients"],
        "\\clients' & !'x": [],
    }
    assert {q: names_found(database, q) for q in expected} == expected


def test_a_search_with_very_many_words_is_refused(database: Database) -> None:
    with database.read() as tx:
        assert search(tx, " ".join(f"w{n}" for n in range(64))).total_count == 0
        with pytest.raises(Invalid, match="more than 64 words; leave some out"):
            search(tx, " ".join(f"w{n}" for n in range(65)))


def test_results_are_sorted_by_name_or_by_last_update(database: Database) -> None:
    with database.read() as tx:
        by_name = search(tx, "crm", sort=SearchSort.NAME)
        by_update = search(tx, "crm", sort=SearchSort.UPDATE_AT)
        newest = search(tx, "crm", sort=SearchSort.UPDATE_AT, limit=1)
    assert [result.name for result in by_name.results] == ["8e43z4-dump", "clients"]
    assert [result.name for result in by_update.results] == ["clients", "8e43z4-dump"]
    assert newest.results == by_update.results[:1]


def test_results_are_paged_with_a_total_count(database: Database) -> None:
    with database.read() as tx:
        pages = [
            search(tx, "orders", limit=limit, offset=offset)
            for limit, offset in ((1, 0), (1, 1), (1, 2), (0, 0))
        ]
    assert [page.total_count for page in pages] == [2, 2, 2, 2]
    assert [[result.name for result in page.results] for page in pages] == [
        ["load_orders"],
        [ORDERS.name],
        [],
        [],
    ]


def test_results_are_filtered_by_kind_namespace_or_time(database: Database) -> None:
    with database.read() as tx:
        jobs = search(tx, "orders", kind=SearchKind.JOB)
        datasets = search(tx, "orders", kind=SearchKind.DATASET)
        in_shop = search(tx, "orders", namespace="s3://shop")
        later = search(tx, "orders", after=NOW + SECOND)
        earlier = search(tx, "orders", before=NOW + SECOND)
        at_once = search(tx, "orders", after=NOW, before=NOW)
    assert [result.name for result in jobs.results] == ["load_orders"]
    assert [result.name for result in datasets.results] == [ORDERS.name]
    assert in_shop == datasets == earlier
    assert later == jobs
    assert at_once.total_count == 0


def test_a_result_has_the_shape_that_clients_know(database: Database) -> None:
    with database.read() as tx:
        [dataset_found] = search(tx, "gold").results
        [job_found] = search(tx, "load").results
    assert dataset_found.type == "DATASET"
    assert dataset_found.node_id == f"dataset:s3://shop:{ORDERS.name}"
    assert dataset_found.updated_at == format_time(NOW)
    assert (job_found.type, job_found.node_id) == ("JOB", "job:etl:load_orders")


def test_new_words_replace_the_old_ones(database: Database) -> None:
    with database.write() as tx:
        tx.write("put_search_docs", [search_row(dataset("clients", "crm", tags='["silver"]'))])
    assert names_found(database, "silver") == ["clients"]
    assert names_found(database, "zoe") == []


@pytest.mark.parametrize("kind", [None, *SearchKind])
@pytest.mark.parametrize("namespace", [None, "town_1"])
@pytest.mark.parametrize("q", ["crowd", "crowd 27", "nobody"])
def test_pages_are_equal_with_and_without_a_time_filter(
    crowd: Database, q: str, namespace: str | None, kind: SearchKind | None
) -> None:
    expected = sorted(
        (row.name, row.namespace, type(row).__name__)
        for row in CROWD
        if not row.hidden
        and namespace in (None, row.namespace)
        and (kind is None or kind.title() in type(row).__name__)
        and set(q.split()) <= {*row.name.split("_")}
    )
    by_name = every_page(crowd, q, 7, namespace=namespace, kind=kind)
    results = [(each.name, each.namespace, f"{each.type.title()}Row") for each in by_name]
    assert results == expected
    assert every_page(crowd, q, 7, namespace=namespace, kind=kind, after=NOW) == by_name
    by_update = every_page(crowd, q, 7, namespace=namespace, kind=kind, sort=SearchSort.UPDATE_AT)
    assert by_update == sorted(by_name, key=lambda each: each.updated_at, reverse=True)


class RecordingTransaction:
    """A transaction that records the names of its statements."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.statements: list[str] = []

    def fetch(self, statement: str, /, **params: object) -> list[tuple[Any, ...]]:
        self.statements.append(statement)
        return self._tx.fetch(statement, **params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


@pytest.mark.parametrize(
    ("q", "limit", "offset", "statements"),
    [
        ("crowd", 10, 0, ["search_latest_jobs"]),
        ("crowd", 3, 9, ["search_latest_jobs"]),
        ("crowd", 3, 60, ["search_by_time"]),
        ("crowd 27", 3, 0, ["search_by_time"]),
    ],
    ids=["met soon", "met later", "far down", "of few"],
)
def test_latest_jobs_come_from_an_index_scan_if_shorter(
    crowd: Database, q: str, limit: int, offset: int, statements: list[str]
) -> None:
    params: Any = {"kind": SearchKind.JOB, "sort": SearchSort.UPDATE_AT}
    with crowd.read() as tx:
        every = search(tx, q, limit=1000, **params)
        recording = RecordingTransaction(tx)
        page = search(cast(Transaction, recording), q, limit=limit, offset=offset, **params)
    assert recording.statements == statements
    assert page == SearchResults(every.total_count, every.results[offset : offset + limit])


def test_an_index_scan_with_few_matches_is_abandoned(crowd: Database) -> None:
    late = [replace(job(f"late_{n}"), updated_at=NOW + DAY) for n in range(90)]
    with crowd.write() as tx:
        tx.write("put_jobs", late)
        tx.write("add_tallies", [Tally("JOB", "town", "", len(late))])
    params: Any = {"kind": SearchKind.JOB, "sort": SearchSort.UPDATE_AT}
    with crowd.read() as tx:
        every = search(tx, "crowd", limit=1000, **params)
        recording = RecordingTransaction(tx)
        page = search(cast(Transaction, recording), "crowd", limit=10, **params)
    assert recording.statements == ["search_latest_jobs", "search_by_time"]
    assert page == SearchResults(every.total_count, every.results[:10])


def test_words_added_while_hidden_are_found_afterwards(database: Database) -> None:
    described = replace(CLIENTS, description="Patrons", hidden=1)
    for row in (described, replace(described, hidden=0)):
        with database.write() as tx:
            tx.write("put_search_docs", [search_row(row)])
    assert names_found(database, "patrons") == ["clients"]
    assert names_found(database, "zoe") == []
