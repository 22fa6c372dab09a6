"""Files and folders that only their owner may read, whatever the umask says."""

import os
import stat
from contextlib import suppress
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing; one that is there stays as it is."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file")
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)


def create_private_file(path: Path) -> None:
    """Make an empty file if nothing is there.

    A file that is there is not even opened: to close it would drop the locks that SQLite holds on
    it in this process.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileExistsError):
        os.close(os.open(path, flags, FILE_MODE))


def make_private(path: Path) -> None:
    """Take a file of ours away from all but its owner."""
    with suppress(FileNotFoundError):
        met = path.stat()
        may_change = os.geteuid() in (0, met.st_uid)
        if may_change and stat.S_ISREG(met.st_mode) and met.st_mode & 0o077:
            path.chmod(FILE_MODE)
