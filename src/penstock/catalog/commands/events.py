"""Receiving OpenLineage events."""

from typing import ClassVar

from msgspec import Struct

from penstock.catalog.merging import merge_second_names
from penstock.catalog.openlineage import Event
from penstock.catalog.receive import receive, with_known_job
from penstock.catalog.world import Keys, World
from penstock.catalog.write_scope import WriteScope
from penstock.clock import Micros


class ReceiveEvent(Struct, frozen=True, gc=False):
    """Receive one OpenLineage event."""

    alone: ClassVar[bool] = False

    event: Event
    within: str | None = None  # the namespace of a key that is for one

    def want(self, keys: Keys) -> None:
        """Everything the event names."""
        event = self.event
        if event.job_id:
            keys.jobs.add(event.job_id)
            keys.namespaces.add(event.job_namespace)
        if event.run_id is not None:
            keys.runs.add(event.run_id)
        for mention in event.inputs:
            keys.datasets.add(mention.id)
        for mention in event.outputs:
            keys.datasets.add(mention.id)
        if event.dataset is not None:
            keys.datasets.add(event.dataset.id)

    def apply(self, world: World, now: Micros) -> None:
        """Fold it in."""
        merge_second_names(world, self.event)
        scope = WriteScope(self.within) if self.within is not None else None
        receive(world, with_known_job(world, self.event), now, scope=scope)
