"""Where tasks run: what a process that is killed leaves behind."""

import os
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest

from penstock.arcs.executors.local import LocalProcesses


def test_a_process_that_is_killed_leaves_no_open_files_behind() -> None:
    here = psutil.Process()

    def killed(processes: LocalProcesses) -> int:
        with pytest.raises(BrokenProcessPool):
            processes.submit(os._exit, 1).result()
        return here.num_fds()

    with LocalProcesses(1) as processes:
        first = killed(processes)
        assert [killed(processes) for _ in range(2)] == [first, first]
