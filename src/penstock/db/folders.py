"""The folders of SQL that each room has: `statements/` and `migrations/`."""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

DIALECTS = ("sqlite", "postgresql")
_files_read: dict[tuple[str, str], tuple["SqlFile", ...]] = {}


class SqlFile(NamedTuple):
    """A file of SQL; `dialect` is empty for a portable file."""

    name: str
    dialect: str
    text: str


def capability_folders() -> list[Traversable]:
    """List every folder directly inside the package."""
    return sorted((f for f in files("penstock").iterdir() if f.is_dir()), key=lambda f: f.name)


def sql_files(folders: Iterable[Traversable], kind: str) -> Iterator[SqlFile]:
    """Yield the files `<room>/<kind>/**.sql`, portable files first."""
    every = [file for folder in folders for file in _files(folder, kind)]
    return iter(sorted(every, key=lambda file: (file.dialect, file.name)))


def _files(folder: Traversable, kind: str) -> tuple[SqlFile, ...]:
    # Read once: the files do not change while a program runs.
    key = (str(folder), kind)
    if key not in _files_read:
        _files_read[key] = tuple(_walk(folder.joinpath(kind), ""))
    return _files_read[key]


def _walk(folder: Traversable, dialect: str) -> Iterator[SqlFile]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name in DIALECTS:
            yield from _walk(entry, entry.name)
        elif entry.name.endswith(".sql"):
            last = entry.name.split(".")[-2]
            own = last if last in DIALECTS else dialect
            yield SqlFile(entry.name, own, entry.read_text(encoding="utf-8"))
