"""Tags that datasets, fields and jobs may carry."""

from collections.abc import Sequence

from msgspec import Struct

from penstock.access.keys import Key, Role
from penstock.api.bodies import Body
from penstock.api.calls import Call
from penstock.api.parameters import Paging
from penstock.api.routing import BASE, Reach, Route
from penstock.catalog import reading
from penstock.catalog.commands import PutTag
from penstock.catalog.shapes import Tag
from penstock.db import Transaction


class TagBody(Body, frozen=True):
    """What to say of a tag."""

    description: str | None = None


class Tags(Struct, frozen=True):
    """A part of the list of tags."""

    tags: Sequence[Tag]


async def put_tag(call: Call, tag: str, body: TagBody) -> Tag:
    """Make a tag, or change its description. Tags are shared by all namespaces."""
    await call.submit(PutTag(tag, body.description))
    return await call.read(reading.get_tag, tag)


def list_tags(tx: Transaction, key: Key, query: Paging) -> Tags:
    """List tags by name; a key for one namespace sees those that it uses or has used."""
    return Tags(reading.list_tags(tx, query.limit, query.offset, key.namespace))


ROUTES = (
    Route("GET", f"{BASE}/tags", list_tags, Reach.OWN),
    Route("PUT", f"{BASE}/tags/{{tag}}", put_tag, Reach.EVERYTHING, Role.WRITER),
)
