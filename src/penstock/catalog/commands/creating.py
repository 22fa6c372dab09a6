"""Creating namespaces and datasets by name; every creation is in the audit log."""

from typing import ClassVar

from msgspec import Struct

from penstock import ids
from penstock.access import audit
from penstock.catalog import dataset_names
from penstock.catalog.commands.lookup import Write
from penstock.catalog.facets import NO_FACETS
from penstock.catalog.openlineage import Mention
from penstock.catalog.receive import declare_dataset
from penstock.catalog.rows import NamespaceRow, replace
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.errors import Conflict


class CreateNamespace(Write, frozen=True):
    """Make a namespace that is not there."""

    alone: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    owner: str
    description: str | None
    who: str

    def apply(self, world: World, now: Micros) -> None:
        """Create it, or refuse if there is one, deleted or not."""
        row = world.namespaces.get(self.namespace)
        if row is not None:
            what = "was deleted; restore it" if row.hidden else "is there already"
            raise Conflict(f"namespace {self.namespace!r} {what}")
        row = NamespaceRow(self.namespace, self.owner, self.description, 0, now, now)
        world.namespaces.put(self.namespace, row)
        audit.append(world.tx, now, self.who, "namespace create", f"namespace:{self.namespace}")


class CreatedDataset(Struct, frozen=True):
    """Whether the namespace of a new dataset is new too."""

    is_namespace_new: bool


class CreateDataset(Write, frozen=True):
    """Make a dataset that is not there, with its namespace if that is not there either."""

    alone: ClassVar[bool] = True  # it writes to the audit log

    namespace: str
    dataset: str
    description: str | None
    who: str

    def apply(self, world: World, now: Micros) -> CreatedDataset:
        """Create it, or refuse if there is one, deleted or not."""
        named = ids.dataset_id(self.namespace, self.dataset)
        row = world.datasets.get(world.dataset_id(named))
        name = f"{self.namespace}/{self.dataset}"
        if row is not None:
            what = "was deleted; restore it" if row.hidden else "is there already"
            raise Conflict(f"dataset {name} {what}")
        is_namespace_new = world.namespaces.get(self.namespace) is None
        dataset_names.ensure_namespace(world, self.namespace, now)
        mention = Mention(named, self.namespace, self.dataset, NO_FACETS, NO_FACETS)
        dataset_id = declare_dataset(world, mention, now)
        created = world.datasets.get(dataset_id)
        if self.description is not None and created is not None:
            world.datasets.put(dataset_id, replace(created, description=self.description))
        if is_namespace_new:
            audit.append(world.tx, now, self.who, "namespace create", f"namespace:{self.namespace}")
        target = f"dataset:{self.namespace}:{self.dataset}"
        audit.append(world.tx, now, self.who, "dataset create", target)
        return CreatedDataset(is_namespace_new)
