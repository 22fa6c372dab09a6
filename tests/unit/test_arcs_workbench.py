"""The folders of tasks: they go with their task, or with the next one if its process was killed."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.arcs.workload.files import task_folder

_HOLD = """
import sys
from penstock.arcs.workload.files import task_folder
with task_folder() as folder:
    (folder / "inputs").mkdir()
    (folder / "inputs" / "large").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all tasks of a machine have their folders."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def another_process(desk: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A process with a task under way, and the folder of that task."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD],
        env={"TMPDIR": str(desk)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_goes_when_the_next_task_begins(desk: Path) -> None:
    with another_process(desk) as (process, folder):
        process.kill()
    assert (folder / "inputs" / "large").exists()
    with task_folder() as mine:
        assert list(desk.iterdir()) == [mine]
    assert list(desk.iterdir()) == []


def test_what_others_work_in_stays(desk: Path) -> None:
    """In this process and in another; and what is no folder of a task is nobody's to remove."""
    (desk / "penstock-task-notes").write_text("mine")
    with task_folder() as first, another_process(desk) as (_, other), task_folder() as second:
        assert {first, other, second} < set(desk.iterdir())
        assert (other / "inputs" / "large").exists()
    assert [path.name for path in desk.iterdir()] == ["penstock-task-notes"]
