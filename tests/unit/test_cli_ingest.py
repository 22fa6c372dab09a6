"""What the commands of ingest decide by themselves: packing, words, pace, files of profiles."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from penstock.cli.formats import show_bytes
from penstock.cli.ingest.apply import read_profiles
from penstock.cli.ingest.start import read_stages
from penstock.cli.ingest.submit import Folder, read_digest
from penstock.cli.ingest.targets import Kind, Target, read_target
from penstock.cli.ingest.watch import (
    Count,
    Pace,
    PaceMeter,
    Snapshot,
    counts_line,
    is_over,
    jobs_line,
    pace_line,
    take_snapshot,
)
from penstock.errors import Conflict, Invalid, Malformed
from penstock.schema.ingest import PayloadType, ShownBatch, StateTally, SubmissionMode
from penstock.states import BatchState


def packed(path: Path) -> bytes:
    folder = Folder.of(path)
    content = b"".join(folder.chunks())
    assert len(content) == folder.size
    return content


def test_a_folder_is_packed_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b" / "é").mkdir(parents=True)
    (tmp_path / "nothing here").mkdir()
    files = {"b/é/x": b"x" * 1000, "a": b"", "b/y": b"y" * 512, f"b/{'long' * 40}": b"z"}
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    content = packed(tmp_path)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = archive.getmembers()
        assert [member.name for member in members] == sorted(files)
        for member in members:
            stream = archive.extractfile(member)
            assert stream is not None
            assert stream.read() == files[member.name]
            assert (member.uid, member.mode) == (0, 0o644)
    assert packed(tmp_path) == content


def test_what_is_no_file_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="has no files"):
        Folder.of(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to("/etc")
    with pytest.raises(Invalid, match="link is a link, and only files and folders"):
        Folder.of(tmp_path)
    (tmp_path / "in" / "link").unlink()
    os.mkfifo(tmp_path / "in" / "pipe")
    with pytest.raises(Invalid, match="pipe is not a file"):
        Folder.of(tmp_path)
    (tmp_path / "in" / "pipe").unlink()
    (tmp_path / "in" / "a\\b").touch()
    with pytest.raises(Invalid, match=r"rename it"):
        Folder.of(tmp_path)


def test_a_name_that_is_no_text_is_not_packed(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    with pytest.raises(Invalid, match="is not UTF-8; rename it"):
        Folder.of(tmp_path)


@pytest.mark.parametrize("body", [b"shorter"[:3], b"much longer than it was"])
def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "a").write_bytes(b"shorter")
    folder = Folder.of(tmp_path)
    (tmp_path / "a").write_bytes(body)
    with pytest.raises(Conflict, match="changed while it was packed"):
        list(folder.chunks())
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/hostname")
    with pytest.raises(Conflict, match="can no longer be read"):
        list(folder.chunks())


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["queue"], Target(Kind.QUEUE)),
        (["collection", "maps"], Target(Kind.COLLECTION, "maps")),
        (["collection", "bid0000000001"], Target(Kind.COLLECTION, "bid0000000001")),
        (["batch", "bid0000000001"], Target(Kind.BATCH, "bid0000000001")),
        (["bid0000000001"], Target(Kind.BATCH, "bid0000000001")),
        (["jid10000000001"], Target(Kind.JOB, "jid10000000001")),
    ],
)
def test_an_id_alone_shows_its_kind(words: list[str], target: Target) -> None:
    assert read_target(words, tuple(Kind)) == target


@pytest.mark.parametrize("words", [[], ["maps"], ["queue", "x"], ["batch"], ["bid1"], ["held"]])
def test_other_words_are_refused_with_those_that_can_be(words: list[str]) -> None:
    with pytest.raises(Invalid, match="write one of: queue, batch BATCH"):
        read_target(words, (Kind.QUEUE, Kind.BATCH))


def look(at: float, **counts: tuple[int, int]) -> Snapshot:
    return Snapshot(at, {state: Count(*count) for state, count in counts.items()})


def test_the_pace_is_that_of_the_last_half_minute() -> None:
    course = PaceMeter()
    assert course.add(look(0, pending=(10, 0))) == Pace(0, 0, None)
    half = course.add(look(10, downloading=(5, 500), completed=(5, 500)))
    assert (half.jobs, half.bytes) == (0.5, 50)
    assert half.seconds_left == 10
    for at in range(20, 61, 10):
        still = course.add(look(at, downloading=(5, 500), completed=(5, 500)))
    assert still == Pace(0, 0, None)


def test_the_time_left_is_that_of_the_slowest_stage() -> None:
    course = PaceMeter()
    course.add(look(0, pending=(20_000, 0)))
    pace = course.add(look(10, downloading=(15_000, 0), processing=(4_800, 0), completed=(200, 0)))
    assert pace.seconds_left == 19_800 * 10 / 200


def test_the_time_left_is_not_known_while_nothing_has_come_through_a_stage() -> None:
    course = PaceMeter()
    course.add(look(0, estimating=(2, 0)))
    assert course.add(look(10, downloading=(2, 9))).seconds_left is None
    assert course.add(look(20, processing=(1, 9), failed=(1, 0))).seconds_left == 20


def test_progress_in_words() -> None:
    seen = look(0, downloading=(2, 3_000_000), completed=(1, 1_500_000), failed=(1, 9))
    assert counts_line(seen) == "2 downloading, 1 completed, 1 failed"
    assert pace_line(seen, Pace(0.5, 2000, 7.4)) == (
        "1.5 MB of 4.5 MB, 2.0 KB/s, 0.5 jobs/s, about 7 s left"
    )
    assert counts_line(look(0)) == "no jobs"
    assert pace_line(look(0), Pace(0, 0, None)) == ""
    ended = look(0, completed=(1, 5))
    assert pace_line(ended, Pace(1, 1, 0)) == "5 B of 5 B"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (150_000, "150 KB"), (2.5e12, "2.5 TB")],
)
def test_bytes_are_in_the_unit_that_fits(size: float, text: str) -> None:
    assert show_bytes(size) == text


def shown_batch(status: BatchState, jobs: int, tally: dict[str, StateTally]) -> ShownBatch:
    kind, mode = PayloadType.FILE, SubmissionMode.ADD
    return ShownBatch(
        "b", "maps", status, "", "", "", "", kind, mode, None, jobs, tally, "", "", None
    )


@pytest.mark.parametrize(
    ("status", "states", "over"),
    [
        ("pending", {}, False),
        ("held", {}, True),
        ("processing", {"downloading": 1, "held": 1}, False),
        ("processing", {"completed": 1}, False),
        ("processing", {"held": 1, "completed": 1}, True),
        ("reporting", {"completed": 1}, False),
        ("failed", {"failed": 1, "notify": 1}, False),
        ("failed", {"failed": 1}, True),
        ("update-reporting", {"failed": 1}, False),
        ("completed", {"completed": 1}, True),
    ],
)
def test_a_batch_is_followed_while_it_moves(
    status: str, states: dict[str, int], over: bool
) -> None:
    tally = {state: StateTally(jobs, 0) for state, jobs in states.items()}
    batch = shown_batch(BatchState(status), 1, tally)
    assert is_over(batch, take_snapshot(batch, 0)) is over


def test_a_report_lists_deleted_jobs() -> None:
    def line(jobs: int, **states: int) -> str:
        tally = {state: StateTally(each, 0) for state, each in states.items()}
        batch = shown_batch(BatchState.PENDING, jobs, tally)
        return jobs_line(batch)

    assert line(0) == "none"
    assert line(2, completed=1, failed=1) == "2: 1 completed, 1 failed"
    assert line(3, failed=1) == "1: 1 failed; 2 deleted"
    assert line(3) == "none; 3 deleted"


def test_a_digest_is_read_as_people_write_it() -> None:
    assert read_digest(f"SHA256:{'AB' * 32}") == ("sha-256", "ab" * 32)
    assert read_digest(f"md5: {'0' * 32}") == ("md5", "0" * 32)
    assert read_digest(f"sha512/256:{'a' * 64}") == ("sha-512/256", "a" * 64)
    assert read_digest("Adler32:10001") == ("adler-32", "00010001")
    for text in ("ab12", "sha-3:ab", "md5:xyz", "md5:", "md5:00"):
        with pytest.raises(Invalid, match="write it like sha-256:HEX"):
            read_digest(text)


def test_stages_are_read_in_the_order_of_the_work() -> None:
    assert read_stages(" notify,pending ") == ("pending", "notify")
    assert "clean-up" in read_stages(None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "begin a table with: [NAME]"),
        ('dataset = "maps"', "dataset is outside a table"),
        ("[maps]\n", "`dataset`"),
        ('[maps]\ndataset = "m"\nkeepDays = 3', "did you mean keep_days?"),
        ('[maps]\ndataset = "m"\nmail = "a@x.org"', "`$.mail`"),
        ('[maps]\ndataset = "m"\nkeep_days = -1', "`$.keep_days`"),
        ('[maps]\ndataset = "m"\nplaces = ["ftp://x/"]', "[maps]: ftp://x/ may not be fetched"),
        ('["a/b"]\ndataset = "m"', "cannot name a collection"),
        ("maps", "is not TOML"),
    ],
)
def test_a_file_of_profiles_with_a_fault_says_where(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises((Invalid, Malformed)) as refused:
        read_profiles(file)
    assert str(file) in str(refused.value)
    assert told in str(refused.value)
