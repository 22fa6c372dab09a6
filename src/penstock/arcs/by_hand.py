"""What workers that are no engine may do with lots: all but with those of arcs.

They would leave the limits of the arc aside, and publish lots without saying what they hold.
"""

from msgspec import Struct

from penstock import ids
from penstock.arcs.commands import is_arc
from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import Keys, UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.locks.claiming import Ref
from penstock.locks.commands.claims import Claimed, ClaimLots, CompleteClaims, Ended
from penstock.locks.tables import LockTables


class CompleteByHand(Write, frozen=True):
    """Publish what claims have made, but for those of arcs; each is refused alone."""

    claims: tuple[Ref, ...]

    def execute(self, uow: UnitOfWork, now: Micros) -> list[Ended]:
        """Complete them, or say who publishes the lot."""
        uow.tables(LockTables).prefetch_claims(ref.id for ref in self.claims)
        others = {ref: _refusal(ref) for ref in self.claims if _is_of_arc(uow, ref)}
        own = tuple(ref for ref in self.claims if ref not in others)
        ended = others | dict(zip(own, CompleteClaims(own).execute(uow, now), strict=True))
        return [ended[ref] for ref in self.claims]


class Taken(Struct, frozen=True):
    """What became of claims that were to be completed, and what was claimed after them."""

    ended: list[Ended]
    claimed: list[Claimed]


class ExternalClaim(Write, frozen=True):
    """Claim lots of any job but of an arc, after publishing what earlier claims have made.

    A worker that goes on from lot to lot needs one transaction for each instead of two. Those to
    complete are refused one by one; where the claim itself is refused nothing is completed.
    """

    claim: ClaimLots
    complete: tuple[Ref, ...] = ()

    def prefetch(self, keys: Keys) -> None:
        """What the claim wants."""
        self.claim.prefetch(keys)

    def execute(self, uow: UnitOfWork, now: Micros) -> Taken:
        """Complete and claim, or say who makes the lots of this job."""
        namespace, job = self.claim.namespace, self.claim.job
        if is_arc(uow, ids.job_id(namespace, job)):
            raise Conflict(
                f"job {namespace}/{job} is an arc, whose engine claims its lots; to make one here "
                f"and now: penstock arcs run {namespace}/{job} LOT"
            )
        ended = CompleteByHand(self.complete).execute(uow, now) if self.complete else []
        return Taken(ended, self.claim.execute(uow, now))


def _is_of_arc(uow: UnitOfWork, ref: Ref) -> bool:
    run = uow.runs.get(ref.id)
    return run is not None and is_arc(uow, run.job_id)


def _refusal(ref: Ref) -> Ended:
    told = (
        f"claim {ref.id} is of an arc, whose engine publishes its lots; wait for it, or release "
        "the claim, and the lot is made anew"
    )
    return Ended(ref.id, refused=Conflict(told))
