"""Reporting the state of a run that nobody holds a lot for."""

from penstock import ids
from penstock.catalog.commands import MarkRun
from penstock.catalog.commands.lookup import Write
from penstock.catalog.world import World
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.locks.room import LockRoom
from penstock.states import RUN


class MarkFreeRun(Write, frozen=True):
    """Report the state of a run; a run that holds a lot ends with its claim."""

    mark: MarkRun

    def apply(self, world: World, now: Micros) -> None:
        """Move the run, unless its lot would be left behind."""
        run_id = ids.run_id(self.mark.run_id)
        claims = world.room(LockRoom).claims_of(run_id) if self.mark.state in RUN.terminal else []
        if claims:
            raise Conflict(
                f"run {run_id} holds lot {claims[0].lot}: end it with its claim, "
                f"POST /api/v1/claims/{run_id}/complete, fail or release, or by its events"
            )
        self.mark.apply(world, now)
