"""Commands for namespaces, sources, tags and grants."""

from typing import ClassVar, Literal

from msgspec import Struct

from penstock import ids
from penstock.access import audit
from penstock.catalog.commands.lookup import Write, namespace_row, record
from penstock.catalog.entities import names
from penstock.catalog.events.apply import declare_dataset
from penstock.catalog.events.facets import NO_FACETS
from penstock.catalog.events.parse import Mention
from penstock.catalog.rows import NamespaceRow, SourceRow, TagRow, replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros, after
from penstock.errors import Conflict, Invalid, NotFound


class CreateNamespace(Write, frozen=True):
    """Create a namespace that does not exist."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    owner: str
    description: str | None
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Create it, or raise Conflict if it exists, deleted or not."""
        row = uow.namespaces.get(self.namespace)
        if row is not None:
            what = "was deleted; restore it" if row.hidden else "is there already"
            raise Conflict(f"namespace {self.namespace!r} {what}")
        row = NamespaceRow(self.namespace, self.owner, self.description, 0, now, now)
        uow.namespaces.put(self.namespace, row)
        audit.append(uow.tx, now, self.who, "namespace create", f"namespace:{self.namespace}")


class CreatedNames(Struct, frozen=True):
    """Whether creating a dataset created its namespace too."""

    is_namespace_new: bool


class CreateDataset(Write, frozen=True):
    """Create a dataset that does not exist, and its namespace if needed."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    dataset: str
    description: str | None
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> CreatedNames:
        """Create it, or raise Conflict if it exists, deleted or not."""
        named = ids.dataset_id(self.namespace, self.dataset)
        row = uow.datasets.get(uow.dataset_id(named))
        name = f"{self.namespace}/{self.dataset}"
        if row is not None:
            what = "was deleted; restore it" if row.hidden else "is there already"
            raise Conflict(f"dataset {name} {what}")
        is_namespace_new = uow.namespaces.get(self.namespace) is None
        names.ensure_namespace(uow, self.namespace, now)
        mention = Mention(named, self.namespace, self.dataset, NO_FACETS, NO_FACETS)
        dataset_id = declare_dataset(uow, mention, now)
        created = uow.datasets.get(dataset_id)
        if self.description is not None and created is not None:
            uow.datasets.put(dataset_id, replace(created, description=self.description))
        if is_namespace_new:
            audit.append(uow.tx, now, self.who, "namespace create", f"namespace:{self.namespace}")
        target = f"dataset:{self.namespace}:{self.dataset}"
        audit.append(uow.tx, now, self.who, "dataset create", target)
        return CreatedNames(is_namespace_new)


class PutNamespace(Write, frozen=True):
    """Create a namespace, or change its owner and description."""

    name: str
    owner_name: str
    description: str | None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write it; restore it if it was deleted."""
        row = uow.namespaces.get(self.name)
        created, hidden_at = (row.created_at, row.hidden_at) if row else (now, 0)
        at = after(now, row.updated_at, row.hidden_at) if row else now
        description = row.description if row and self.description is None else self.description
        fresh = NamespaceRow(self.name, self.owner_name, description, 0, created, at, hidden_at)
        uow.namespaces.put(self.name, fresh)


class DeleteNamespace(Write, frozen=True):
    """Hide a namespace with its jobs and datasets."""

    exclusive: ClassVar[bool] = True  # rewrites rows that other commands of a batch may cache

    name: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        row = namespace_row(uow, self.name)
        at = after(now, row.updated_at, row.hidden_at)
        fresh = replace(row, hidden=1, hidden_at=at, updated_at=at)
        uow.namespaces.put(self.name, fresh)
        _rewrite_contents(uow, row, "hide", at)
        record(uow, now, self.who, "namespace delete", self.name)


class RestoreNamespace(Write, frozen=True):
    """Restore a deleted namespace with the jobs and datasets hidden with it."""

    exclusive: ClassVar[bool] = True  # rewrites rows that other commands of a batch may cache

    name: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Show everything that was visible before the deletion."""
        row = namespace_row(uow, self.name)
        at = after(now, row.updated_at, row.hidden_at)
        uow.namespaces.put(self.name, replace(row, hidden=0, updated_at=at))
        _rewrite_contents(uow, row, "show", at)
        record(uow, now, self.who, "namespace restore", self.name)


class GrantNamespace(Write, frozen=True):
    """Let the runs of another namespace write the datasets of a namespace."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    grantee: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Write the grant; an existing one does not change."""
        namespace_row(uow, self.namespace)
        if self.grantee == self.namespace:
            raise Invalid(
                f"namespace {self.namespace!r} needs no grant to write its own datasets; "
                "name another namespace"
            )
        if self.grantee in (uow.grants.get(self.namespace) or ()):
            return
        uow.rewrite(
            (
                "add_grant",
                {
                    "namespace": self.namespace,
                    "grantee": self.grantee,
                    "granted_by": self.who,
                    "granted_at": now,
                },
            )
        )
        record(uow, now, self.who, "namespace grant", self.namespace, f"to {self.grantee}")


class RevokeGrant(Write, frozen=True):
    """Revoke a grant."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    grantee: str
    who: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Delete the grant; versions written under it stay."""
        namespace_row(uow, self.namespace)
        if self.grantee not in (uow.grants.get(self.namespace) or ()):
            raise NotFound(
                f"namespace {self.namespace!r} has no grant for {self.grantee!r}; list them with "
                f"penstock namespaces grants {self.namespace}"
            )
        uow.rewrite(("remove_grant", {"namespace": self.namespace, "grantee": self.grantee}))
        record(uow, now, self.who, "namespace revoke", self.namespace, f"from {self.grantee}")


class PutSource(Write, frozen=True):
    """Create or change a source."""

    name: str
    type: str
    connection_url: str
    description: str | None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        row = uow.sources.get(self.name)
        created = row.created_at if row else now
        uow.sources.put(
            self.name,
            SourceRow(self.name, self.type, self.connection_url, self.description, created, now),
        )


class PutTag(Write, frozen=True):
    """Create a tag, or change its description."""

    name: str
    description: str | None

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tags.put(self.name, TagRow(self.name, self.description))


def _rewrite_contents(
    uow: UnitOfWork, row: NamespaceRow, verb: Literal["hide", "show"], now: Micros
) -> None:
    """Hide or show the contents of a namespace."""
    contents = {"namespace": row.name, "deleted_at": row.hidden_at, "at": now}
    uow.rewrite(
        (f"{verb}_datasets_of_namespace", contents),
        (f"{verb}_jobs_of_namespace", contents),
        ("hide_search_docs_of_namespace", {"namespace": row.name, "hidden": int(verb == "hide")}),
        ("forget_tallies_of_namespace", {"namespace": row.name}),
        ("count_datasets_of_namespace", {"namespace": row.name}),
        ("count_jobs_of_namespace", {"namespace": row.name}),
    )
