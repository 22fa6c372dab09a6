"""A writer that sleeps in the middle of a deposit, and wakes after others have gone on."""

import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.ingest.ocfl import Depository
from penstock.objects import Objects
from tests.contract.ocfl_desk import ARK, NOW, Files, open_desk

WAIT_SECONDS_MAX = 60
FIRST: Files = {"producer/a": b"first", "producer/b": b"b"}
SECOND: Files = {"producer/a": b"second"}
STEPS_OF_A_DEPOSIT = 13  # reads and writes


class Sleepy(Objects):
    """Sleeps before the step with this number."""

    left = -1
    asleep: threading.Event
    wake: threading.Event

    def put(self, key: str, *args: Any, **options: Any) -> None:
        self._step()
        super().put(key, *args, **options)

    def delete(self, key: str) -> None:
        self._step()
        super().delete(key)

    def get(self, key: str) -> bytes:
        self._step()
        return super().get(key)

    def list(self, prefix: str = "", *, after: str = "") -> Any:
        self._step()
        return super().list(prefix, after=after)

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.asleep.set()
            assert self.wake.wait(WAIT_SECONDS_MAX)


@pytest.mark.parametrize("step", range(1, STEPS_OF_A_DEPOSIT + 1))
def test_a_deposit_that_slept_takes_nothing_away_from_those_that_did_not(
    tmp_path: Path, step: int
) -> None:
    desk = open_desk(tmp_path)
    sleepy = Sleepy.open(str(desk.folder))
    sleepy.left, sleepy.asleep, sleepy.wake = step, threading.Event(), threading.Event()
    files = [desk.new_file(name, content) for name, content in FIRST.items()]

    def sleep() -> None:
        Depository(sleepy).store(
            ARK, "first", files, update=False, who="ada", message="a deposit", now=NOW
        )

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    assert sleepy.asleep.wait(WAIT_SECONDS_MAX)
    desk.deposit("first", FIRST)
    desk.deposit("second", SECOND)
    sleepy.wake.set()
    sleeper.join()
    versions = desk.depository.read(ARK).versions
    assert [version.key for version in versions.values()] == ["first", "second"]
    assert desk.content(version=1) == FIRST
    assert desk.content() == SECOND
    desk.check(ARK)
