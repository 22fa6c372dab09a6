"""No archive may escape its folder, explode, or be seen half-unpacked."""

import errno
import gzip
import io
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.errors import Invalid, Unavailable
from penstock.ingest.intake.archives import ArchiveLimits, discard, unpack

LIMITS = ArchiveLimits(files_max=100, bytes_max=64 << 20, ratio_max=1000)
FILES = {"a.txt": b"alpha", "deep/er/b.bin": bytes(range(256)) * 5000, "deep/empty": b""}
UNICODE = {"Grüße aus Köln/日本 語.txt": b"unicode"}
TAR_MODES = ["w:", "w:gz", "w:bz2", "w:xz"]

Make = Callable[[Path, dict[str, bytes]], None]


def make_zip(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def make_tar(path: Path, files: dict[str, bytes], mode: str = "w:") -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def tar_of(path: Path, *infos: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as archive:
        for info in infos:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def refused(archive: Path, limits: ArchiveLimits = LIMITS) -> str:
    """The message with which the archive is refused; nothing of it is left."""
    before = sorted(archive.parent.rglob("*"))
    with pytest.raises(Invalid) as refusal:
        unpack(archive, archive.parent / "out", limits)
    assert sorted(archive.parent.rglob("*")) == before
    assert archive.name in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize("files", [FILES, UNICODE])
@pytest.mark.parametrize("mode", ["zip", *TAR_MODES])
def test_archives_are_recognized_by_content(
    tmp_path: Path, mode: str, files: dict[str, bytes]
) -> None:
    archive = tmp_path / "named.whatever"
    make_zip(archive, files) if mode == "zip" else make_tar(archive, files, mode)
    found = unpack(archive, tmp_path / "in" / "out", LIMITS)
    assert [path.as_posix() for path in found] == sorted(files)
    assert contents(tmp_path / "in" / "out") == files
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["out"]


@pytest.mark.parametrize("style", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tars_of_every_style_with_folders_and_long_names(tmp_path: Path, style: int) -> None:
    (tmp_path / "source" / ("f" * 60) / "empty").mkdir(parents=True)
    name = tmp_path / "source" / ("f" * 60) / ("n" * 90)
    name.write_bytes(b"long")
    with tarfile.open(tmp_path / "a.tar", "w", format=style) as archive:
        archive.add(tmp_path / "source", arcname=".")
    unpack(tmp_path / "a.tar", tmp_path / "out", LIMITS)
    assert contents(tmp_path / "out") == {f"{'f' * 60}/{'n' * 90}": b"long"}
    assert (tmp_path / "out" / ("f" * 60) / "empty").is_dir()


def test_a_folder_may_end_in_a_blank(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"folder /": b"", "folder /a": b"a"})
    unpack(tmp_path / "a.zip", tmp_path / "out", LIMITS)
    assert contents(tmp_path / "out") == {"folder /a": b"a"}


def test_unpacking_twice_does_no_harm(tmp_path: Path) -> None:
    archive, target = tmp_path / "a.zip", tmp_path / "out"
    make_zip(archive, FILES)
    first = unpack(archive, target, LIMITS)
    made = (target / "a.txt").stat()
    archive.unlink()
    assert unpack(archive, target, LIMITS) == first
    assert (target / "a.txt").stat() == made


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", FILES)
    (tmp_path / ".out.killed.new").mkdir()
    (tmp_path / ".out.killed.new" / "half").write_bytes(b"half")
    (tmp_path / "out").mkdir()
    unpack(tmp_path / "a.zip", tmp_path / "out", LIMITS)
    assert contents(tmp_path / "out") == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "out"]


def test_discarded_files_are_removed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_zip(tmp_path / "a.zip", FILES)
    unpack(tmp_path / "a.zip", tmp_path / "out", LIMITS)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        discard(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    unpack(tmp_path / "a.zip", tmp_path / "out", LIMITS)
    assert contents(tmp_path / "out") == FILES
    discard(tmp_path / "out")
    discard(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_the_slower_of_two_processes_leaves_the_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_zip(tmp_path / "a.zip", FILES)
    target = tmp_path / "out"

    def other_is_faster() -> None:
        target.mkdir()
        (target / "a.txt").write_bytes(b"alpha")

    monkeypatch.setattr(os, "sync", other_is_faster)
    assert unpack(tmp_path / "a.zip", target, LIMITS) == [Path("a.txt")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "out"]


def test_files_get_plain_rights(tmp_path: Path) -> None:
    info = tarfile.TarInfo("setuid")
    info.mode = 0o6777
    folder = tarfile.TarInfo("folder")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o7000
    tar_of(tmp_path / "a.tar", folder, info)
    before = os.umask(0o077)
    try:
        unpack(tmp_path / "a.tar", tmp_path / "out", LIMITS)
    finally:
        os.umask(before)
    made = (tmp_path / "out" / "setuid").stat()
    assert stat.S_IMODE(made.st_mode) == 0o644
    assert made.st_uid == os.geteuid()


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/etc/passwd", "is absolute"),
        ("../evil", "leaves its folder"),
        ("a/../../evil", "leaves its folder"),
        ("a/..", "leaves its folder"),
        ("..\\evil", "backslash"),
        ("C:\\evil", "backslash"),
        ("a\x1bb", "control character"),
        ("a//b", "nothing between two slashes"),
        (".", "'.'"),
        ("a ", "ends with a blank"),
    ],
)
def test_names_that_leave_the_folder(tmp_path: Path, make: Make, name: str, reason: str) -> None:
    make(tmp_path / "a", {"good": b"good", name: b"evil"})
    message = refused(tmp_path / "a")
    assert reason in message
    assert repr(name) in message
    assert not (tmp_path.parent / "evil").exists()


def test_a_name_with_a_nul_is_refused_in_a_zip(tmp_path: Path) -> None:
    make_zip(tmp_path / "a", {"good.txt_.exe": b"evil"})
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(data.replace(b"good.txt_", b"good.txt\0"))
    assert "control character" in refused(tmp_path / "a")


@pytest.mark.parametrize("make", [make_zip, make_tar])
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a", "./a"], "is there twice"),
        (["a", "a/b"], "a file and a folder"),
        (["a/b", "a"], "a file and a folder"),
        (["a/b/c", "a"], "a file and a folder"),
    ],
)
def test_names_that_collide(tmp_path: Path, make: Make, names: list[str], reason: str) -> None:
    make(tmp_path / "a.x", dict.fromkeys(names, b"x"))
    message = refused(tmp_path / "a.x")
    assert reason in message
    assert repr(names[-1]) in message


