"""Sources: where datasets physically live."""

from collections.abc import Sequence

from msgspec import Struct

from penstock.access.keys import Key, Role
from penstock.api.bodies import Body
from penstock.api.calls import Call
from penstock.api.parameters import Paging
from penstock.api.routing import BASE, Reach, Route
from penstock.catalog import reading
from penstock.catalog.commands import PutSource
from penstock.catalog.shapes import Source
from penstock.catalog.text_schemas import Text
from penstock.db import Transaction


class SourceBody(Body, frozen=True):
    """What to say of a source."""

    type: Text
    connection_url: str
    description: str | None = None


class Sources(Struct, frozen=True):
    """A part of the list of sources."""

    sources: Sequence[Source]


async def put_source(call: Call, source: str, body: SourceBody) -> Source:
    """Make a source, or change it. Sources are shared by all namespaces."""
    call.check_texts(type=body.type)
    await call.submit(PutSource(source, body.type, body.connection_url, body.description))
    return await call.read(reading.get_source, source)


def get_source(tx: Transaction, key: Key, source: str) -> Source:
    """Show a source, without the passwords in its URL.

    A key that is for one namespace sees those that datasets of that one are in.
    """
    return reading.get_source(tx, source, only=key.namespace)


def list_sources(tx: Transaction, key: Key, query: Paging) -> Sources:
    """List sources by name, without the passwords in their URLs.

    A key that is for one namespace sees those that datasets of that one are in.
    """
    return Sources(reading.list_sources(tx, query.limit, query.offset, only=key.namespace))


ROUTES = (
    Route("GET", f"{BASE}/sources", list_sources, Reach.OWN),
    Route("GET", f"{BASE}/sources/{{source}}", get_source, Reach.OWN),
    Route("PUT", f"{BASE}/sources/{{source}}", put_source, Reach.EVERYTHING, Role.WRITER),
)
