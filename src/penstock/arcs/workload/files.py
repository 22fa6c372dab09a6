"""The files of a command on this machine: fetched inputs, and folders for outputs.

In a store that is a folder of this machine, inputs are used in place. Inputs from a bucket are
copied below one folder. So are all inputs of a command with another user, who has no rights in the
store. The folder is removed after the command. A killed process leaves it, and the next task on
this machine removes it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.arcs.workload.shell import CommandFailed
from penstock.arcs.workload.task import Context, Task, list_keys
from penstock.errors import PenstockError, Unavailable
from penstock.lots.manifests import DatasetRef
from penstock.objects import Objects
from penstock.objects.uris import find_object, open_store

_PREFIX = "penstock-task-"


@contextmanager
def task_folder() -> Iterator[Path]:
    """Create a folder for one task, on the disk of TMPDIR."""
    _sweep()
    while True:
        with (
            tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name,
            _locked(Path(name), fcntl.LOCK_EX) as is_ours,
        ):
            if is_ours:
                yield Path(name)
                return


def _sweep() -> None:
    """Remove the folders of tasks whose process has died."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_ours:
            if is_ours:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[bool]:
    """Hold the lock of a folder, which ends with this process in any case.

    Yield False if another process holds it, or has just removed the folder.
    """
    try:
        is_locked = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(is_locked, how)
    except BlockingIOError:
        is_ours = False
    else:
        is_ours = folder.exists()
    try:
        yield is_ours
    finally:
        os.close(is_locked)


class TaskFiles:
    """The input files and output folders of one command."""

    def __init__(self, task: Task, context: Context, folder: Path) -> None:
        self._context = context
        self._objects = open_store(task.objects, is_marked=task.is_marked)
        self._folder = folder
        self._is_apart = bool(task.rules.run_as)
        self._inputs: dict[str, Path] = {}
        self._copied: list[tuple[DatasetRef, str, Path]] = []
        self._outputs = [self._make(ref, location) for ref, location in context.locations()]

    @property
    def outputs(self) -> Sequence[Path]:
        """The folder of each output."""
        return self._outputs

    def input(self, uri: str, *, fetch: bool) -> Path | None:
        """Return the file of a URI, fetched if necessary; None if it is not fetched.

        A URI that ends in / is a folder with everything below it.
        """
        store, key = find_object(self._objects, uri)
        if (path := store.path(key.rstrip("/"))) is not None and not self._is_apart:
            return path
        if fetch and uri not in self._inputs:
            # Each is in a folder of its own, because a bucket can have objects below objects.
            top = self._folder / "inputs" / str(len(self._inputs))
            self._inputs[uri] = top / key
            is_folder = key.endswith("/")
            below = sorted(entry.key for entry in store.list(key[:-1])) if is_folder else [key]
            for each in below:
                self._fetch(store, each, top / each)
        return self._inputs.get(uri)

    def take_up(self) -> None:
        """Upload the files that the command left in local folders."""
        for ref, location, folder in self._copied:
            store, key = find_object(self._objects, location)
            left = Objects.open(str(folder))
            for name in self._names(ref, location, left):
                self._check_lost()
                store.put(f"{key}{name}", folder / name)

    def _names(self, ref: DatasetRef, location: str, left: Objects) -> Sequence[str]:
        """Return the files of an output: those that the command listed, or all."""
        uris = self._context.listed_uris(ref)
        if uris is None:
            return list_keys(left)
        names = (uri.removeprefix(location) for uri in uris if uri.startswith(location))
        return [name for name in names if left.exists(name)]

    def _make(self, ref: DatasetRef, location: str) -> Path:
        store, key = find_object(self._objects, location)
        folder = store.path(key.rstrip("/"))
        if folder is None or self._is_apart:
            folder = self._folder / "outputs" / str(len(self._copied))
            self._copied.append((ref, location, folder))
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _fetch(self, store: Objects, key: str, target: Path) -> None:
        self._check_lost()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with store.get_stream(key) as chunks, target.open("wb") as file:
                for chunk in chunks:
                    file.write(chunk)
        except PenstockError as error:
            raise type(error)(
                f"an input cannot be fetched: {error}; if the command needs only the URLs of its "
                "inputs, set `fetch = false`"
            ) from None
        except OSError as error:
            raise Unavailable(
                f"the input {store.url}/{key} cannot be written to {target}: {error.strerror}; "
                "make room there, or let TMPDIR name a place with more"
            ) from None

    def _check_lost(self) -> None:
        if self._context.lost.is_set():
            raise CommandFailed("its lease was lost")
