"""Run one lot of an arc without an engine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.arcs.commands import ClaimArcLots, SettleKeys
from penstock.arcs.engine.leases import BEATS, renewal_trouble, try_renewal
from penstock.arcs.engine.lot_run import LotRun
from penstock.arcs.engine.outage import Outage
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.workload.shell import DEFAULT_RULES, CommandRules
from penstock.clock import Clock
from penstock.errors import Conflict
from penstock.locks.explain.no_work import explain_no_work
from penstock.objects import Objects
from penstock.store.write_queue import WriteQueue


def run_lot(
    catalog: WriteQueue,
    objects: Objects,
    executor: TaskExecutor,
    clock: Clock,
    namespace: str,
    name: str,
    lot: str,
    *,
    owner: str,
    lease_url: str | None = None,
    rules: CommandRules = DEFAULT_RULES,
) -> bool:
    """Claim a ready lot and run it; return whether it was published.

    The claim is exclusive. The limits of the arc do not apply to a lot that the caller names.
    """
    claimed = catalog.submit(ClaimArcLots(namespace, name, owner, 1, (lot,))).result()
    if not claimed.claims:
        with catalog.read() as tx:
            raise Conflict(explain_no_work(tx, namespace, name).summary)
    lot_run = LotRun(
        claimed.arc,
        claimed.job_id,
        claimed.claims[0],
        catalog,
        objects,
        executor,
        clock,
        lambda: False,
        Outage(),
        lease_url,
        rules,
    )
    with _lease_renewed(lot_run):
        is_published = lot_run.run()
    if lot_run.is_settled:
        catalog.submit(SettleKeys((lot_run.unsettled,))).result()
    return is_published


@contextmanager
def _lease_renewed(lot_run: LotRun) -> Iterator[None]:
    over = threading.Event()

    def beat() -> None:
        trouble = renewal_trouble()
        while not over.wait(lot_run.claim.lease_seconds / BEATS):
            try_renewal(lot_run.renew_lease, trouble)

    heart = threading.Thread(target=beat, name="arc-heart", daemon=True)
    heart.start()
    try:
        yield
    finally:
        over.set()
        heart.join()
