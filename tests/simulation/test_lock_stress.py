"""Workers killed and stopped at random: every lot is done once, and no stale output is published.

Long searches (`make stress`) use the seed in PENSTOCK_SEED, or draw one and print it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from penstock.catalog.changes import changes
from penstock.catalog.commands import DatasetName
from penstock.catalog.entities.runs import lot_of
from penstock.catalog.rows import Origin
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.catalog.writes import open_write_queue
from penstock.clock import system_clock
from penstock.db import Transaction, open_database
from penstock.errors import Unavailable
from penstock.locks.commands import ClaimLots, RegisterLots, WireJob
from penstock.locks.rows import LogRow
from penstock.schema.catalog import DatasetRole
from penstock.states import RunState, WorkState
from penstock.store.unit_of_work import write_changes
from penstock.store.write_queue import WriteQueue
from tests.invariants import assert_database_holds
from tests.patience import HANG_SECONDS
from tests.running import serving
from tests.servers import PostgresServer
from tests.simulation.consistency import problems
from tests.simulation.lock_tables import LockTables, broken_promises
from tests.simulation.lock_workforce import Plan, Workforce
from tests.simulation.tables import STATEMENTS
from tests.simulation.test_kill import random_seed

SHORT = Plan(workers=4, lots=60, crashes=8, resubmissions=6, at_once=3, work_seconds=0.05)
LONG = Plan(workers=4, lots=5000, crashes=100, resubmissions=200, at_once=10, work_seconds=0.01)


def open_tables(own_url: str) -> LockTables:
    """Load all tables and check that they are consistent."""
    opened = closing(open_database(own_url, extra=[STATEMENTS]))
    with opened as database, database.read() as tx:
        assert [text for text in problems(tx) if "has no event" not in text] == []
        tables = LockTables(tx)
    assert list(broken_promises(tables)) == []
    return tables


def prepare(workforce: Workforce, plan: Plan) -> None:
    """Create two jobs in a chain, the second with another input, and all their input lots."""

    def refs(*names: str) -> list[dict[str, str]]:
        return [{"namespace": "ns", "name": name} for name in names]

    for job, inputs, outputs in (("a", ["raw"], ["clean"]), ("b", ["clean", "dim"], ["mart"])):
        tried = {"triesMax": 1000, "backOffSeconds": 0, "leaseSeconds": plan.lease_seconds}
        wiring = {"inputs": refs(*inputs), "outputs": refs(*outputs), **tried}
        workforce.ask("PUT", f"/namespaces/ns/jobs/{job}/wiring", wiring)
    lots = [str(number) for number in range(plan.lots)]
    for dataset in ("raw", "dim"):
        body = {"lots": lots}
        assert workforce.ask("POST", f"/namespaces/ns/datasets/{dataset}/lots", body) == {
            "registered": plan.lots
        }


def stress(urls: Sequence[str], own_url: str, folder: Path, plan: Plan, seed: int) -> None:
    workforce = Workforce(urls, folder, plan, seed)
    prepare(workforce, plan)
    with workforce:
        workforce.run()
    tables = open_tables(own_url)
    check_everything_done_once(tables, workforce, plan)
    check_the_log(tables)
    check_the_journals(tables, workforce)
    check_what_was_read(tables)
    assert_database_holds(own_url)
    assert len(workforce.killed) + len(workforce.delayed) == plan.crashes


def check_everything_done_once(tables: LockTables, workforce: Workforce, plan: Plan) -> None:
    """Check that every lot is done in both jobs and published once, or twice if resubmitted."""
    lots = [str(number) for number in range(plan.lots)]
    expected = Counter((job, lot) for job in "ab" for lot in lots)
    assert {(tables.names[row.job_id], row.lot) for row in tables.work} == expected.keys()
    assert {row.state for row in tables.work} == {WorkState.DONE}
    expected.update(workforce.resubmitted)
    done = [run for run in tables.runs.values() if run.state == RunState.COMPLETED]
    assert Counter((tables.names[run.job_id], lot_of(run)) for run in done) == expected
    completions = [row for row in tables.log if row.action == "complete"]
    assert Counter((tables.names[row.job_id or ""], row.lot) for row in completions) == expected
    assert {row.run_id for row in completions} == {run.id for run in done}
    outputs = [version for version in tables.versions.values() if version.origin == Origin.RUN]
    assert sorted(version.run_id or "" for version in outputs) == sorted(run.id for run in done)


def check_the_log(tables: LockTables) -> None:
    """Check that no job's lot had a second claim before the first one ended."""
    by_work: dict[tuple[str | None, str], list[LogRow]] = defaultdict(list)
    for row in tables.log:
        if row.job_id is not None:
            by_work[row.job_id, row.lot].append(row)
    for rows in by_work.values():
        holder = None
        for row in rows:
            if row.action == "claim":
                assert holder is None, rows
                holder = row.run_id
            elif row.action in ("complete", "fail", "expire", "release"):
                assert row.run_id == holder, rows
                holder = None
        assert holder is None, rows


