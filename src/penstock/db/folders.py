"""The folders of SQL that capabilities bring along: `statements/` and `migrations/`."""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

DIALECTS = ("sqlite", "postgresql")
_read: dict[tuple[str, str], tuple["SqlFile", ...]] = {}


class SqlFile(NamedTuple):
    """One file of SQL; `dialect` is empty when it is for both."""

    name: str
    dialect: str
    text: str


def capability_folders() -> list[Traversable]:
    """Every folder directly inside the package."""
    return sorted((f for f in files("penstock").iterdir() if f.is_dir()), key=lambda f: f.name)


def sql_files(folders: Iterable[Traversable], kind: str) -> Iterator[SqlFile]:
    """The files `<capability>/<kind>/**.sql`, those for both dialects first."""
    found = [file for folder in folders for file in _files(folder, kind)]
    return iter(sorted(found, key=lambda file: (file.dialect, file.name)))


def _files(folder: Traversable, kind: str) -> tuple[SqlFile, ...]:
    """One capability's files, read once: they stay what they are while a program runs."""
    key = (str(folder), kind)
    if key not in _read:
        _read[key] = tuple(_walk(folder.joinpath(kind), ""))
    return _read[key]


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
