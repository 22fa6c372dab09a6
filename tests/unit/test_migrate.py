"""Which migrations are applied, and how often the ledger is read for that."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from penstock.db.database import T
from penstock.db.migrate import AppliedMigration, Migration, apply_migrations

STEPS = [Migration(number, f"000{number}_step", "sqlite", (f"step {number}",)) for number in (1, 2)]


class Ledger:
    """A fake database that records its calls."""

    def __init__(self) -> None:
        self.applied: list[AppliedMigration] = []
        self.ran: list[str] = []
        self.sessions = 0

    @contextmanager
    def session(self) -> Iterator["Ledger"]:
        self.sessions += 1
        yield self

    def execute(self, statement: str, /, **params: Any) -> None:
        if statement == "record_migration":
            line = AppliedMigration(params["number"], params["name"], params["checksum"])
            self.applied.append(line)

    def rows(self, shape: type[T], statement: str, /, **params: object) -> list[T]:
        return cast(list[T], list(self.applied))

    def script(self, text: str) -> None:
        self.ran.append(text)


def apply(ledger: Ledger) -> list[str]:
    return apply_migrations(STEPS, ledger.session, lambda: 0)


def test_migrations_run_in_order_in_separate_sessions() -> None:
    ledger = Ledger()
    assert apply(ledger) == ["0001_step", "0002_step"]
    assert ledger.ran == ["step 1", "step 2"]
    assert ledger.sessions == len(STEPS) + 1


def test_a_current_schema_needs_only_one_read() -> None:
    ledger = Ledger()
    apply(ledger)
    ledger.ran, ledger.sessions = [], 0
    assert apply(ledger) == []
    assert (ledger.ran, ledger.sessions) == ([], 1)


def test_migration_resumes_after_a_kill_between_two_steps() -> None:
    ledger = Ledger()
    apply_migrations(STEPS[:1], ledger.session, lambda: 0)
    assert apply(ledger) == ["0002_step"]
    assert ledger.ran == ["step 1", "step 2"]
