"""Whether everything that always holds does hold, asked of a server that is at work."""

from penstock.access.keys import Role
from penstock.api.answers import Flow
from penstock.api.calls import Call
from penstock.api.lines import NDJSON, lines
from penstock.api.parameters import Query
from penstock.api.routing import BASE, Reach, Route
from penstock.plane import Plane
from penstock.provenance.checking import check
from penstock.provenance.invariants import Grounds


class CheckQuery(Query, frozen=True):
    """Whether to read every byte that manifests and inventories name."""

    deep: bool = False


def grounds(plane: Plane, *, deep: bool = False) -> Grounds:
    """What a check of this server looks at."""
    return Grounds(plane.database, lambda: plane.objects, plane.shop, plane.clock, deep=deep)


async def check_invariants(call: Call, query: CheckQuery) -> Flow:
    """Ask of every invariant whether it holds, line by line, each a JSON document.

    It only reads, in snapshots, and no writer waits for it. `first` names what breaks an invariant.
    """
    found = grounds(call.door.plane, deep=query.deep)
    return lines(check(found), found.stop)


ROUTES = (
    Route("GET", f"{BASE}/check", check_invariants, Reach.EVERYTHING, Role.ADMIN, media=NDJSON),
)
