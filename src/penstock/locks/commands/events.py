"""Receiving OpenLineage events of runs that work lot by lot."""

from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from penstock.catalog.claimed_runs import lot_facet
from penstock.catalog.commands import ReceiveEvent
from penstock.catalog.job_rules import is_hearsay
from penstock.catalog.merging import merge_second_names
from penstock.catalog.openlineage import Event
from penstock.catalog.receive import receive, with_known_job
from penstock.catalog.world import Keys, World
from penstock.catalog.write_scope import WriteScope
from penstock.clock import Micros
from penstock.locks.commands.reported import Reported
from penstock.locks.facet import NO_LOTS, named_lots


class GuardedEvent(Struct, frozen=True, gc=False):
    """Receive one event of a run, and let the locks of its lots follow from it.

    Where a lot may not be worked on, a job that asks for enforcement has the event refused as a
    whole; else it is received, the locks stay as they are, and the log tells of the conflict.
    Lots that an engine makes are its own: no event takes them, and none ends what it has claimed.
    """

    alone: ClassVar[bool] = False

    event: Event
    has_engine: Callable[[World, str], bool]  # whether an engine makes the lots of this job
    within: str | None = None  # the namespace of a key that is for one

    def want(self, keys: Keys) -> None:
        """Everything the event names."""
        ReceiveEvent(self.event).want(keys)

    def apply(self, world: World, now: Micros) -> None:
        """Fold it in."""
        event = with_known_job(world, self.event)
        assert event.run_id is not None, "a run event was checked to have one"
        merge_second_names(world, event)
        run = world.runs.get(event.run_id)
        is_other = run is not None and run.job_id != event.job_id and not is_hearsay(world, run)
        said = lot_facet(run.facets) if run is not None and run.job_id == event.job_id else None
        # Lots are locked for the job that a run belongs to, once its events agree on it.
        named = named_lots(event) if not is_other else NO_LOTS
        if said is None and not named and not named.refused:
            scope = WriteScope(self.within) if self.within is not None else None
            receive(world, event, now, scope=scope)
        else:
            has_engine = self.has_engine(world, event.job_id)
            known = (event.run_id, run, said, named, has_engine, self.within, now)
            Reported(world, event, *known).receive()
