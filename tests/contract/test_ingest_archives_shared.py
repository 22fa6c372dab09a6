"""Two processes that unpack one archive into one folder: one slept, and lost its lock on the job.

Each is stopped at a step of its own, as SIGSTOP stops a worker, and goes on later.
"""

import os
import signal
import sys
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.ingest.intake.archives import ArchiveLimits, unpack
from penstock.ingest.intake.payload import replace_file

FILES = {"a.txt": b"alpha", "folder/b.txt": b"beta"}
STEPS_MIN = 12  # files and folders that are opened, made, renamed and removed
STEPS_MAX = 60
EVENTS = ("open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir")


class Process:
    """Does something in a process of its own that stops before a step with this number."""

    def __init__(self, work: Callable[[], None], folder: Path, step: int) -> None:
        self._pid = os.fork()
        if self._pid == 0:
            self._be(work, str(folder), step)
        self.is_over = False
        self.is_good = False
        self._wait()

    def go_on(self) -> None:
        """Let it come to its end."""
        if not self.is_over:
            os.kill(self._pid, signal.SIGCONT)
            self._wait()

    def _wait(self) -> None:
        _, status = os.waitpid(self._pid, os.WUNTRACED)
        self.is_over = not os.WIFSTOPPED(status)
        self.is_good = self.is_over and status == 0

    def _be(self, work: Callable[[], None], folder: str, step: int) -> None:
        left = step

        def stop(event: str, args: tuple[object, ...]) -> None:
            nonlocal left
            if event in EVENTS and str(args[0]).startswith(folder):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGSTOP)

        try:
            sys.addaudithook(stop)
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


def unpacking(folder: Path) -> Callable[[], None]:
    def work() -> None:
        os.sync = lambda: None  # of the whole machine, many times
        limits = ArchiveLimits()
        assert [str(path) for path in unpack(folder / "a.zip", folder / "out", limits)] == [*FILES]

    return work


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def meet(folder: Path, late: int, timely: int) -> bool:
    """One sleeps at its step, the other at its own, the first goes on; False: there is no step."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    sleeper = Process(unpacking(folder), folder, late)
    if sleeper.is_over:
        return False
    holder = Process(unpacking(folder), folder, timely)
    sleeper.go_on()
    holder.go_on()
    assert holder.is_good, f"asleep at {late}, the holder of the job failed at {timely}"
    assert sleeper.is_good, f"asleep at {late}, the other at {timely}"
    assert contents(folder / "out") == FILES
    return True


@pytest.mark.parametrize("timely", [1, 5, 11])
def test_a_late_process_does_not_remove_an_active_draft(tmp_path: Path, timely: int) -> None:
    late = next(
        step for step in range(1, STEPS_MAX) if not meet(tmp_path / str(step), step, timely)
    )
    assert late > STEPS_MIN, "most steps were not seen"


def test_a_draft_that_a_sleeper_left_goes_when_it_wakes(tmp_path: Path) -> None:
    assert meet(tmp_path / "site", STEPS_MIN, 1)
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == ["a.zip", "out"]


def test_a_file_that_is_written_again_is_always_whole(tmp_path: Path) -> None:
    path = tmp_path / "site" / "mrt-erc.txt"
    path.parent.mkdir()
    for step in range(1, STEPS_MAX):
        replace_file(path, b"who: jo\n")
        writer = Process(lambda: replace_file(path, b"who: jo\n"), path.parent, step)
        assert path.read_bytes() == b"who: jo\n"
        if writer.is_over:
            break
        writer.go_on()
        assert writer.is_good
    assert step > 2, "it is to be written beside, and then renamed"
