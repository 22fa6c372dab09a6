"""Queries for namespaces, sources and tags."""

import re

from penstock.catalog.rows import GrantRow, NamespaceRow, SourceRow
from penstock.clock import format_time
from penstock.config import mask_url
from penstock.db import Transaction
from penstock.errors import NotFound
from penstock.schema.catalog import Grant, Namespace, Source, Tag

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def get_namespace(tx: Transaction, name: str) -> Namespace:
    """Return a namespace; a deleted one is marked as hidden."""
    found = tx.rows(NamespaceRow, "read_namespace", name=name)
    if not found:
        raise no_namespace(name)
    return _namespace(found[0])


def list_namespaces(tx: Transaction, limit: int, offset: int) -> list[Namespace]:
    """Return a page of namespaces, by name, including hidden ones."""
    rows = tx.rows(NamespaceRow, "read_namespaces", limit=limit, offset=offset)
    return [_namespace(row) for row in rows]


def list_grants(tx: Transaction, namespace: str) -> list[Grant]:
    """Return the grants of a namespace, by grantee."""
    get_namespace(tx, namespace)
    rows = tx.rows(GrantRow, "grants_of_namespace", namespace=namespace)
    return [
        Grant(row.namespace, row.grantee, row.granted_by, format_time(row.granted_at))
        for row in rows
    ]


def get_source(tx: Transaction, name: str, *, only: str | None = None) -> Source:
    """Return a source; with `only`, one that a dataset of this namespace uses."""
    if only is None:
        found = tx.rows(SourceRow, "read_source", name=name)
    else:
        found = tx.rows(SourceRow, "read_source_of_namespace", name=name, namespace=only)
    if not found:
        raise NotFound(f"there is no source {name!r}; list the sources, or create it first")
    return _source(found[0])


def list_sources(
    tx: Transaction, limit: int, offset: int, *, only: str | None = None
) -> list[Source]:
    """Return a page of sources, by name; with `only`, those that datasets of this namespace use."""
    page = {"limit": limit, "offset": offset}
    if only is None:
        rows = tx.rows(SourceRow, "read_sources", **page)
    else:
        rows = tx.rows(SourceRow, "read_sources_of_namespace", namespace=only, **page)
    return [_source(row) for row in rows]


def get_tag(tx: Transaction, name: str) -> Tag:
    """Return a tag."""
    found = tx.rows(Tag, "read_tag", name=name)
    if not found:
        raise NotFound(f"there is no tag {name!r}; list the tags, or create it first")
    return found[0]


def list_tags(tx: Transaction, limit: int, offset: int, only: str | None = None) -> list[Tag]:
    """Return a page of tags, by name: all, or those that one namespace uses."""
    if only is None:
        return tx.rows(Tag, "read_tags", limit=limit, offset=offset)
    return tx.rows(Tag, "read_tags_of_namespace", namespace=only, limit=limit, offset=offset)


def no_namespace(name: str) -> NotFound:
    """Return the error for a missing namespace."""
    return NotFound(f"there is no namespace {name!r}; list the namespaces, or create it first")


def is_uuid(text: str) -> bool:
    """Return whether a text is a UUID; PostgreSQL refuses other ids."""
    return _UUID.fullmatch(text) is not None


def _namespace(row: NamespaceRow) -> Namespace:
    return Namespace(
        name=row.name,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        owner_name=row.owner_name,
        description=row.description,
        is_hidden=bool(row.hidden),
    )


def _source(row: SourceRow) -> Source:
    return Source(
        type=row.type,
        name=row.name,
        created_at=format_time(row.created_at),
        updated_at=format_time(row.updated_at),
        connection_url=mask_url(row.connection_url),
        description=row.description,
    )
