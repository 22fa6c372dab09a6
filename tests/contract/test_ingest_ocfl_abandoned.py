"""Deposits that are given up: what they had begun to store goes, whatever happens meanwhile."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from penstock.errors import Conflict, NotFound
from penstock.ingest.archive.ocfl.inventory import object_root
from penstock.ingest.archive.ocfl.repository import Depository, abandoned_mark
from penstock.objects import Objects
from tests.contract.ocfl_desk import ARK, Files, IngestService, open_desk
from tests.contract.test_ingest_ocfl_crashes import Dying, Killed
from tests.contract.test_ingest_ocfl_sleepers import Sleeper

BEFORE: Files = {"producer/old": b"old", "producer/keep": b"keep"}
DEPOSIT: Files = {"producer/old": b"newer", "producer/new": b"new", "empty": b""}
OTHER: Files = {"producer/new": b"new", "more": b"more"}
CONTENTS = len(DEPOSIT)  # writes before a version is decided
KEY = "killed"

Place = Callable[[str], str]


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A storage root of its own for each name, in a folder or on a server."""
    if request.param == "folder":
        return lambda name: str(tmp_path / name / "root")
    bucket: str = request.getfixturevalue("bucket_url")
    return lambda name: f"{bucket}/{name}"


@pytest.fixture(params=[True, False], ids=["new", "known"])
def is_new(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def killed(tmp_path: Path, place: Place, name: str, *, is_new: bool, writes: int) -> IngestService:
    """An object whose deposit was killed after some writes."""
    folder = tmp_path / name
    folder.mkdir()
    objects = Dying.open(place(name))
    desk = open_desk(folder, objects)
    if not is_new:
        desk.deposit("before", BEFORE)
    objects.left = writes
    with pytest.raises(Killed):
        desk.deposit(KEY, DEPOSIT)
    objects.left = None
    return desk


def keys(desk: IngestService) -> list[str | None]:
    """The deposits that have made a version."""
    try:
        versions = desk.depository.read(ARK).versions.values()
    except NotFound:
        return []
    return [version.key for version in versions]


def check(desk: IngestService) -> list[str | None]:
    """The deposits that have made a version, in a root that is valid and has nothing else."""
    made = keys(desk)
    desk.check(*([ARK] if made else []))
    contents: dict[str | None, Files] = {"before": BEFORE, KEY: DEPOSIT, "other": OTHER}
    for number, key in enumerate(made, 1):
        assert desk.content(version=number) == contents[key]
    if not made:
        assert not [entry for entry in desk.objects.list() if "%3a" in entry.key]
    return made


def test_an_abandoned_deposit_leaves_only_a_decided_version(
    tmp_path: Path, place: Place, is_new: bool
) -> None:
    before = [] if is_new else ["before"]
    for writes in range(CONTENTS + 4 + is_new):
        desk = killed(tmp_path, place, str(writes), is_new=is_new, writes=writes)
        desk.depository.abandon(ARK, KEY)
        assert check(desk) == ([*before, KEY] if writes > CONTENTS else before)
        desk.depository.abandon(ARK, KEY)
        assert check(desk) == ([*before, KEY] if writes > CONTENTS else before)


def test_nothing_of_others_is_removed(tmp_path: Path, place: Place, is_new: bool) -> None:
    desk = killed(tmp_path, place, "a", is_new=is_new, writes=CONTENTS)
    listed = {entry.key for entry in desk.objects.list()}
    desk.depository.abandon(ARK, "another")
    assert {entry.key for entry in desk.objects.list()} == listed
    desk.deposit(KEY, DEPOSIT)
    desk.depository.abandon(ARK, KEY)
    desk.depository.abandon(ARK, "another")
    assert check(desk)[-1] == KEY


def test_a_killed_abandon_is_completed_by_the_next(
    tmp_path: Path, place: Place, is_new: bool
) -> None:
    """The next try is to give it up again, or another deposit."""
    before = [] if is_new else ["before"]
    for writes in count():
        again = killed(tmp_path, place, f"{writes}-again", is_new=is_new, writes=CONTENTS)
        other = killed(tmp_path, place, f"{writes}-other", is_new=is_new, writes=CONTENTS)
        if not (_give_up_killed(again, writes) and _give_up_killed(other, writes)):
            break
        again.depository.abandon(ARK, KEY)
        assert check(again) == before
        other.deposit("other", OTHER)
        assert check(other) == [*before, "other"]
    assert writes == CONTENTS + 2  # the mark comes first, and goes last


def _give_up_killed(desk: IngestService, writes: int) -> bool:
    assert isinstance(desk.objects, Dying)
    desk.objects.left = writes
    try:
        desk.depository.abandon(ARK, KEY)
    except Killed:
        return True
    finally:
        desk.objects.left = None
    return False


def asleep(
    tmp_path: Path, is_new: bool, work: Callable[[IngestService], Callable[[Depository], None]]
) -> Iterator[tuple[IngestService, Sleeper]]:
    """For each step of some work on what a killed deposit has left: whoever sleeps before it."""
    for step in count(1):
        place = str(tmp_path / str(step) / "root")
        desk = killed(tmp_path, lambda _: place, str(step), is_new=is_new, writes=CONTENTS - 1)  # noqa: B023
        sleeper = Sleeper(desk, step, work(desk))
        if sleeper.is_over:
            assert step > 8
            return
        yield desk, sleeper


def _giving_up(_: IngestService) -> Callable[[Depository], None]:
    return lambda depository: depository.abandon(ARK, KEY)


def _storing(desk: IngestService) -> Callable[[Depository], None]:
    return lambda depository: _deposit(desk, depository)


def _deposit(desk: IngestService, depository: Depository) -> None:
    files = [desk.new_file(name, content) for name, content in DEPOSIT.items()]
    depository.store(ARK, KEY, files, update=False, who="ada", message="", now=1)


def test_a_late_deposit_is_complete_or_absent_after_abandon(tmp_path: Path, is_new: bool) -> None:
    before = [] if is_new else ["before"]
    found = []
    for desk, sleeper in asleep(tmp_path, is_new, _storing):
        desk.depository.abandon(ARK, KEY)
        check(desk)
        sleeper.wake()
        made = check(desk)
        assert made in (before, [*before, KEY])
        assert isinstance(sleeper.refusal, Conflict) == (made == before)
        found.append(made)
    assert before in found
    assert [*before, KEY] in found


def test_a_late_abandon_keeps_a_completed_deposit(tmp_path: Path, is_new: bool) -> None:
    before = [] if is_new else ["before"]
    for desk, sleeper in asleep(tmp_path, is_new, _giving_up):
        refusal = None
        try:
            _deposit(desk, desk.depository)
        except Conflict as conflict:
            refusal = conflict
        sleeper.wake()
        assert sleeper.refusal is None
        made = check(desk)
        assert made == [*before, KEY] or (made == before and refusal is not None)


def test_a_late_abandon_keeps_other_deposits(tmp_path: Path, is_new: bool) -> None:
    before = [] if is_new else ["before"]
    for desk, sleeper in asleep(tmp_path, is_new, _giving_up):
        desk.deposit("other", OTHER)
        sleeper.wake()
        assert sleeper.refusal is None
        assert check(desk) == [*before, "other"]


def test_two_concurrent_abandons_are_harmless(tmp_path: Path, is_new: bool) -> None:
    before = [] if is_new else ["before"]
    for desk, sleeper in asleep(tmp_path, is_new, _giving_up):
        desk.depository.abandon(ARK, KEY)
        sleeper.wake()
        assert sleeper.refusal is None
        assert check(desk) == before


def test_lost_content_prevents_the_announcement(tmp_path: Path) -> None:
    desk = killed(
        tmp_path, lambda _: str(tmp_path / "a" / "root"), "a", is_new=True, writes=CONTENTS + 1
    )
    lost = next(entry.key for entry in desk.objects.list() if entry.key.endswith("producer/new"))
    Objects.open(str(desk.folder)).delete(lost)
    for refused in (
        lambda: desk.deposit("other", OTHER),
        lambda: desk.depository.abandon(ARK, "x"),
    ):
        with pytest.raises(Conflict, match="names missing content"):
            refused()
    desk.depository.abandon(ARK, KEY)
    desk.deposit("other", OTHER)
    assert check(desk) == ["other"]


def test_a_mark_that_came_too_late_goes_with_the_next_try(tmp_path: Path, place: Place) -> None:
    desk = killed(tmp_path, place, "a", is_new=True, writes=CONTENTS)
    desk.deposit("other", OTHER)
    desk.objects.put(abandoned_mark(f"{object_root(ARK)}/v1", KEY), b"")
    desk.depository.abandon(ARK, KEY)
    assert check(desk) == ["other"]