def test_a_name_that_is_there_twice(tmp_path: Path) -> None:
    tar_of(tmp_path / "a.tar", tarfile.TarInfo("same"), tarfile.TarInfo("same"))
    assert "'same' is there twice" in refused(tmp_path / "a.tar")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (tarfile.SYMTYPE, "is a link"),
        (tarfile.LNKTYPE, "is a link"),
        (tarfile.CHRTYPE, "is a device"),
        (tarfile.BLKTYPE, "is a device"),
        (tarfile.FIFOTYPE, "is a device"),
    ],
)
def test_links_and_devices_in_a_tar(tmp_path: Path, kind: bytes, reason: str) -> None:
    info = tarfile.TarInfo("thing")
    info.type, info.linkname = kind, "/etc/passwd"
    message = refused(tar_of(tmp_path / "a.tar", tarfile.TarInfo("good"), info))
    assert f"'thing' {reason}" in message


@pytest.mark.parametrize(
    ("mode", "reason"),
    [(stat.S_IFLNK, "is a link"), (stat.S_IFIFO, "is a device"), (stat.S_IFCHR, "is a device")],
)
def test_links_and_devices_in_a_zip(tmp_path: Path, mode: int, reason: str) -> None:
    info = zipfile.ZipInfo("thing")
    info.external_attr = (mode | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    assert f"'thing' {reason}" in refused(tmp_path / "a.zip")


def test_an_encrypted_zip(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"secret": b"x"})
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    assert "'secret' is encrypted" in refused(tmp_path / "a.zip")


def test_a_zip_that_is_packed_as_only_windows_does(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"a.txt": b"alpha"})
    packed = bytearray((tmp_path / "a.zip").read_bytes())
    for at in (8, packed.index(b"PK\x01\x02") + 10):
        packed[at] = 9
    (tmp_path / "a.zip").write_bytes(packed)
    assert "is not supported; pack it in another way" in refused(tmp_path / "a.zip")


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_too_many_members(tmp_path: Path, make: Make) -> None:
    files = {str(number): b"" for number in range(101)}
    make(tmp_path / "a.x", files)
    assert "'100' is more than the 100th member" in refused(tmp_path / "a.x")
    del files["100"]
    make(tmp_path / "b.x", files)
    assert len(unpack(tmp_path / "b.x", tmp_path / "out", LIMITS)) == 100


def test_a_list_of_members_that_fills_the_memory(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {f"{number}/{'x' * 200}": b"" for number in range(1000)})
    limits = ArchiveLimits(files_max=10)
    assert "lists more than 10 members" in refused(tmp_path / "a.zip", limits)