def check_the_journals(tables: LockTables, workforce: Workforce) -> None:
    """Check that acknowledged outputs exist, refused ones do not, and there are no others."""
    tried: dict[str, str] = {}
    answered: dict[str, str] = {}
    unanswered = set()
    outputs = {(r.run_id, r.version_id) for r in tables.io if r.role == DatasetRole.OUTPUT}
    for owner, note in workforce.notes():
        if note.what in ("complete", "fail", "release"):
            tried[note.claim] = owner
        elif note.what == "unanswered":
            unanswered.add(note.claim)
        elif note.what != "claimed":
            answered[note.claim] = note.what
        if note.what == "complete done":
            assert note.rest["versions"], note
            assert {(note.claim, v["version"]) for v in note.rest["versions"]} <= outputs
    ends = {"complete done": RunState.COMPLETED, "fail done": RunState.FAILED}
    ends["release done"] = RunState.ABORTED
    for claim, answer in answered.items():
        state = tables.runs[claim].state
        if answer in ends:
            assert state == ends[answer], f"{claim} was told {answer}, and is {state}"
        else:
            assert state == RunState.FAILED, f"{claim} was refused, and is {state}"
    for run in tables.runs.values():
        if run.state == RunState.COMPLETED and answered.get(run.id) != "complete done":
            assert run.id in unanswered or tried[run.id] in workforce.killed
    killed = [claim for claims in workforce.killed.values() for claim in claims]
    assert {tables.runs[claim].state for claim in (*killed, *workforce.delayed)} <= {
        RunState.FAILED
    }


def check_what_was_read(tables: LockTables) -> None:
    """Check that job b read the lots that job a or an external writer published."""
    registered = {
        row.version_id: row.lot for row in tables.status if row.role == DatasetRole.OUTPUT
    }
    for (run_id, _), version_id in tables.pins().items():
        version = tables.versions[version_id]
        maker = tables.runs.get(version.run_id or "")
        source_lot = lot_of(maker) if maker is not None else registered[version_id]
        assert maker is None or maker.state == RunState.COMPLETED
        assert source_lot == lot_of(tables.runs[run_id])


def test_workers_killed_at_random_finish_every_lot_once(own_url: str, tmp_path: Path) -> None:
    with serving(own_url) as server:
        stress([server.url], own_url, tmp_path, SHORT, seed=1)


@pytest.fixture
def postgresql_url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


def test_workers_killed_on_two_servers_finish_every_lot_once(
    postgresql_url: str, tmp_path: Path
) -> None:
    with serving(postgresql_url) as first, serving(postgresql_url) as second:
        stress([first.url, second.url], postgresql_url, tmp_path, SHORT, seed=2)


@pytest.mark.stress
def test_sixteen_killed_workers_finish_5000_lots_once_on_postgresql(
    postgresql_url: str, tmp_path: Path
) -> None:
    with serving(postgresql_url) as server:
        plan = LONG._replace(workers=16)
        stress([server.url], postgresql_url, tmp_path, plan, seed=random_seed())


@pytest.mark.stress
def test_four_killed_workers_finish_5000_lots_once_on_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'penstock.db'}"
    with serving(url) as server:
        stress([server.url], url, tmp_path, LONG, seed=random_seed())


@pytest.mark.stress
def test_sixteen_workers_of_two_servers_finish_5000_lots_once(
    postgresql_url: str, tmp_path: Path
) -> None:
    with serving(postgresql_url) as first, serving(postgresql_url) as second:
        plan = LONG._replace(workers=16)
        urls = [first.url, second.url]
        stress(urls, postgresql_url, tmp_path, plan, seed=random_seed())


class _Crash(Exception):
    """Raised to abandon a transaction as a crash would."""


@contextmanager
def shop(own_url: str, wait_seconds: float) -> Iterator[WriteQueue]:
    """A catalog with four lots for one job."""
    with closing(open_database(own_url, wait_seconds=wait_seconds)) as database:
        database.migrate()
        catalog = open_write_queue(
            database, clock=system_clock, batch_events_max=8, queue_length_max=100
        )
        catalog.start()
        sides = (DatasetName("ns", "raw"),), (DatasetName("ns", "clean"),)
        catalog.submit(WireJob("ns", "a", *sides)).result()
        catalog.submit(RegisterLots("ns", "raw", ("1", "2", "3", "4"), "ann")).result()
        try:
            yield catalog
        finally:
            catalog.stop()


def claim_in(tx: Transaction, count: int) -> list[str]:
    """Claim lots in a transaction that stays open."""
    uow = UnitOfWork()
    uow.open(tx)
    claimed = ClaimLots("ns", "a", "first", count=count).execute(uow, system_clock())
    write_changes(tx, changes(uow))
    return [claim.lot for claim in claimed]


def test_lots_of_a_claim_in_progress_are_not_given_again(
    own_url: str,
) -> None:
    with (
        shop(own_url, wait_seconds=HANG_SECONDS) as catalog,
        closing(open_database(own_url)) as database,
    ):
        with database.write() as tx:
            first = claim_in(tx, 2)
            second = catalog.submit(ClaimLots("ns", "a", "second", count=4))
            assert not second.done()
        claims = second.result(HANG_SECONDS)
    assert first == ["1", "2"]
    assert [claim.lot for claim in claims] == ["3", "4"]


def test_waiting_for_a_claim_in_progress_times_out(own_url: str) -> None:
    with (
        shop(own_url, wait_seconds=0.2) as catalog,
        closing(open_database(own_url)) as database,
    ):
        with suppress(_Crash), database.write() as tx:
            claim_in(tx, 2)
            second = catalog.submit(ClaimLots("ns", "a", "second", count=4))
            assert isinstance(second.exception(HANG_SECONDS), Unavailable)
            raise _Crash
        again = catalog.submit(ClaimLots("ns", "a", "second", count=4))
        claims = again.result(HANG_SECONDS)
    assert [claim.lot for claim in claims] == ["1", "2", "3", "4"]
