"""OCFL objects whose writers are killed between any two writes, or meet at one version."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import Conflict, NotFound
from penstock.ingest.archive.ocfl.inventory import NewFile, object_root
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.objects import Objects
from tests.contract.ocfl_desk import ARK, NOW, Files, IngestService, open_desk


class Killed(Exception):
    pass


class Dying(Objects):
    """Dies instead of doing the write with this number."""

    left: int | None = None

    def put(self, key: str, *args: Any, **options: Any) -> None:
        self._count()
        super().put(key, *args, **options)

    def delete(self, key: str) -> None:
        self._count()
        super().delete(key)

    def _count(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed


BEFORE: Files = {"producer/old": b"old", "producer/keep": b"keep"}
DEPOSIT: Files = {"producer/old": b"newer", "producer/new": b"new", "empty": b""}
WRITES_OF_A_VERSION = 7


class Scene:
    """An object that a deposit, killed at some write, leaves behind."""

    def __init__(self, tmp_path: Path, *, is_first: bool, writes: int) -> None:
        tmp_path.mkdir()
        objects = Dying.open(str(tmp_path / "root"))
        self.desk = open_desk(tmp_path, objects)
        self.is_first = is_first
        self.before = {} if is_first else BEFORE
        if not is_first:
            self.desk.deposit("before", BEFORE)
        objects.left = writes
        with pytest.raises(Killed):
            self.desk.deposit("killed", DEPOSIT)
        objects.left = None


def _scenes(tmp_path: Path) -> list[Scene]:
    scenes = []
    for is_first in (True, False):
        writes = WRITES_OF_A_VERSION + is_first
        for n in range(writes):
            scenes.append(Scene(tmp_path / f"{is_first}-{n}", is_first=is_first, writes=n))
    return scenes


def test_the_scenes_are_all_there_are(tmp_path: Path) -> None:
    for is_first in (True, False):
        writes = WRITES_OF_A_VERSION + is_first
        with pytest.raises(pytest.fail.Exception):
            Scene(tmp_path / str(is_first), is_first=is_first, writes=writes)


def test_a_killed_deposit_is_done_again(tmp_path: Path) -> None:
    for scene in _scenes(tmp_path):
        stored = scene.desk.deposit("killed", DEPOSIT)
        assert stored.version == (1 if scene.is_first else 2)
        assert len(scene.desk.depository.read(ARK).versions) == stored.version
        assert scene.desk.content() == DEPOSIT
        assert scene.is_first or scene.desk.content(version=1) == BEFORE
        scene.desk.check(ARK)


def test_readers_see_the_version_before_or_the_new_one(tmp_path: Path) -> None:
    for scene in _scenes(tmp_path):
        try:
            content = scene.desk.content()
        except NotFound:
            assert scene.is_first
        else:
            assert content in (scene.before, DEPOSIT)


def test_another_deposit_follows_a_killed_one(tmp_path: Path) -> None:
    """The killed version is there if it was decided, and not at all if it was not."""
    after = {"producer/new": b"new", "producer/old": b"other", "more": b"more"}
    decided = set()
    for scene in _scenes(tmp_path):
        stored = scene.desk.deposit("after", after)
        versions = scene.desk.depository.read(ARK).versions.values()
        keys = [version.key for version in versions]
        before = [] if scene.is_first else ["before"]
        assert keys in ([*before, "after"], [*before, "killed", "after"])
        assert scene.desk.content() == after
        if "killed" in keys:
            assert scene.desk.content(version=stored.version - 1) == DEPOSIT
        scene.desk.check(ARK)
        again = scene.desk.deposit("killed", DEPOSIT)
        assert again.version == (stored.version - 1 if "killed" in keys else stored.version + 1)
        scene.desk.check(ARK)
        decided.add("killed" in keys)
    assert decided == {True, False}


def _exists(desk: IngestService) -> bool:
    try:
        desk.depository.read(ARK)
    except NotFound:
        return False
    return True


def test_content_of_a_killed_deposit_is_reused_if_good(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "scene", is_first=True, writes=3)
    [content] = (scene.desk.folder / object_root(ARK) / "v1" / "content").iterdir()
    good, wrong = content / "producer" / "new", content / "producer" / "old"
    wrong.write_bytes(b"NEWER")
    at = good.stat().st_mtime_ns
    scene.desk.deposit("killed", DEPOSIT)
    assert good.stat().st_mtime_ns == at
    assert wrong.read_bytes() == b"newer"
    scene.desk.check(ARK)


class _Meeting(Objects):
    """Lets another deposit decide the same version just before this one does."""

    other: NewFile | None = None
    other_key = ""

    def put(self, key: str, *args: Any, **options: Any) -> None:
        if self.other and key.endswith("v1/inventory.json"):
            other, self.other = self.other, None
            Depository(self).store(
                ARK, self.other_key, [other], update=False, who="x", message="", now=NOW
            )
        super().put(key, *args, **options)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    objects = _Meeting.open("memory://")
    desk = open_desk(tmp_path, objects)
    objects.other, objects.other_key = desk.new_file("a", b"other"), "key-2"
    with pytest.raises(Conflict, match="another deposit is making version 1 of ark:/99999/fk4abc"):
        desk.deposit("key-1", {"a": b"mine"})
    assert desk.depository.read(ARK).versions["v1"].key == "key-2"


def test_one_deposit_done_by_two_at_once_is_one_version(tmp_path: Path) -> None:
    objects = _Meeting.open("memory://")
    desk = open_desk(tmp_path, objects)
    objects.other, objects.other_key = desk.new_file("a", b"same"), "key-1"
    stored = desk.deposit("key-1", {"a": b"same"})
    assert (stored.version, stored.is_new) == (1, False)
    assert desk.content() == {"a": b"same"}
    assert desk.depository.verify(ARK) == []


DEPOSITOR = """
import hashlib, sys
from pathlib import Path
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.archive.ocfl.inventory import NewFile
from penstock.objects import Objects

class Telling(Objects):
    def put(self, key, *args, **options):
        print(key, flush=True)
        super().put(key, *args, **options)

work, ark, first = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
depository = Depository(Telling.open(str(work / "root")))

def new_file(name, content):
    path = work / hashlib.sha256(name.encode()).hexdigest()
    path.write_bytes(content)
    return NewFile(name, path, hashlib.sha512(content).hexdigest(), len(content))

for n in range(first, 1000):
    content = b"%d" % n * 300_000
    files = [new_file("a", content), new_file(f"b/{n}", content + b"b")]
    depository.store(ark, f"key-{n}", files, update=True, who="x", message="", now=0)
"""


def test_kill_9_again_and_again(tmp_path: Path) -> None:
    """Each round kills a real process at another write; the deposits before it are all there."""
    open_desk(tmp_path)
    done = 0
    for lines in (1, 2, 5, 6, 10, 13, 17, 20):
        command = [sys.executable, "-c", DEPOSITOR, str(tmp_path), ARK, str(done)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            seen = [process.stdout.readline() for _ in range(lines)]
            process.send_signal(signal.SIGKILL)
        assert all(seen)
        desk = open_desk(tmp_path)
        versions = desk.depository.read(ARK).versions if _exists(desk) else {}
        done = len(versions)
        content = b"%d" % done * 300_000
        desk.deposit(f"key-{done}", {"a": content, f"b/{done}": content + b"b"}, update=True)
        keys = [version.key for version in desk.depository.read(ARK).versions.values()]
        assert keys == [f"key-{n}" for n in range(done + 1)]
        done = len(keys)
        desk.check(ARK)
    assert done > 8