@pytest.mark.parametrize("mode", ["zip", *TAR_MODES])
def test_a_total_that_is_too_large(tmp_path: Path, mode: str) -> None:
    archive, half = tmp_path / "a.x", os.urandom(200 << 10)
    files = {"a": half, "b": half}
    make_zip(archive, files) if mode == "zip" else make_tar(archive, files, mode)
    message = refused(archive, ArchiveLimits(bytes_max=(400 << 10) - 1))
    assert "more than 409,599 bytes at 'b'" in message
    unpack(archive, tmp_path / "out", ArchiveLimits(bytes_max=400 << 10))


@pytest.mark.parametrize("mode", ["zip", "w:gz", "w:bz2", "w:xz"])
def test_a_bomb_is_stopped_by_its_ratio(tmp_path: Path, mode: str) -> None:
    archive, bomb = tmp_path / "a.x", {"bomb": bytes(40 << 20)}
    make_zip(archive, bomb) if mode == "zip" else make_tar(archive, bomb, mode)
    message = refused(archive, ArchiveLimits(ratio_max=100))
    assert "more than 100 times its size" in message


def test_a_zip_that_lies_about_a_size_is_stopped_while_it_streams(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"bomb": bytes(40 << 20)})
    data = (tmp_path / "a.zip").read_bytes()
    lie = data.replace((40 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lie != data
    (tmp_path / "a.zip").write_bytes(lie)
    assert "cannot be read" in refused(tmp_path / "a.zip")


def test_an_archive_in_an_archive_is_a_file(tmp_path: Path) -> None:
    make_zip(tmp_path / "inner.zip", {"../evil": b"evil"})
    inner = (tmp_path / "inner.zip").read_bytes()
    make_zip(tmp_path / "outer.zip", {"inner.zip": inner})
    assert unpack(tmp_path / "outer.zip", tmp_path / "out", LIMITS) == [Path("inner.zip")]


def test_a_header_that_fills_the_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 20 << 20
    path = tmp_path / "a.tgz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    assert "a header has 20,971,520 bytes" in refused(path)


def test_skipped_bytes_are_counted(tmp_path: Path) -> None:
    make_tar(tmp_path / "plain.tar", {"a": b"a"})
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress((tmp_path / "plain.tar").read_bytes() + bytes(80 << 20)))
    assert "more than 67,108,864 bytes" in refused(path)


@pytest.mark.parametrize("mode", ["zip", *TAR_MODES])
def test_an_archive_that_is_cut_off(tmp_path: Path, mode: str) -> None:
    whole = tmp_path / "whole"
    files = {str(number): os.urandom(1000) for number in range(5)}
    make_zip(whole, files) if mode == "zip" else make_tar(whole, files, mode)
    data = whole.read_bytes()
    whole.unlink()
    for size in (1536, 3072, 4096):
        (tmp_path / "a.x").write_bytes(data[:size])
        assert "cannot be read" in refused(tmp_path / "a.x")


def test_a_zip_that_points_before_its_beginning(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"a": b"a"})
    data = bytearray((tmp_path / "a.zip").read_bytes())
    end = data.index(b"PK\x05\x06")
    data[end + 16 : end + 20] = (1000).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data)
    assert "cannot be read" in refused(tmp_path / "a.zip")


@pytest.mark.parametrize("data", [b"", b"hello", bytes(10_000), b"\x1f\x8b", b"\x1f\x8bjunk" * 99])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(data)
    assert refused(tmp_path / "a.zip")


def test_an_archive_without_files(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {})
    assert "has no files" in refused(tmp_path / "a.zip")
    make_tar(tmp_path / "a.tar", {})
    assert "has no files" in refused(tmp_path / "a.tar")


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    make_zip(tmp_path / "a.zip", FILES)
    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(Unavailable, match=f"no space left in {tmp_path}"):
        unpack(tmp_path / "a.zip", tmp_path / "out", LIMITS)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("mode", ["zip", *TAR_MODES])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(where=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_damaged_archive_is_unpacked_or_refused(
    tmp_path_factory: pytest.TempPathFactory, mode: str, where: list[tuple[float, int]]
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    archive = folder / "a.x"
    files = {"a.txt": b"alpha", "b/" + "n" * 120: bytes(range(256)) * 8}
    make_zip(archive, files) if mode == "zip" else make_tar(archive, files, mode)
    data = bytearray(archive.read_bytes())
    for place, value in where:
        data[int(place * len(data))] = value
    archive.write_bytes(data)
    try:
        unpack(archive, folder / "out", LIMITS)
    except Invalid:
        assert [path.name for path in folder.iterdir()] == ["a.x"]
    else:
        assert sorted(path.name for path in folder.iterdir()) == ["a.x", "out"]
