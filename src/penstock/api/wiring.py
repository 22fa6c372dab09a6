"""Which datasets jobs read and write lot by lot, and how their lots are worked on."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from penstock.access.keys import Role
from penstock.api.bodies import Body
from penstock.api.calls import Call
from penstock.api.jobs import DatasetNameBody
from penstock.api.routing import BASE, Route
from penstock.catalog.commands import DatasetName
from penstock.db import Transaction
from penstock.locks import reading
from penstock.locks.commands import WireJob
from penstock.locks.commands.claims import LEASE_SECONDS_MAX
from penstock.locks.rows import Stale
from penstock.locks.shapes import Wiring

LeaseSeconds = Annotated[int, Meta(ge=1, le=LEASE_SECONDS_MAX)]


class WiringBody(Body, frozen=True):
    """Which datasets a job reads and writes lot by lot; what is left out stays as it is."""

    inputs: tuple[DatasetNameBody, ...] | None = None
    outputs: tuple[DatasetNameBody, ...] | None = None
    lease_seconds: LeaseSeconds | None = None
    tries_max: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    back_off_seconds: Annotated[int, Meta(ge=0, le=LEASE_SECONDS_MAX)] | None = None
    enforced: bool | None = None
    stale: Stale | None = None


async def put_wiring(call: Call, namespace: str, job: str, body: WiringBody) -> Wiring:
    """State which datasets a job reads and writes lot by lot, and how its lots are worked on."""
    await call.submit(
        WireJob(
            namespace,
            job,
            dataset_names(call, body.inputs),
            dataset_names(call, body.outputs),
            body.lease_seconds,
            body.tries_max,
            body.back_off_seconds,
            body.enforced,
            body.stale,
            call.key.namespace,
        )
    )
    return await call.read(reading.get_wiring, namespace, job)


def get_wiring(tx: Transaction, namespace: str, job: str) -> Wiring:
    """Show which datasets a job reads and writes lot by lot."""
    return reading.get_wiring(tx, namespace, job)


def dataset_names(
    call: Call, given: Sequence[DatasetNameBody] | None
) -> tuple[DatasetName, ...] | None:
    """The datasets that a body names."""
    if given is None:
        return None
    for dataset in given:
        call.check_names(namespace=dataset.namespace, name=dataset.name)
    return tuple(DatasetName(dataset.namespace, dataset.name) for dataset in given)


_WIRING = f"{BASE}/namespaces/{{namespace}}/jobs/{{job}}/wiring"

ROUTES = (
    Route("GET", _WIRING, get_wiring),
    Route("PUT", _WIRING, put_wiring, role=Role.WRITER),
)
