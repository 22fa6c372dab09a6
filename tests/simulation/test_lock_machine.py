"""Workers, crashes, time and administrators in any order: locks hold on both databases.

Random commands go to a real catalog, and a model computes each result. A crashed worker never
returns, or returns too late. Long searches (`make stress`) use the seed in PENSTOCK_SEED, or draw
one and print it.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from penstock import ids
from penstock.catalog.writes import open_write_queue
from penstock.clock import SECOND, Micros
from penstock.db import Database, open_database
from penstock.errors import PenstockError
from penstock.locks import tables as room
from penstock.locks.commands import (
    ClaimedLot,
    ClaimLots,
    ClaimRef,
    ClaimResult,
    CompleteClaims,
    FailClaims,
    HoldLot,
    HoldWork,
    RegisterLots,
    ResubmitLots,
    Sweep,
    WireJob,
)
from penstock.locks.commands.claims import ClaimsTurnover
from penstock.schema.locks import Stale
from penstock.store.write_queue import WriteQueue
from tests.invariants import broken_invariants
from tests.servers import PostgresServer
from tests.simulation import lock_commands as made_up
from tests.simulation.consistency import problems
from tests.simulation.lock_following import follow
from tests.simulation.lock_model import LOTS, Model
from tests.simulation.lock_tables import LockTables, Memory, broken_promises, disagreements
from tests.simulation.tables import STATEMENTS
from tests.simulation.test_kill import random_seed
from tests.simulation.test_two_catalogs import Databases

BEGIN: Micros = 1_800_000_000 * SECOND


class LockMachine(RuleBasedStateMachine):
    """One or two servers on one database, and a model."""

    def __init__(self, databases: Databases) -> None:
        super().__init__()
        self._empty = databases.empty()
        self._url = self._empty.__enter__()
        self._servers: list[tuple[Database, WriteQueue]] = []
        self._memory = Memory()
        self.model = Model(now=BEGIN)
        self.given = [made_up.NO_CLAIM]  # all claims so far, the newest last
        self._start_server()
        self._tables = self._look()
        self.send(made_up.wire("a", ("raw",), ("clean",)))
        self.send(made_up.wire("b", ("clean", "dim"), ("mart",)))

    def _start_server(self) -> None:
        database = open_database(self._url, extra=[STATEMENTS])
        catalog = open_write_queue(
            database, clock=lambda: self.model.now, batch_events_max=8, queue_length_max=1000
        )
        catalog.start()
        self._servers.append((database, catalog))

    def teardown(self) -> None:
        for database, catalog in self._servers:
            catalog.stop()
            database.close()
        self._empty.__exit__(None, None, None)

    def send(self, *commands: Any) -> None:
        """Send commands at once to the current server and check their results."""
        _, catalog = self._servers[-1]
        sent = [catalog.submit(command) for command in commands]
        outcomes = [_outcome(future.result) for future in sent]
        # A transition that the table WORK lacks is a defect, never a correct refusal.
        assert "and cannot become" not in f"{outcomes}"
        for command, outcome in zip(commands, outcomes, strict=True):
            follow(command, self.model, outcome)
            self.model.end_backoffs()
            self.model.make_stale_again()
            self.given += [ClaimRef(claim.id, claim.token) for claim in _claimed(command, outcome)]
        after = self._look()
        if all(map(_is_refused, outcomes)):
            assert after == self._tables, f"{commands} was refused, and changed something"
        self._tables = after

    def _look(self) -> LockTables:
        """Read everything and check it."""
        with self._servers[-1][1].read() as tx:
            tables = LockTables(tx)
            wrong = [text for text in problems(tx) if "has no event" not in text]
        wrong += broken_promises(tables)
        wrong += disagreements(tables, self.model, self._memory)
        wrong += self._memory.changed(tables)
        wrong += broken_invariants(self._servers[-1][0], lambda: self.model.now)
        assert not wrong, "\n".join(wrong)
        return tables

    @initialize(
        command=made_up.rewirings,
        lots=made_up.some_lots,
        of_a=made_up.policies,
        of_b=made_up.policies,
    )
    def begin(
        self,
        command: WireJob,
        lots: tuple[str, ...],
        of_a: Stale = Stale.IGNORE,
        of_b: Stale = Stale.IGNORE,
    ) -> None:
        self.send(made_up.wire("a", ("raw",), ("clean",), of_a))
        self.send(made_up.wire("b", ("clean", "dim"), ("mart",), of_b))
        registered = [
            RegisterLots("ns", "raw", LOTS, "ann"),
            RegisterLots("ns", "dim", lots, "ann"),
        ]
        self.send(command, *registered)

    @rule(command=made_up.commands)
    def somebody_acts(self, command: Any) -> None:
        self.send(command)

    @rule(commands=made_up.many_commands)
    def many_act_at_once(self, commands: list[Any]) -> None:
        self.send(*commands)

    @rule(claim=made_up.searches, end=made_up.ends)
    def a_worker_claims_and_ends(self, claim: ClaimLots, end: made_up.End) -> None:
        known = len(self.given)
        self.send(claim)
        if claims := self.given[known:]:
            self.send(end(tuple(claims)))

    @rule(seconds=made_up.seconds, swept=made_up.mostly)
    def time_passes(self, seconds: int, swept: bool) -> None:
        self.model.now += seconds * SECOND
        if swept:
            self.send(Sweep())

    @rule()
    def another_server_is_asked(self) -> None:
        if len(self._servers) == 1:
            self._start_server()
        else:
            self._servers.reverse()


def _claimed(command: Any, outcome: Any) -> list[ClaimedLot]:
    if isinstance(outcome, ClaimsTurnover):
        return outcome.claimed
    return outcome if isinstance(command, ClaimLots) and isinstance(outcome, list) else []


def _outcome(result: Callable[[], Any]) -> Any:
    try:
        return result()
    except PenstockError as refusal:
        return refusal


def _is_refused(outcome: Any) -> bool:
    """Return whether a command was refused."""
    if isinstance(outcome, ClaimsTurnover):
        return not outcome.claimed and _is_refused(outcome.ended)
    if isinstance(outcome, list):
        return all(isinstance(each, ClaimResult) and each.refused is not None for each in outcome)
    return isinstance(outcome, PenstockError)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    made = Databases(tmp_path_factory.mktemp("locks"), None)
    yield made
    made.close()


@pytest.fixture(scope="module")
def on_postgresql(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Databases]:
    made = Databases(tmp_path_factory.mktemp("locks"), postgres)
    yield made
    made.close()


def search(databases: Databases, *, examples: int, steps: int, seeded: int | None = None) -> None:
    """Run this many stories of this many steps, always the same ones without a seed."""
    with pytest.MonkeyPatch.context() as patch:
        # A few lots already exceed the cache.
        patch.setattr(room, "_QUEUE_LENGTH", 2)

        class Searched(LockMachine):
            def __init__(self) -> None:
                # The same story has the same ids, in random order.
                numbers = count()
                patch.setattr(ids, "new_id", lambda: ids.derived_id("test", str(next(numbers))))
                super().__init__(databases)

        run_state_machine_as_test(
            Searched if seeded is None else seed(seeded)(Searched),
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                derandomize=seeded is None,
                database=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.fixture(params=["sqlite", "postgresql"])
def machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LockMachine]:
    """A machine for scripted commands."""
    monkeypatch.setattr(room, "_QUEUE_LENGTH", 2)
    made = LockMachine(request.getfixturevalue(f"on_{request.param}"))
    yield made
    made.teardown()


def test_two_jobs_that_write_one_dataset_never_work_on_one_lot(machine: LockMachine) -> None:
    machine.begin(made_up.wire("c", ("raw",), ("clean",)), ("2",))
    by_name = ("2", "9")
    machine.send(ClaimLots("ns", "a", "w1", lots=by_name), ClaimLots("ns", "c", "w2", count=4))
    assert [(c.job, c.lot) for c in machine.model.claims.values()] == [
        ("a", "2"),
        ("a", "9"),
        ("c", "10"),
        ("c", "100"),
    ]
    machine.send(CompleteClaims(tuple(machine.given[1:2])), FailClaims(tuple(machine.given[2:3])))
    machine.send(ClaimLots("ns", "c", "w2", count=4))
    assert {(c.job, c.lot) for c in machine.model.claims.values()} == {
        ("c", "9"),
        ("c", "10"),
        ("c", "100"),
    }


def test_a_lot_out_of_tries_does_not_stop_others(machine: LockMachine) -> None:
    machine.begin(made_up.wire("c", ("raw",), ("clean",)), ("2",))
    for _ in range(made_up.TRIES_MAX):
        machine.send(ClaimLots("ns", "a", "w1", lots=("2",)))
        machine.send(FailClaims((machine.given[-1],)))
        machine.time_passes(seconds=700, swept=True)
    assert machine.model.states("a", "2") == {"HELD"}
    machine.send(ClaimLots("ns", "a", "w1"), ClaimLots("ns", "c", "w1", count=4))
    assert [claim.lot for claim in machine.model.claims.values()] == ["9", "10", "100"]
    machine.send(HoldWork(*made_up.ANN, "ns", "a", "2", hold=False))
    assert machine.model.states("a", "2") == {"READY"}


def test_more_lots_than_the_cache_holds_are_claimed_in_order(
    machine: LockMachine,
) -> None:
    machine.begin(made_up.wire("c", ("mart",), ()), ("2",))
    machine.send(HoldWork(*made_up.ANN, "ns", "a", "100"))
    for _ in range(3):  # the cache includes the changes of the last writes
        machine.time_passes(seconds=1, swept=True)
    machine.send(ClaimLots("ns", "a", "w1"))
    machine.send(HoldWork(*made_up.ANN, "ns", "a", "100", hold=False))
    for _ in LOTS[1:]:
        machine.send(ClaimLots("ns", "a", "w1"))
    assert tuple(claim.lot for claim in machine.model.claims.values()) == LOTS


def test_lots_published_together_have_versions_and_the_last_is_current(
    machine: LockMachine,
) -> None:
    machine.begin(made_up.wire("c", ("mart",), ()), ("2",))
    again = RegisterLots("ns", "raw", ("2",), "ann", renew=True)
    machine.send(again, again, ClaimLots("ns", "a", "w1", count=4), again)
    claims = machine.given[1:]
    machine.send(CompleteClaims(tuple(claims[:3])), CompleteClaims((claims[3],)))
    assert machine.model.current["clean"] is machine.model.made["clean", "100"]


def test_a_rewired_job_gets_only_existing_lots(
    machine: LockMachine,
) -> None:
    machine.begin(made_up.wire("c", ("raw",), ("clean",)), ("9",))
    machine.send(made_up.wire("c", ("dim",), ("clean",)))
    machine.send(ClaimLots("ns", "c", "w1", count=4))
    assert [claim.lot for claim in machine.model.claims.values()] == ["9"]


def test_rewiring_under_a_live_claim_may_only_add_work(machine: LockMachine) -> None:
    machine.begin(made_up.wire("c", ("raw",), ("clean",)), ("2",))
    machine.send(ClaimLots("ns", "c", "w1"))
    machine.send(made_up.wire("c", ("mart",), ()))
    machine.send(made_up.wire("c", ("raw",), ("clean", "extra")))
    machine.send(CompleteClaims((machine.given[-1],)))
    assert machine.model.jobs["c"].outputs == ("clean", "extra")
    assert ("extra", "2") not in machine.model.made


def test_finished_work_stays_done_after_its_inputs_change(
    machine: LockMachine,
) -> None:
    machine.begin(made_up.wire("c", ("raw",), ("clean",)), ("2",))
    machine.send(ClaimLots("ns", "c", "w1"))
    machine.send(CompleteClaims((machine.given[-1],)))
    machine.send(HoldLot("ann", "bad", "ns", "raw", "2", hold=True))
    assert machine.model.made["clean", "2"].status == "HOLD"
    for reads in (("mart",), ()):
        machine.send(made_up.wire("c", reads, ("clean",)))
        assert machine.model.states("c", "2") == {"DONE"}  # by its output row alone, held or not
    machine.send(HoldLot("ann", "good", "ns", "raw", "2", hold=False))
    assert machine.model.states("c", "2") == {"DONE"}


def test_indirect_outputs_are_held_while_an_intermediate_is_remade(
    machine: LockMachine,
) -> None:
    machine.begin(made_up.wire("c", ("mart",), ()), ("2",))
    machine.send(RegisterLots("ns", "dim", ("2",), "ann"))
    for job in "ab":
        machine.send(ClaimLots("ns", job, "w1", lots=("2",)))
        machine.send(CompleteClaims((machine.given[-1],)))
    machine.send(ResubmitLots(*made_up.ANN, "ns", "a", ("2",)))
    machine.send(HoldLot("ann", "bad", "ns", "raw", "2", hold=True))
    found = [machine.model.made[dataset, "2"].status for dataset in ("clean", "mart")]
    assert found == ["RESUBMIT", "HOLD"]


def test_releasing_an_unheld_lot_adds_no_work(machine: LockMachine) -> None:
    machine.begin(made_up.wire("c", ("mart",), ()), ("2",))
    let_go = HoldLot("ann", "good", "ns", "clean", "9", hold=False)
    machine.send(let_go, RegisterLots("ns", "dim", ("9",), "ann", priority=5))
    assert machine.model.work["b", "9"].rank == -5


def test_a_claim_given_with_two_tokens_completes_under_its_own(machine: LockMachine) -> None:
    machine.begin(made_up.wire("c", ("mart",), ()), ("2",))
    machine.send(ClaimLots("ns", "a", "w1"))
    ref = machine.given[-1]
    machine.send(CompleteClaims((ClaimRef(ref.id, 99), ref, ClaimRef(ref.id, 0))))
    assert machine.model.runs == {ref.id: "COMPLETED"}


def test_locks_hold_in_any_order_of_events_on_sqlite(on_sqlite: Databases) -> None:
    search(on_sqlite, examples=25, steps=30)


def test_locks_hold_in_any_order_of_events_on_postgresql(on_postgresql: Databases) -> None:
    search(on_postgresql, examples=10, steps=25)


@pytest.mark.stress
def test_long_search_for_an_order_that_breaks_locks_on_sqlite(on_sqlite: Databases) -> None:
    search(on_sqlite, examples=2000, steps=60, seeded=random_seed())


@pytest.mark.stress
def test_long_search_for_an_order_that_breaks_locks_on_postgresql(
    on_postgresql: Databases,
) -> None:
    search(on_postgresql, examples=500, steps=50, seeded=random_seed())


def test_work_done_under_old_wiring_is_due_under_the_new(
    machine: LockMachine,
) -> None:
    machine.begin(made_up.wire("c", ("raw",), ()), ("2",))
    machine.send(ClaimLots("ns", "c", "w1"))
    machine.send(CompleteClaims((machine.given[-1],)))
    assert machine.model.states("c", "2") == {"DONE"}
    machine.send(made_up.wire("c", ("mart",), ()))
    assert machine.model.states("c", "2") == {"WAITING"}
    machine.send(made_up.wire("c", ("raw",), ()))
    assert machine.model.states("c", "2") == {"DONE"}
