"""A local folder as an object store: durable writes, and complete listings.

obstore's local store renames a file into place without flushing it. If it is killed, it leaves a
half-written file beside the target. Here a file is written at the top of the folder under a name
that listings omit. It is flushed, and only then linked or renamed to its key. The folder of the
key, and each folder created for it, are flushed before the call returns.

Other programs write here with any names. obstore aborts a whole listing for a name that it cannot
read, and silently skips others. Here every file is listed, and the caller decides.
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
# Distinguishes the store from an empty mount point whose disk is missing.
MARK = "penstock-store#1"
_WORDS = b"This folder is an object store of Penstock. Leave this file in it.\n"
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_Identity = tuple[int, int]  # of a folder, whatever its path


def write(root: Path, key: str, chunks: Iterable[bytes], *, if_absent: bool) -> None:
    """Write chunks under a key; raise FileExistsError if it exists and must not be replaced."""
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
            # A concurrent deletion may remove the new folder, because it is empty.
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
        if folder.is_file():  # otherwise it is a folder, or was one before
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
    """Yield the names of the folders in a folder of the root."""
    try:
        return [path.name for path in (root / prefix).iterdir() if path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def files(root: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path of every file below a folder of the root, in no order.

    Links are followed, except into a folder that contains the link.
    """
    top = root / prefix
    try:
        status = top.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from _files(str(top), f"{prefix}/" if prefix else "", ((status.st_dev, status.st_ino),))


def _files(
    folder: str, path: str, above: tuple[_Identity, ...]
) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return  # a concurrent deletion removed it
    with entries:
        for entry in entries:
            try:
                status = entry.stat()
            except OSError as error:
                if error.errno in _NOTHING:
                    continue  # deleted, or a dangling link
                raise
            if stat.S_ISREG(status.st_mode):
                if path or not _is_ours(entry.name):
                    yield f"{path}{entry.name}", status
            elif stat.S_ISDIR(status.st_mode) and (status.st_dev, status.st_ino) not in above:
                inside = (*above, (status.st_dev, status.st_ino))
                yield from _files(entry.path, f"{path}{entry.name}/", inside)


def _is_ours(name: str) -> bool:
    """Whether a file at the top of the folder is the mark, or an unfinished write."""
    return name == MARK or (
        name.startswith(_UNFINISHED_PREFIX) and name.endswith(_UNFINISHED_SUFFIX)
    )


def mark(root: Path) -> None:
    """Create the folder and its mark, if they are missing."""
    make_private_folder(root)
    if not (root / MARK).exists():
        write(root, MARK, [_WORDS], if_absent=False)


def sweep(root: Path) -> None:
    """Remove half-written files of killed writers after a day."""
    oldest = time.time() - _ABANDONED_SECONDS
    for unfinished in root.glob(f"{_UNFINISHED_PREFIX}*{_UNFINISHED_SUFFIX}"):
        try:
            if unfinished.stat().st_mtime < oldest:
                unfinished.unlink()
        except FileNotFoundError:
            continue
