"""A writer that sleeps in the middle of a deposit, and wakes after others have gone on."""

import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Conflict
from penstock.ingest.archive.ocfl.inventory import NewFile
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.objects import Objects
from tests.contract.ocfl_desk import ARK, NOW, Files, IngestService, open_desk
from tests.patience import HANG_SECONDS

BEFORE: Files = {"producer/a": b"before", "producer/c": b"c"}
FIRST: Files = {"producer/a": b"first", "producer/b": b"b"}
SECOND: Files = {"producer/a": b"second"}
STEPS_MIN = 12  # reads and writes of a deposit


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

    def size(self, key: str) -> int | None:
        self._step()
        return super().size(key)

    def list(self, prefix: str = "", *, after: str = "") -> Any:
        self._step()
        return super().list(prefix, after=after)

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.asleep.set()
            assert self.wake.wait(HANG_SECONDS)


class Sleeper:
    """A deposit under the key `first` that falls asleep at a step."""

    def __init__(self, desk: IngestService, step: int, work: Callable[[Depository], None]) -> None:
        self._objects = Sleepy.open(str(desk.folder))
        self._objects.left = step
        self._objects.asleep, self._objects.wake = threading.Event(), threading.Event()
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self.refusal: Exception | None = None
        self.is_over = False
        self._thread.start()
        self._objects.asleep.wait(HANG_SECONDS)
        assert self._objects.asleep.is_set()

    def _run(self) -> None:
        try:
            self._work(Depository(self._objects))
        except Exception as refusal:
            self.refusal = refusal
        finally:
            self.is_over = True
            self._objects.asleep.set()

    def wake(self) -> None:
        """Let it go on to its end."""
        self._objects.wake.set()
        self._thread.join()


def storing(files: list[NewFile]) -> Callable[[Depository], None]:
    def store(depository: Depository) -> None:
        depository.store(ARK, "first", files, update=False, who="ada", message="", now=NOW)

    return store


def sleepers(
    tmp_path: Path, is_new: bool, work: Callable[[IngestService], Callable[[Depository], None]]
) -> Iterator[tuple[IngestService, Sleeper]]:
    """One for each step of a deposit, each at an object of its own."""
    for step in count(1):
        folder = tmp_path / str(step)
        folder.mkdir()
        desk = open_desk(folder)
        if not is_new:
            desk.deposit("before", BEFORE)
        sleeper = Sleeper(desk, step, work(desk))
        if sleeper.is_over:
            assert step > STEPS_MIN
            return
        yield desk, sleeper


def first_files(desk: IngestService) -> Callable[[Depository], None]:
    return storing([desk.new_file(name, content) for name, content in FIRST.items()])


def keys(desk: IngestService) -> list[str | None]:
    versions = desk.depository.read(ARK).versions.values()
    return [version.key for version in versions if version.key != "before"]


@pytest.fixture(params=[True, False], ids=["new", "known"])
def is_new(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_deposit_that_slept_takes_nothing_away_from_those_that_did_not(
    tmp_path: Path, is_new: bool
) -> None:
    for desk, sleeper in sleepers(tmp_path, is_new, first_files):
        desk.deposit("first", FIRST)
        desk.deposit("second", SECOND)
        sleeper.wake()
        assert sleeper.refusal is None
        assert keys(desk) == ["first", "second"]
        assert desk.content(version=1 if is_new else 2) == FIRST
        assert desk.content() == SECOND
        desk.check(ARK)


def test_of_two_deposits_at_one_version_neither_writes_where_the_other_does(
    tmp_path: Path, is_new: bool
) -> None:
    orders = set()
    for desk, sleeper in sleepers(tmp_path, is_new, first_files):
        desk.deposit("second", SECOND)
        desk.check(ARK)
        sleeper.wake()
        order = keys(desk)
        assert order in (["second"], ["first", "second"], ["second", "first"])
        assert isinstance(sleeper.refusal, Conflict) == (order == ["second"])
        for number, key in enumerate(order, start=1 if is_new else 2):
            assert desk.content(version=number) == (FIRST if key == "first" else SECOND)
        assert is_new or desk.content(version=1) == BEFORE
        desk.check(ARK)
        orders.add(tuple(order))
    assert len(orders) == 3


def test_one_deposit_that_is_brought_twice_with_other_bytes_is_one_of_the_two(
    tmp_path: Path, is_new: bool
) -> None:
    other = {"producer/a": b"changed at its source", "producer/b": b"b"}
    found = []
    for desk, sleeper in sleepers(tmp_path, is_new, first_files):
        desk.deposit("first", other)
        sleeper.wake()
        assert sleeper.refusal is None
        assert keys(desk) == ["first"]
        assert desk.content() in (FIRST, other)
        found.append(desk.content())
        desk.check(ARK)
    assert found[0] == other
    assert found[-1] == FIRST


def test_a_deposit_that_slept_and_finds_its_files_gone_leaves_nothing_behind(
    tmp_path: Path, is_new: bool
) -> None:
    files: list[NewFile] = []

    def work(desk: IngestService) -> Callable[[Depository], None]:
        files[:] = [desk.new_file(name, content) for name, content in FIRST.items()]
        return storing(list(files))

    for desk, sleeper in sleepers(tmp_path, is_new, work):
        desk.deposit("second", SECOND)
        for file in files:
            file.path.unlink()
        sleeper.wake()
        assert "second" in keys(desk)
        desk.check(ARK)


class Blind(Objects):
    """Lists no content, as a listing may that meets a key just while it is written again."""

    def list(self, prefix: str = "", *, after: str = "") -> Any:
        found = super().list(prefix, after=after)
        return (entry for entry in found if "/content/" not in entry.key)


def test_content_that_a_listing_misses_is_not_taken_for_lost(tmp_path: Path) -> None:
    desk = open_desk(tmp_path)
    files = [desk.new_file(name, content) for name, content in FIRST.items()]
    blind = Depository(Blind.open(str(desk.folder)))
    storing(files)(blind)
    storing(files)(blind)
    blind.abandon(ARK, "first")
    assert desk.content() == FIRST
    desk.check(ARK)
