"""The folders of tasks are removed after the task, or by the next one if its process died."""

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
    """The folder in which all tasks of a machine have theirs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def another_process(desk: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A process with a running task, and the folder of that task."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD],
        env={"TMPDIR": str(desk)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_next_task_removes_folders_of_killed_processes(desk: Path) -> None:
    with another_process(desk) as (process, folder):
        process.kill()
    assert (folder / "inputs" / "large").exists()
    with task_folder() as mine:
        assert list(desk.iterdir()) == [mine]
    assert list(desk.iterdir()) == []


def test_folders_in_use_stay(desk: Path) -> None:
    """In this process and in another; other folders stay too."""
    (desk / "penstock-task-notes").write_text("mine")
    with task_folder() as first, another_process(desk) as (_, other), task_folder() as second:
        assert {first, other, second} < set(desk.iterdir())
        assert (other / "inputs" / "large").exists()
    assert [path.name for path in desk.iterdir()] == ["penstock-task-notes"]
