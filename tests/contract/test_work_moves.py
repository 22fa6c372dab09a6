"""A change of a work state that the table WORK lacks is refused where states are written."""

from pathlib import Path

import pytest

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import replace
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.errors import Conflict
from penstock.ids import job_id
from penstock.locks.queries.lots import get_work
from penstock.locks.tables import LockTables
from penstock.states import WorkState
from tests.contract.lot_site import open_site
from tests.databases import sqlite_database


class Jump(Write, frozen=True):
    """Write a state without deriving it from status rows."""

    state: WorkState

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        tables = uow.tables(LockTables)
        row = tables.work.get((job_id("ns", "clean"), "1"))
        assert row is not None
        tables.put_work(replace(row, state=self.state))


@pytest.mark.parametrize("before", [WorkState.READY, WorkState.DONE])
def test_work_backs_off_only_after_a_claim(tmp_path: Path, before: WorkState) -> None:
    with open_site(sqlite_database(tmp_path / "penstock.db")) as site:
        site.wire("clean", ["raw"], ["tidy"])
        site.register("raw", ["1"])
        if before is WorkState.DONE:
            site.complete("clean", ["1"])

        with pytest.raises(
            Conflict, match=f"work on lot 1 .* is {before} and cannot become RETRYABLE"
        ):
            site.do(Jump(WorkState.RETRYABLE))

        with site.catalog.read() as tx:
            assert get_work(tx, "ns", "clean", "1").state is before
