"""Declaring several arcs and arrivals together, or none of them."""

from typing import ClassVar

from penstock.arcs.arrivals.arrival import Arrival
from penstock.arcs.arrivals.commands import ApplyArrival
from penstock.arcs.commands import ApplyArc
from penstock.arcs.spec import Arc
from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import PenstockError, Unavailable


class Declare(Write, frozen=True):
    """Declare or change arcs and arrivals. A trial makes the same checks and changes nothing."""

    exclusive: ClassVar[bool] = True  # for the audit log

    who: str
    arcs: tuple[Arc, ...]
    arrivals: tuple[Arrival, ...]
    is_trial: bool = False

    def execute(self, uow: UnitOfWork, now: Micros) -> list[str]:
        """Return which of them have changed, in their order."""
        commands: dict[str, ApplyArc | ApplyArrival] = {}
        commands |= {f"arc {a.namespace}/{a.name}": ApplyArc(self.who, a) for a in self.arcs}
        commands |= {
            f"arrival {a.namespace}/{a.dataset}": ApplyArrival(self.who, a) for a in self.arrivals
        }
        changed = [name for name, each in commands.items() if _fold(uow, now, name, each)]
        if self.is_trial:
            uow.undo.undo()
            return changed
        for name in changed:
            commands[name].append_audit(uow, now)
        return changed


def _fold(uow: UnitOfWork, now: Micros, name: str, command: ApplyArc | ApplyArrival) -> bool:
    try:
        return command.upsert(uow, now)[1]
    except Unavailable:
        raise
    except PenstockError as refusal:
        raise type(refusal)(f"{name} cannot be so, and nothing was changed: {refusal}") from None
