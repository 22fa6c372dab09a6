"""Executors: resources of killed processes."""

import os
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest

from penstock.arcs.executors.local import LocalProcesses


def test_killed_process_leaves_no_open_files() -> None:
    here = psutil.Process()

    def killed(processes: LocalProcesses) -> int:
        with pytest.raises(BrokenProcessPool):
            processes.submit(os._exit, 1).result()
        return here.num_fds()

    with LocalProcesses(1) as processes:
        first = killed(processes)
        assert [killed(processes) for _ in range(2)] == [first, first]
