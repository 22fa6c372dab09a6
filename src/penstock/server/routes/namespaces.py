"""Namespaces, sources and tags."""

from penstock.access.keys import Key
from penstock.catalog.commands import (
    CreateNamespace,
    DeleteNamespace,
    GrantNamespace,
    PutNamespace,
    PutSource,
    PutTag,
    RestoreNamespace,
    RevokeGrant,
)
from penstock.catalog.queries import catalog
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.schema.admin import KeyRole
from penstock.schema.catalog import Grants, Namespace, Namespaces, Source, Sources, Tag, Tags
from penstock.schema.texts import Text
from penstock.server.content import Body, Paging
from penstock.server.requests import RequestContext
from penstock.server.routing import ASYNC, BASE, READ, Reach, Route


class TagBody(Body, frozen=True):
    """The description of a tag."""

    description: str | None = None


async def put_tag(context: RequestContext, tag: str, body: TagBody) -> Tag:
    """Create a tag, or change its description. All namespaces share tags."""
    await context.submit(PutTag(tag, body.description))
    return await context.read(catalog.get_tag, tag)


def list_tags(tx: Transaction, key: Key, query: Paging) -> Tags:
    """List tags by name; a key for one namespace sees those that it uses or has used."""
    return Tags(catalog.list_tags(tx, query.limit, query.offset, key.namespace))


class SourceBody(Body, frozen=True):
    """The description of a source."""

    type: Text
    connection_url: str
    description: str | None = None


async def put_source(context: RequestContext, source: str, body: SourceBody) -> Source:
    """Create or change a source. All namespaces share sources."""
    context.check_texts(type=body.type)
    await context.submit(PutSource(source, body.type, body.connection_url, body.description))
    return await context.read(catalog.get_source, source)


def get_source(tx: Transaction, key: Key, source: str) -> Source:
    """Show a source, without the passwords in its URL.

    A key of one namespace sees the sources of that namespace's datasets.
    """
    return catalog.get_source(tx, source, only=key.namespace)


def list_sources(tx: Transaction, key: Key, query: Paging) -> Sources:
    """List sources by name, without the passwords in their URLs.

    A key of one namespace sees the sources of that namespace's datasets.
    """
    return Sources(catalog.list_sources(tx, query.limit, query.offset, only=key.namespace))


class NamespaceBody(Body, frozen=True):
    """The description of a namespace."""

    owner_name: Text
    description: str | None = None


async def put_namespace(context: RequestContext, namespace: str, body: NamespaceBody) -> Namespace:
    """Create a namespace, or change its owner and description."""
    context.check_texts(ownerName=body.owner_name)
    await context.submit(PutNamespace(namespace, body.owner_name, body.description))
    return await context.read(catalog.get_namespace, namespace)


class NewNamespaceBody(Body, frozen=True):
    """The owner of a new namespace, if not the caller, and its description."""

    owner_name: Text | None = None
    description: str | None = None


async def create_namespace(
    context: RequestContext, namespace: str, body: NewNamespaceBody
) -> Namespace:
    """Create a namespace. One that exists is a conflict."""
    context.check_texts(ownerName=body.owner_name)
    who = context.key.name
    await context.submit(CreateNamespace(namespace, body.owner_name or who, body.description, who))
    return await context.read(catalog.get_namespace, namespace)


def get_namespace(tx: Transaction, namespace: str) -> Namespace:
    """Show a namespace."""
    return catalog.get_namespace(tx, namespace)


def list_namespaces(tx: Transaction, key: Key, query: Paging) -> Namespaces:
    """List namespaces by name. A key that is for one namespace sees that one."""
    if key.namespace is None:
        return Namespaces(catalog.list_namespaces(tx, query.limit, query.offset))
    try:
        own = [catalog.get_namespace(tx, key.namespace)]
    except NotFound:
        own = []
    return Namespaces(own[query.offset : query.offset + query.limit])


async def delete_namespace(context: RequestContext, namespace: str) -> Namespace:
    """Hide a namespace with its datasets and jobs, until it is restored or written to again."""
    await context.submit(DeleteNamespace(namespace, context.key.name))
    return await context.read(catalog.get_namespace, namespace)


async def restore_namespace(context: RequestContext, namespace: str) -> Namespace:
    """Restore a hidden namespace with its datasets and jobs."""
    await context.submit(RestoreNamespace(namespace, context.key.name))
    return await context.read(catalog.get_namespace, namespace)


async def put_grant(context: RequestContext, namespace: str, grantee: str) -> Grants:
    """Grant the runs of another namespace the right to write the datasets of this one.

    Until then a run with a key for `grantee` may name the datasets of this namespace as outputs,
    but it only reports them: it cannot describe or drop them, and its versions stay unconfirmed.
    """
    context.check_names(grantee=grantee)
    await context.submit(GrantNamespace(namespace, grantee, context.key.name))
    return await context.read(list_grants, namespace)


async def delete_grant(context: RequestContext, namespace: str, grantee: str) -> Grants:
    """Revoke a grant. Versions that were made under it stay."""
    await context.submit(RevokeGrant(namespace, grantee, context.key.name))
    return await context.read(list_grants, namespace)


def list_grants(tx: Transaction, namespace: str) -> Grants:
    """List the namespaces whose runs may write the datasets of this one."""
    return Grants(catalog.list_grants(tx, namespace))


_ONE = f"{BASE}/namespaces/{{namespace}}"


ROUTES = (
    Route(READ, "GET", f"{BASE}/tags", list_tags, Reach.OWN),
    Route(ASYNC, "PUT", f"{BASE}/tags/{{tag}}", put_tag, Reach.EVERYTHING, KeyRole.WRITER),
    Route(READ, "GET", f"{BASE}/sources", list_sources, Reach.OWN),
    Route(READ, "GET", f"{BASE}/sources/{{source}}", get_source, Reach.OWN),
    Route(ASYNC, "PUT", f"{BASE}/sources/{{source}}", put_source, Reach.EVERYTHING, KeyRole.WRITER),
    Route(READ, "GET", f"{BASE}/namespaces", list_namespaces, Reach.OWN),
    Route(READ, "GET", _ONE, get_namespace),
    Route(ASYNC, "PUT", _ONE, put_namespace, role=KeyRole.WRITER),
    Route(ASYNC, "POST", _ONE, create_namespace, role=KeyRole.WRITER),
    Route(ASYNC, "DELETE", _ONE, delete_namespace, role=KeyRole.ADMIN),
    Route(READ, "GET", f"{_ONE}/grants", list_grants),
    Route(ASYNC, "PUT", f"{_ONE}/grants/{{grantee}}", put_grant, role=KeyRole.ADMIN),
    Route(ASYNC, "DELETE", f"{_ONE}/grants/{{grantee}}", delete_grant, role=KeyRole.ADMIN),
    Route(ASYNC, "POST", f"{_ONE}/restore", restore_namespace, role=KeyRole.ADMIN),
)
