"""Whether everything that always holds does hold, asked of a server that is at work."""

import threading
from collections.abc import Iterator

from penstock.access.keys import Role
from penstock.api.answers import Flow
from penstock.api.calls import Call
from penstock.api.lines import NDJSON, lines
from penstock.api.parameters import Query
from penstock.api.routing import BASE, Reach, Route
from penstock.plane import Plane
from penstock.provenance.checking import Verdict, check
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
    stop = threading.Event()
    return lines(_until(check(grounds(call.door.plane, deep=query.deep)), stop), stop)


def _until(verdicts: Iterator[Verdict], stop: threading.Event) -> Iterator[Verdict]:
    for verdict in verdicts:
        yield verdict
        if stop.is_set():
            return


ROUTES = (
    Route("GET", f"{BASE}/check", check_invariants, Reach.EVERYTHING, Role.ADMIN, media=NDJSON),
)
