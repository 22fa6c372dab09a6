"""Arcs over hourly lots, run by a real engine; workloads fail for lots in a file."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock import ids
from penstock.arcs.commands import ApplyArc
from penstock.arcs.engine.scheduler import Engine
from penstock.arcs.executors.local import LocalThreads
from penstock.arcs.spec import Arc, Input, Output, Retry, Workload
from penstock.arcs.workload.task import Context
from penstock.locks.rows import StatusRow, WorkRow
from penstock.objects import Objects
from penstock.operations.backfills.service import Backfills
from penstock.schema.locks import Stale
from tests.contract.lot_site import Site, open_site
from tests.patience import HANG_SECONDS

BROKEN = "PENSTOCK_TEST_BROKEN"  # the folder with a file for every lot that fails
LEASE_SECONDS = 2

_counting = threading.Lock()
_working: set[str] = set()
most_at_once = [0]


def copy(context: Context) -> None:
    """Write the lot's name, unless the lot is broken; record how many lots of raw are running."""
    with _counting:
        if "raw" in context.inputs:
            _working.add(context.lot)
        most_at_once[0] = max(most_at_once[0], len(_working))
    try:
        if (Path(os.environ[BROKEN]) / context.lot).exists():
            raise RuntimeError("it is broken")
        context.write("data.txt", context.lot.encode())
    finally:
        with _counting:
            _working.discard(context.lot)


@dataclass
class ArcSite:
    """A site with an object store and a folder of broken lots."""

    site: Site
    objects: Objects
    broken: Path
    backfills: Backfills

    def apply(self, name: str, source: str, target: str, **retry: int) -> None:
        arc = Arc(
            name=name,
            namespace="ns",
            inputs=(Input(dataset=source),),
            outputs=(Output(dataset=target, interval="PT1H"),),
            workload=Workload(function=f"{__name__}:copy"),
            retry=Retry(**{"tries": 1, "back_off_seconds": 3600, **retry}),
            stale=Stale.IGNORE,
        )
        self.site.do(ApplyArc("ann", arc))

    def break_lots(self, *lots: str) -> None:
        for lot in lots:
            (self.broken / lot).touch()

    def mend(self, *lots: str) -> None:
        for lot in lots:
            (self.broken / lot).unlink()

    @contextmanager
    def engine(self, concurrency: int = 4) -> Iterator[Engine]:
        with (
            LocalThreads(concurrency) as executor,
            Engine(
                self.site.catalog,
                self.objects,
                executor,
                lambda: self.site.now,
                owner="engine",
                concurrency=concurrency,
                sweep_seconds=0.02,
            ) as engine,
        ):
            yield engine

    def run_until_idle(self) -> None:
        """Run an engine until no lot is READY."""
        with self.engine():
            wait_for(lambda: not {"READY", "RUNNING"} & set(self.all_states()))

    def all_states(self) -> list[str]:
        with self.site.catalog.read() as tx:
            jobs = [job for (job, *_) in tx.fetch("all_arcs")]
            return [row[4] for job in jobs for row in tx.fetch("open_work_of_job", job_id=job)]

    def states(self, job: str, lots: Sequence[str]) -> list[str]:
        """Return the work of an arc on lots; a dash for none."""
        found = {row.lot: str(row.state) for row in self.work(job, lots)}
        return [found.get(lot, "-") for lot in lots]

    def work(self, job: str, lots: Sequence[str]) -> list[WorkRow]:
        wanted = {"job_id": ids.job_id("ns", job), "lots": list(lots)}
        with self.site.catalog.read() as tx:
            return tx.rows(WorkRow, "lot_work_by_lots", **wanted)

    def versions(self, dataset: str, lots: Sequence[str]) -> dict[str, str | None]:
        wanted = {"dataset_id": ids.dataset_id("ns", dataset), "lots": list(lots)}
        with self.site.catalog.read() as tx:
            rows = tx.rows(StatusRow, "lot_outputs", **wanted)
        return {row.lot: row.version_id for row in rows}


@contextmanager
def open_arcs(url: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[ArcSite]:
    """Open a site with one arc, copy: raw → up."""
    broken = folder / "broken"
    broken.mkdir()
    patch.setenv(BROKEN, str(broken))
    most_at_once[0] = 0
    with open_site(url) as site:
        objects = Objects.open(str(folder / "objects"))
        made = ArcSite(site, objects, broken, Backfills(site.catalog, lambda: site.now))
        made.apply("copy", "raw", "up", tries=2)
        yield made


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; a limit stops a broken test."""
    until = time.monotonic() + HANG_SECONDS
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < until, "it did not come about"
        pause.wait(0.01)
