"""Namespaces, sources and tags."""

from typing import ClassVar

from penstock.catalog.commands.lookup import Write, namespace_row, record
from penstock.catalog.rows import NamespaceRow, SourceRow, TagRow, replace
from penstock.catalog.world import World
from penstock.clock import Micros


class PutNamespace(Write, frozen=True):
    """Create a namespace, or change its owner and description."""

    name: str
    owner_name: str
    description: str | None

    def apply(self, world: World, now: Micros) -> None:
        """Write it; a deleted one comes back."""
        row = world.namespaces.get(self.name)
        created = row.created_at if row else now
        fresh = NamespaceRow(self.name, self.owner_name, self.description, 0, created, now)
        world.namespaces.put(self.name, fresh)


class DeleteNamespace(Write, frozen=True):
    """Hide a namespace with its jobs and datasets."""

    alone: ClassVar[bool] = True  # rewrites rows that others of a batch may hold

    name: str
    who: str

    def apply(self, world: World, now: Micros) -> None:
        """Hide all of it."""
        _hide_namespace(world, self.name, self.who, now, hidden=1)


class RestoreNamespace(Write, frozen=True):
    """Show a deleted namespace with its jobs and datasets again."""

    alone: ClassVar[bool] = True  # rewrites rows that others of a batch may hold

    name: str
    who: str

    def apply(self, world: World, now: Micros) -> None:
        """Show all of it."""
        _hide_namespace(world, self.name, self.who, now, hidden=0)


class PutSource(Write, frozen=True):
    """Create a source, or change it."""

    name: str
    type: str
    connection_url: str
    description: str | None

    def apply(self, world: World, now: Micros) -> None:
        """Write it."""
        row = world.sources.get(self.name)
        created = row.created_at if row else now
        world.sources.put(
            self.name,
            SourceRow(self.name, self.type, self.connection_url, self.description, created, now),
        )


class PutTag(Write, frozen=True):
    """Create a tag, or change its description."""

    name: str
    description: str | None

    def apply(self, world: World, now: Micros) -> None:
        """Write it."""
        world.tags.put(self.name, TagRow(self.name, self.description))


def _hide_namespace(world: World, name: str, who: str, now: Micros, *, hidden: int) -> None:
    row = namespace_row(world, name)
    world.namespaces.put(name, replace(row, hidden=hidden, updated_at=now))
    world.rewrite(
        ("hide_datasets_of_namespace", {"namespace": name, "hidden": hidden, "at": now}),
        ("hide_jobs_of_namespace", {"namespace": name, "hidden": hidden, "at": now}),
        ("hide_search_docs_of_namespace", {"namespace": name, "hidden": hidden}),
        ("forget_tallies_of_namespace", {"namespace": name}),
        ("count_datasets_of_namespace", {"namespace": name}),
        ("count_jobs_of_namespace", {"namespace": name}),
    )
    record(world, now, who, "namespace delete" if hidden else "namespace restore", name)
