"""Files and folders that only their owner can read, whatever the umask is."""

import os
import stat
from contextlib import suppress
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents; an existing folder does not change."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file")
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)


def create_private_file(path: Path) -> None:
    """Create an empty file if none exists.

    An existing file is not opened: closing it would drop SQLite's locks on it in this process.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileExistsError):
        os.close(os.open(path, flags, FILE_MODE))


def make_private(path: Path) -> None:
    """Restrict a file to its owner."""
    with suppress(FileNotFoundError):
        met = path.stat()
        may_change = os.geteuid() in (0, met.st_uid)
        if may_change and stat.S_ISREG(met.st_mode) and met.st_mode & 0o077:
            path.chmod(FILE_MODE)
