"""Which datasets an event may write that comes with a key for one namespace."""

from enum import Enum

from msgspec import Struct

from penstock.catalog.world import World


class Right(Enum):
    """What an event may do with a dataset that its run writes."""

    OWN = "own"  # everything
    LOTS = "lots"  # make versions of it, and nothing else: the job is wired to write its lots
    NONE = "none"  # report what the run wrote, which nobody is shown for the dataset


class WriteScope(Struct, frozen=True):
    """The reach of a key for one namespace: its own datasets, granted ones and wired ones."""

    namespace: str
    wired: frozenset[str] = frozenset()  # datasets that the job is wired to write lot by lot

    def may_write(self, world: World, namespace: str) -> bool:
        """Whether the datasets of a namespace are the key's own, or granted to it."""
        if namespace == self.namespace:
            return True
        return self.namespace in (world.grants.get(namespace) or ())

    def right(self, world: World, dataset_id: str, namespace: str) -> Right:
        """What the key may do with a dataset."""
        if self.may_write(world, namespace):
            return Right.OWN
        return Right.LOTS if dataset_id in self.wired else Right.NONE


def may_write(world: World, scope: WriteScope | None, namespace: str) -> bool:
    """Whether a caller may write the datasets of a namespace; one without a scope may."""
    return scope is None or scope.may_write(world, namespace)
