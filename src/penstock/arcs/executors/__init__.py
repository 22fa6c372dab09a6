"""Executors: where tasks run. Processes or threads of this machine, or a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.arcs.executors.dask import connect_dask
from penstock.arcs.executors.local import LocalProcesses
from penstock.arcs.executors.port import TaskExecutor
from penstock.errors import Invalid

__all__ = ["LOCAL", "TaskExecutor", "open_executor"]

LOCAL = "local"
_DASK = "dask://"


@contextmanager
def open_executor(address: str, processes: int) -> Iterator[TaskExecutor]:
    """Open the executor of a setting: `local`, or `dask://HOST:PORT`."""
    if address == LOCAL:
        executor: TaskExecutor = LocalProcesses(processes)
    elif address.startswith(_DASK):
        executor = connect_dask(address.removeprefix(_DASK))
    else:
        raise Invalid(f"{address!r} is no executor; write local, or dask://HOST:PORT")
    with executor:
        yield executor
