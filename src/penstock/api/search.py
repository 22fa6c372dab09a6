"""Search over datasets and jobs."""

from typing import Annotated

from msgspec import Meta

from penstock.access.keys import Key
from penstock.api.parameters import Limit, Offset, Query, Time, moment
from penstock.api.routing import BASE, Reach, Route
from penstock.catalog import reading
from penstock.catalog.search import SearchKind
from penstock.catalog.shapes import SearchResults
from penstock.db import Transaction


class SearchQuery(Query, frozen=True):
    """What to look for."""

    q: Annotated[str, Meta(max_length=1000, description="words; each may be cut short")] = ""
    filter: SearchKind | None = None
    sort: reading.SearchSort = reading.SearchSort.NAME
    limit: Limit = 10
    offset: Offset = 0
    namespace: str | None = None
    before: Time | None = None
    after: Time | None = None


def search(tx: Transaction, key: Key, query: SearchQuery) -> SearchResults:
    """Find datasets and jobs by words of their names, descriptions, fields and tags.

    A key that is for one namespace finds what is there.
    """
    if query.namespace is not None:
        key.require_namespace(query.namespace)
    return reading.search(
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


ROUTES = (Route("GET", f"{BASE}/search", search, Reach.OWN),)
