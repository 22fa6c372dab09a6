"""Namespaces: made or changed, shown, hidden and brought back."""

from collections.abc import Sequence

from msgspec import Struct

from penstock.access.keys import Key, Role
from penstock.api.bodies import Body
from penstock.api.calls import Call
from penstock.api.parameters import Paging
from penstock.api.routing import BASE, Reach, Route
from penstock.catalog import reading
from penstock.catalog.commands import (
    CreateNamespace,
    DeleteNamespace,
    GrantNamespace,
    PutNamespace,
    RestoreNamespace,
    RevokeGrant,
)
from penstock.catalog.shapes import Grant, Namespace
from penstock.catalog.text_schemas import Text
from penstock.db import Transaction
from penstock.errors import NotFound


class NamespaceBody(Body, frozen=True):
    """What to say of a namespace."""

    owner_name: Text
    description: str | None = None


class Namespaces(Struct, frozen=True):
    """A part of the list of namespaces."""

    namespaces: Sequence[Namespace]


class Grants(Struct, frozen=True):
    """The grants of a namespace."""

    grants: Sequence[Grant]


async def put_namespace(call: Call, namespace: str, body: NamespaceBody) -> Namespace:
    """Make a namespace, or change its owner and description."""
    call.check_texts(ownerName=body.owner_name)
    await call.submit(PutNamespace(namespace, body.owner_name, body.description))
    return await call.read(reading.get_namespace, namespace)


class NewNamespaceBody(Body, frozen=True):
    """The owner of a new namespace, if not the caller, and its description."""

    owner_name: Text | None = None
    description: str | None = None


async def create_namespace(call: Call, namespace: str, body: NewNamespaceBody) -> Namespace:
    """Create a namespace that is not there; one that is there is a conflict."""
    call.check_texts(ownerName=body.owner_name)
    who = call.key.name
    await call.submit(CreateNamespace(namespace, body.owner_name or who, body.description, who))
    return await call.read(reading.get_namespace, namespace)


def get_namespace(tx: Transaction, namespace: str) -> Namespace:
    """Show a namespace."""
    return reading.get_namespace(tx, namespace)


def list_namespaces(tx: Transaction, key: Key, query: Paging) -> Namespaces:
    """List namespaces by name. A key that is for one namespace sees that one."""
    if key.namespace is None:
        return Namespaces(reading.list_namespaces(tx, query.limit, query.offset))
    try:
        own = [reading.get_namespace(tx, key.namespace)]
    except NotFound:
        own = []
    return Namespaces(own[query.offset : query.offset + query.limit])


async def delete_namespace(call: Call, namespace: str) -> Namespace:
    """Hide a namespace with its datasets and jobs, until it is restored or written to again."""
    await call.submit(DeleteNamespace(namespace, call.key.name))
    return await call.read(reading.get_namespace, namespace)


async def restore_namespace(call: Call, namespace: str) -> Namespace:
    """Bring back a hidden namespace and what was hidden with it."""
    await call.submit(RestoreNamespace(namespace, call.key.name))
    return await call.read(reading.get_namespace, namespace)


async def put_grant(call: Call, namespace: str, grantee: str) -> Grants:
    """Let the runs of another namespace write the datasets of this one.

    Until then a run with a key for `grantee` may name the datasets of this namespace as outputs,
    but it only reports them: it cannot describe or drop them, and its versions stay unconfirmed.
    """
    call.check_names(grantee=grantee)
    await call.submit(GrantNamespace(namespace, grantee, call.key.name))
    return await call.read(list_grants, namespace)


async def delete_grant(call: Call, namespace: str, grantee: str) -> Grants:
    """Take a grant back; versions that were made under it stay."""
    await call.submit(RevokeGrant(namespace, grantee, call.key.name))
    return await call.read(list_grants, namespace)


def list_grants(tx: Transaction, namespace: str) -> Grants:
    """List the namespaces whose runs may write the datasets of this one."""
    return Grants(reading.list_grants(tx, namespace))


_ONE = f"{BASE}/namespaces/{{namespace}}"

ROUTES = (
    Route("GET", f"{BASE}/namespaces", list_namespaces, Reach.OWN),
    Route("GET", _ONE, get_namespace),
    Route("PUT", _ONE, put_namespace, role=Role.WRITER),
    Route("POST", _ONE, create_namespace, role=Role.WRITER),
    Route("DELETE", _ONE, delete_namespace, role=Role.ADMIN),
    Route("GET", f"{_ONE}/grants", list_grants),
    Route("PUT", f"{_ONE}/grants/{{grantee}}", put_grant, role=Role.ADMIN),
    Route("DELETE", f"{_ONE}/grants/{{grantee}}", delete_grant, role=Role.ADMIN),
    Route("POST", f"{_ONE}/restore", restore_namespace, role=Role.ADMIN),
)
