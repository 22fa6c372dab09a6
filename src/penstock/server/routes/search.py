"""Search for datasets and jobs by words, and for other records by ids, names and digests."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

from msgspec import Meta

from penstock.access.keys import Key
from penstock.catalog.queries import catalog
from penstock.catalog.queries.runs import get_run
from penstock.catalog.queries.search import SearchKind
from penstock.db import Transaction
from penstock.errors import Forbidden, NotFound
from penstock.ingest.search_keys import SearchKeyKind, SearchKeyRow, find_keys
from penstock.locks.queries.lots import LotMatch, find_lots
from penstock.schema.search import RecordKind, SearchRecord, SearchRecords, SearchResults
from penstock.schema.texts import Time
from penstock.server.content import Limit, Offset, Query, moment
from penstock.server.requests import IngestRequest
from penstock.server.routing import BASE, INGEST, READ, Reach, Route

_NUMBERED = re.compile(r"([bj])id([0-9]{1,10})", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class SearchQuery(Query, frozen=True):
    """The words of a search, and its filters."""

    q: Annotated[
        str, Meta(max_length=1000, description="words; the last may be a part of a word of a name")
    ] = ""
    filter: SearchKind | None = None
    sort: catalog.SearchSort = catalog.SearchSort.NAME
    limit: Limit = 10
    offset: Offset = 0
    namespace: str | None = None
    before: Time | None = None
    after: Time | None = None


def search(tx: Transaction, key: Key, query: SearchQuery) -> SearchResults:
    """Find datasets and jobs by parts of their names, or words of descriptions, fields and tags.

    A key of one namespace finds only records of that namespace.
    """
    if query.namespace is not None:
        key.require_namespace(query.namespace)
    return catalog.search(
        tx,
        query.q,
        kind=query.filter,
        sort=query.sort,
        limit=query.limit,
        offset=query.offset,
        namespace=query.namespace or key.namespace,
        before=moment(query.before, "before"),
        after=moment(query.after, "after"),
    )


class RecordsQuery(Query, frozen=True):
    """The text to look for."""

    q: Annotated[
        str, Meta(max_length=1000, description="an id, a name or a digest, or how it begins")
    ] = ""
    namespace: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 20


_KINDS = {
    SearchKeyKind.ARK: RecordKind.OBJECT,
    SearchKeyKind.LOCAL_ID: RecordKind.OBJECT,
    SearchKeyKind.FILE: RecordKind.FILE,
    SearchKeyKind.DIGEST: RecordKind.FILE,
    SearchKeyKind.DEPOSITOR: RecordKind.BATCH,
}

_MATCHED = {
    SearchKeyKind.ARK: "ARK",
    SearchKeyKind.LOCAL_ID: "local id",
    SearchKeyKind.FILE: "file name",
    SearchKeyKind.DIGEST: "digest",
    SearchKeyKind.DEPOSITOR: "depositor",
}


def search_records(request: IngestRequest, query: RecordsQuery) -> SearchRecords:
    """Find runs, lots, batches, ingest jobs, stored objects and files.

    A run is found by its whole id, the others by the beginning of an id: a lot, a batch or an
    ingest job. An object is found by its ARK or a local id, a file by its name, its path or its
    SHA-512 digest, and a batch by its depositor; these need three characters or more. A key that
    of one namespace finds only records of that namespace.
    """
    text, most = query.q.strip(), query.limit + 1
    if query.namespace is not None:
        request.key.require_namespace(query.namespace)
    only = query.namespace or request.key.namespace
    if not text:
        return SearchRecords([], is_cut=False)
    records = [*_numbered(request, text, query.namespace)]
    with request.plane.catalog.read() as tx:
        records += _runs(tx, text, only)
        records += map(_lot, find_lots(tx, text, only, most))
        records += map(_record, find_keys(tx, text, only, most))
    unique = list({(r.kind, r.name, r.namespace, r.dataset, r.ark): r for r in records}.values())
    return SearchRecords(unique[: query.limit], is_cut=len(unique) > query.limit)


def _numbered(request: IngestRequest, text: str, namespace: str | None) -> Iterator[SearchRecord]:
    """Return the id of a batch or ingest job with its leading zeros."""
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return
    name = f"{match[1].lower()}id{int(match[2]):010}"
    with suppress(NotFound, Forbidden):
        if name.startswith("b"):
            kind, collection = RecordKind.BATCH, request.batch(name).collection
        else:
            kind, collection = RecordKind.INGEST_JOB, request.job(name).configuration.profile_name
        if namespace in (None, request.collection(collection).namespace):
            yield SearchRecord(kind, name, "id", name, collection=collection)


def _runs(tx: Transaction, text: str, only: str | None) -> Iterator[SearchRecord]:
    if not _UUID.fullmatch(text):
        return
    with suppress(NotFound):
        run = get_run(tx, text.lower())
        if only in (None, run.job.namespace):
            owner, name = run.job.namespace, run.job.name
            yield SearchRecord(RecordKind.RUN, run.id, "id", run.id, namespace=owner, job=name)


def _lot(match: LotMatch) -> SearchRecord:
    owner, name = match.dataset.namespace, match.dataset.name
    return SearchRecord(RecordKind.LOT, match.lot, "id", match.lot, namespace=owner, dataset=name)


def _record(row: SearchKeyRow) -> SearchRecord:
    is_batch = row.kind is SearchKeyKind.DEPOSITOR
    kind = _KINDS[row.kind]
    return SearchRecord(
        kind,
        row.name if kind is RecordKind.FILE else row.reference,
        _MATCHED[row.kind],
        row.key if row.kind is SearchKeyKind.DIGEST else row.name,
        namespace=row.namespace,
        collection=row.collection,
        ark=None if is_batch else row.reference,
        version=None if is_batch else row.version,
    )


ROUTES = (
    Route(READ, "GET", f"{BASE}/search", search, Reach.OWN),
    Route(INGEST, "GET", f"{BASE}/search/records", search_records, Reach.OWN),
)
