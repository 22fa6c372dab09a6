"""A local folder: written so that what was acknowledged survives a loss of power, and listed.

obstore's local store renames a file into place without flushing it, and leaves its half-written
file beside the target when it is killed. Here a file is written at the top of the folder under a
name that listings never show, flushed, and only then linked or renamed to its key; the folder
that holds the key, and each folder made for it, are flushed before the call returns.

Others write here by any name. obstore gives up a whole listing for one that it cannot read, and
passes over others without a word: here every file is met, and who lists decides.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from penstock.private_files import make_private_folder

# No key ends in # and digits, so no listing shows it.
_UNFINISHED_PREFIX = ".put-"
_UNFINISHED_SUFFIX = "#1"
_ABANDONED_SECONDS = 24 * 3600
_TRIES = 20
# Tells that the folder is the store that we began, and not the place where its disk is missing.
MARK = "penstock-store#1"
_WORDS = b"This folder is an object store of Penstock. Leave this file in it.\n"


def write(root: Path, key: str, chunks: Iterable[bytes], *, if_absent: bool) -> None:
    """Write the chunks under the key; raises FileExistsError if it is taken and must not be."""
    unfinished = root / f"{_UNFINISHED_PREFIX}{uuid4().hex}{_UNFINISHED_SUFFIX}"
    try:
        with unfinished.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        _publish(unfinished, root, root / key, if_absent=if_absent)
    finally:
        unfinished.unlink(missing_ok=True)


def _publish(unfinished: Path, root: Path, target: Path, *, if_absent: bool) -> None:
    for attempt in range(_TRIES):
        _make_folder(target.parent, root)
        try:
            if if_absent:
                os.link(unfinished, target)
            else:
                unfinished.replace(target)
        except FileNotFoundError:
            # A deletion beside us may remove the folder just made, because it is empty.
            if attempt == _TRIES - 1:
                raise
        else:
            _flush(target.parent)
            return


def _make_folder(folder: Path, root: Path) -> None:
    if folder == root or folder.is_dir():
        return
    _make_folder(folder.parent, root)
    try:
        folder.mkdir()
    except FileExistsError:
        if folder.is_file():  # else it is a folder, or was one a moment ago
            raise NotADirectoryError(f"{folder} is a file") from None
    except FileNotFoundError:
        return
    _flush(folder.parent)


def _flush(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def folders(root: Path, prefix: str) -> list[str]:
    """The names of the folders in a folder of the root."""
    try:
        return [path.name for path in (root / prefix).iterdir() if path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_Identity = tuple[int, int]  # of a folder, by whatever name it is reached


def files(root: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """Every file below a folder of the root, by its path from the root; in no order.

    Links are followed; a folder inside of itself is not.
    """
    top = root / prefix
    try:
        met = top.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from _files(str(top), f"{prefix}/" if prefix else "", ((met.st_dev, met.st_ino),))


def _files(
    folder: str, path: str, above: tuple[_Identity, ...]
) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return  # a deletion beside us took it
    with entries:
        for entry in entries:
            try:
                met = entry.stat()
            except OSError as error:
                if error.errno in _NOTHING:
                    continue  # deleted, or a link that leads nowhere
                raise
            if stat.S_ISREG(met.st_mode):
                if path or not _is_ours(entry.name):
                    yield f"{path}{entry.name}", met
            elif stat.S_ISDIR(met.st_mode) and (met.st_dev, met.st_ino) not in above:
                inside = (*above, (met.st_dev, met.st_ino))
                yield from _files(entry.path, f"{path}{entry.name}/", inside)


def _is_ours(name: str) -> bool:
    """Whether a file at the top of the folder is our mark, or one that `write` has not finished."""
    return name == MARK or (
        name.startswith(_UNFINISHED_PREFIX) and name.endswith(_UNFINISHED_SUFFIX)
    )


def mark(root: Path) -> None:
    """Make the folder, and the mark in it, if they are not there."""
    make_private_folder(root)
    if not (root / MARK).exists():
        write(root, MARK, [_WORDS], if_absent=False)


def sweep(root: Path) -> None:
    """Remove what killed writers left half-written a day ago or longer."""
    oldest = time.time() - _ABANDONED_SECONDS
    for unfinished in root.glob(f"{_UNFINISHED_PREFIX}*{_UNFINISHED_SUFFIX}"):
        try:
            if unfinished.stat().st_mtime < oldest:
                unfinished.unlink()
        except FileNotFoundError:
            continue
