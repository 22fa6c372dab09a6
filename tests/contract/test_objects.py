"""The contract of object stores, on a folder and in memory, and the extras of folders."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.clock import SECOND, system_clock
from penstock.errors import Conflict, Invalid, NotFound, TooLarge, Unavailable
from penstock.objects import Objects

MIB = 1024 * 1024


@pytest.fixture(params=["folder", "file URL", "memory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    place = tmp_path / "the store"
    urls = {"folder": str(place), "file URL": place.as_uri(), "memory": "memory://"}
    return Objects.open(urls[request.param])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def _keys(objects: Objects, prefix: str = "") -> list[str]:
    return sorted(entry.key for entry in objects.list(prefix))


def test_get_returns_what_put_stored(objects: Objects, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"from a file")
    objects.put("a/bytes", b"from bytes")
    objects.put("a/file", source)
    objects.put("a/chunks", iter([b"from ", b"chunks"]))
    objects.put("a/nothing", b"")
    objects.put("a/no chunks", iter(()))
    assert objects.get("a/bytes") == b"from bytes"
    assert objects.get("a/file") == b"from a file"
    assert objects.get("a/chunks") == b"from chunks"
    assert objects.get("a/nothing") == objects.get("a/no chunks") == b""
    assert objects.size("a/chunks") == len(b"from chunks")
    assert objects.size("a/nothing") == 0


def test_a_put_overwrites(objects: Objects) -> None:
    objects.put("key", b"first and longer")
    objects.put("key", b"second")
    assert objects.get("key") == b"second"


def test_missing_object_is_not_found(objects: Objects) -> None:
    objects.put("a/b", b"x")
    for key in ("nothing", "a", "a/b/c"):
        assert objects.size(key) is None
        assert not objects.exists(key)
    with pytest.raises(NotFound, match="there is no object nothing in "):
        objects.get("nothing")
    with pytest.raises(NotFound), objects.get_stream("nothing"):
        pass
    objects.delete("nothing")
    assert _keys(objects, "nothing") == []


def test_large_objects_are_streamed(objects: Objects) -> None:
    """More than one part goes in, and comes out in order."""
    chunk = os.urandom(MIB)
    objects.put("large", (chunk for _ in range(40)), size=40 * MIB)
    assert objects.size("large") == 40 * MIB
    with objects.get_stream("large") as stream:
        found = b"".join(stream)
    assert found == chunk * 40


def test_a_folder_is_read_in_chunks(folder: Path) -> None:
    objects = Objects.open(str(folder))
    objects.put("large", b"x" * (10 * MIB + 1))
    with objects.get_stream("large") as stream:
        sizes = [len(chunk) for chunk in stream]
    assert sum(sizes) == 10 * MIB + 1
    assert max(sizes) <= 2 * MIB


def test_an_object_is_listed_with_its_size_and_time(objects: Objects) -> None:
    before = system_clock()
    objects.put("a/b/c", b"123")
    objects.put("a/bc", b"12")
    objects.put("z", b"1")
    (entry,) = objects.list("a/b")
    assert (entry.key, entry.size) == ("a/b/c", 3)
    assert before - 5 * SECOND <= entry.modified <= system_clock() + 5 * SECOND
    assert _keys(objects) == ["a/b/c", "a/bc", "z"]


def test_the_folders_in_a_folder(objects: Objects) -> None:
    for key in ("a/b/c", "a/b/d", "a/bc/d/e", "a/f", "ab/c"):
        objects.put(key, b"1")
    assert sorted(objects.folders("a")) == ["b", "bc"]
    assert list(objects.folders("a/f")) == list(objects.folders("z")) == []


def test_a_deleted_object_is_gone(objects: Objects) -> None:
    objects.put("a/b", b"x")
    objects.delete("a/b")
    assert not objects.exists("a/b")
    assert _keys(objects) == []


def test_keys_with_spaces_accents_and_signs(objects: Objects) -> None:
    keys = ["a b/ü ñ.txt", "100%", "%41", "ark%3a%2f1", "日本", "q?x=1#f", "e\u0301", "x#y", "*[1]"]
    for key in keys:
        objects.put(key, key.encode())
    assert _keys(objects) == sorted(keys)
    assert [objects.get(key) for key in keys] == [key.encode() for key in keys]


@pytest.mark.parametrize(
    "key",
    [
        "", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "../a", "a\nb", "a\x00", "a\x7f",
        "a#1", "a/b#22", "\ud800", "x" * 256, "/".join(["abcdefghi"] * 103),
    ],
)  # fmt: skip
def test_invalid_keys_are_refused(objects: Objects, key: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: objects.put(key, b""),
        lambda: objects.get(key),
        lambda: objects.size(key),
        lambda: objects.delete(key),
    ]
    for call in calls:
        with pytest.raises(Invalid, match="cannot be the key of an object"):
            call()


def test_longest_keys_are_accepted(objects: Objects) -> None:
    long = "/".join(["x" * 255, "y" * 255, "ü" * 127, "z" * 250])
    objects.put(long, b"1")
    assert _keys(objects) == [long]


def test_if_absent_never_overwrites(objects: Objects, tmp_path: Path) -> None:
    objects.put("key", b"first", if_absent=True)
    source = tmp_path / "source"
    source.write_bytes(b"third")
    for again in (b"second", source, iter([b"fourth"])):
        with pytest.raises(Conflict, match=r"key in .* exists already"):
            objects.put("key", again, if_absent=True)
    assert objects.get("key") == b"first"
    assert _keys(objects) == ["key"]


def test_one_of_many_writers_creates_a_key(objects: Objects) -> None:
    def create(writer: int) -> int | None:
        try:
            objects.put("deep/in/folders/key", b"%d" % writer, if_absent=True)
        except Conflict:
            return None
        return writer

    with ThreadPoolExecutor(8) as pool:
        winners = [writer for writer in pool.map(create, range(40)) if writer is not None]
    assert len(winners) == 1
    assert objects.get("deep/in/folders/key") == b"%d" % winners[0]


def test_concurrent_writers_and_deleters(objects: Objects) -> None:
    """A deletion removes empty folders, also one that a writer has just made."""

    def work(worker: int) -> None:
        for n in range(25):
            objects.put(f"shared/folder/{worker}", b"%d" % n)
            if n < 24:
                objects.delete(f"shared/folder/{worker}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert _keys(objects) == [f"shared/folder/{worker}" for worker in range(4)]


def test_an_iterable_that_fails_stores_nothing(objects: Objects) -> None:
    def failing(size: int) -> Iterator[bytes]:
        yield b"x" * size
        raise Invalid("the bytes are wrong")

    for size in (1, 20 * MIB):
        with pytest.raises(Invalid, match="the bytes are wrong"):
            objects.put("key", failing(size))
    assert not objects.exists("key")
    objects.put("key", b"old")
    with pytest.raises(Invalid, match="the bytes are wrong"):
        objects.put("key", failing(1))
    assert objects.get("key") == b"old"


def test_missing_source_file_is_named(objects: Objects, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"the file .*/gone to be stored does not exist"):
        objects.put("key", tmp_path / "gone")
    assert not objects.exists("key")


def test_check_passes_a_store_that_creates_once(objects: Objects) -> None:
    objects.check()
    assert _keys(objects) == []


class _Careless(Objects):
    """A store that accepts the condition and ignores it, as some S3-compatible ones do."""

    def put(self, key: str, data: object, *, if_absent: bool = False, size: object = None) -> None:
        super().put(key, data)  # type: ignore[arg-type]


def test_check_refuses_a_store_that_creates_twice() -> None:
    careless = _Careless.open("memory://")
    with pytest.raises(Invalid, match="overwrites a key that must be created only once"):
        careless.check()
    assert _keys(careless) == []


def test_only_small_objects_are_created_conditionally_without_a_folder() -> None:
    objects = Objects.open("memory://")
    with pytest.raises(TooLarge, match="too large to be created only if it is absent"):
        objects.put("key", (b"x" * MIB for _ in range(65)), if_absent=True)
    assert not objects.exists("key")


@pytest.mark.parametrize("url", ["", "ftp://host/x", "http://host/x", "file://host/x", "redis://h"])
def test_a_url_that_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        Objects.open(url)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Invalid, match="cannot be opened"):
        Objects.open(str(tmp_path / "file" / "below"))


def test_a_bucket_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "not-in-messages",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    objects = Objects.open("s3://bucket/prefix")
    with pytest.raises(Unavailable, match="cannot read key in s3://bucket/prefix") as refusal:
        objects.get("key")
    assert "not-in-messages" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_cannot_be_a_folder_too(folder: Path) -> None:
    objects = Objects.open(str(folder))
    objects.put("a", b"x")
    objects.put("b/c", b"x")
    with pytest.raises(Conflict, match="a part of the key is an object"):
        objects.put("a/b", b"y")
    with pytest.raises(Conflict, match="the key is a folder"):
        objects.put("b", b"y")
    assert _keys(objects) == ["a", "b/c"]


def test_concurrently_removed_folder_is_created_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = Objects.open(str(folder))
    make = Path.mkdir
    taken: list[Path] = []

    def mkdir(path: Path, *given: Any, **options: Any) -> None:
        if path not in taken:
            taken.append(path)
            raise FileExistsError(str(path))
        make(path, *given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", mkdir)
        objects.put("a/b/c", b"x")
    assert taken == [folder / "a", folder / "a" / "b"]
    assert objects.get("a/b/c") == b"x"


def test_a_deletion_leaves_no_empty_folder(folder: Path) -> None:
    objects = Objects.open(str(folder))
    objects.put("a/b/c", b"x")
    objects.put("a/d", b"x")
    objects.delete("a/b/c")
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert [path.name for path in (folder / "a").iterdir()] == ["d"]


ODD_NAMES = [b"report#7", b"new\nline", b"no text \xff", b"del\x7f"]


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_file_without_a_valid_key_hides_no_other(folder: Path, odd: bytes) -> None:
    """Other programs may write files with any names."""
    objects = Objects.open(str(folder))
    objects.put("a/b/c", b"x")
    objects.put("d#7/e", b"x")
    path = os.fsencode(folder) + b"/a/b/" + odd
    with open(path, "wb") as file:
        file.write(b"y")
    assert _keys(objects) == ["a/b/c", "d#7/e"]
    assert _keys(objects, "a") == ["a/b/c"]
    [found] = objects.nameless("a")
    assert os.fsencode(found.path) == path
    assert "cannot be the name of an object: it " in found.words
    found.words.encode()  # it can be written anywhere
    assert list(objects.nameless("d#7")) == list(Objects.open("memory://").nameless()) == []


def test_links_are_followed_without_cycles(folder: Path) -> None:
    objects = Objects.open(str(folder))
    objects.put("real/x", b"x")
    for name, target in {"link": "real", "real/up": "..", "no": "nowhere", "me": "me"}.items():
        (folder / name).symlink_to(target)
    assert _keys(objects) == ["link/x", "real/x"]


class _Call(NamedTuple):
    name: str
    path: str


def test_folder_write_returns_after_the_flush(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is flushed before it gets its name; its folders are flushed after it."""
    objects = Objects.open(str(folder))
    calls: list[_Call] = []
    fsync, replace, link = os.fsync, Path.replace, os.link

    def seen_fsync(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        calls.append(_Call("flush", "file" if path.is_file() else str(path.relative_to(folder))))

    def seen_replace(path: Path, target: Path) -> Path:
        calls.append(_Call("rename", str(target.relative_to(folder))))
        return replace(path, target)

    def seen_link(path: Path, target: Path) -> None:
        calls.append(_Call("link", str(target.relative_to(folder))))
        link(path, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(Path, "replace", seen_replace)
    monkeypatch.setattr(os, "link", seen_link)
    objects.put("a/b/c", b"x")
    assert calls == [("flush", "file"), ("flush", "."), ("flush", "a"),
                     ("rename", "a/b/c"), ("flush", "a/b")]  # fmt: skip
    calls.clear()
    objects.put("a/b/d", b"x", if_absent=True)
    assert calls == [("flush", "file"), ("link", "a/b/d"), ("flush", "a/b")]


def test_killed_writer_leaves_no_listed_file(folder: Path) -> None:
    objects = Objects.open(str(folder))
    objects.put("a/b", b"x")
    left = [folder / ".put-0123#1", folder / ".put-4567#1"]
    for path in left:
        path.write_bytes(b"half")
    two_days_ago = system_clock() // SECOND - 2 * 86400
    os.utime(left[0], (two_days_ago, two_days_ago))
    assert _keys(Objects.open(str(folder))) == ["a/b"]
    assert [path.exists() for path in left] == [False, True]


def test_a_full_disk_is_unavailable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = Objects.open(str(folder))

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(Unavailable, match="the disk is full; free some space, and try again"):
        objects.put("key", b"x")
    monkeypatch.undo()
    assert _keys(objects) == []
    assert list(folder.iterdir()) == []
