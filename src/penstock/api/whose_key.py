"""Who is asking: what the key of a call may do, so that a page offers nothing else."""

from penstock.access.keys import LOCAL, Role
from penstock.api.calls import Call
from penstock.api.routing import BASE, Reach, Route
from penstock.catalog.shapes import Shape


class ShownCaller(Shape, frozen=True):
    """Who is asking. `name` is null where no key was sent and none is needed: then all is allowed.

    A key with a `namespace` may touch only that one.
    """

    name: str | None
    role: Role
    namespace: str | None


async def show_key(call: Call) -> ShownCaller:
    """Say whose key this call came with, and what it may do."""
    key = call.key
    return ShownCaller(None if key is LOCAL else key.name, key.role, key.namespace)


ROUTES = (Route("GET", f"{BASE}/key", show_key, Reach.SHARED),)
