"""Running one lot of an arc here and now, without an engine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.arcs.commands import ClaimArcLots, SettleKeys
from penstock.arcs.engine.leases import BEATS, Outage, extend, lease_trouble
from penstock.arcs.engine.lot_run import LotRun
from penstock.arcs.executors import TaskExecutor
from penstock.arcs.workload.shell import DEFAULT_RULES, CommandRules
from penstock.clock import Clock
from penstock.errors import Conflict
from penstock.locks.explain.no_work import why_nothing
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
    """Claim a lot that is ready and run it to its end; whether it was published.

    The claim is exclusive as always. The limits of the arc do not hold back who asks by hand.
    """
    taken = catalog.submit(ClaimArcLots(namespace, name, owner, 1, (lot,))).result()
    if not taken.claims:
        with catalog.read() as tx:
            raise Conflict(why_nothing(tx, namespace, name).summary)
    execution = LotRun(
        taken.arc,
        taken.job_id,
        taken.claims[0],
        catalog,
        objects,
        executor,
        clock,
        lambda: False,
        Outage(),
        lease_url,
        rules,
    )
    with _kept(execution):
        is_published = execution.run()
    if execution.is_settled:
        catalog.submit(SettleKeys((execution.unsettled,))).result()
    return is_published


@contextmanager
def _kept(execution: LotRun) -> Iterator[None]:
    """Keep the lease while the block lasts."""
    over = threading.Event()

    def beat() -> None:
        trouble = lease_trouble()
        while not over.wait(execution.claim.lease_seconds / BEATS):
            extend(execution.keep, trouble)

    heart = threading.Thread(target=beat, name="arc-heart", daemon=True)
    heart.start()
    try:
        yield
    finally:
        over.set()
        heart.join()
