"""The files of the page: read once, kept in memory, each with what a browser must be told of it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
# Names in there carry a digest of what they hold, so a name never gets another content.
_HASHED = "assets/"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_FOREVER = "public, max-age=31536000, immutable"
_ASK_FIRST = "no-cache"


@dataclass(frozen=True)
class File:
    """A file as it is sent, and packed if that is shorter."""

    content: bytes
    packed: bytes | None
    content_type: str
    etag: str
    caching: str


class Files:
    """Every file of the built page, by its path; read again when the page was built anew."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._stamp = -1
        self._files: dict[str, File] = {}

    def find(self, path: str) -> File | None:
        """The file at a path below `/`; the page itself for the empty one."""
        self._look()
        return self._files.get(path or INDEX)

    @property
    def is_built(self) -> bool:
        """Whether there is a page at all."""
        return self.find(INDEX) is not None

    def _look(self) -> None:
        try:
            stamp = (self._folder / INDEX).stat().st_mtime_ns
        except FileNotFoundError:
            stamp = 0
        if stamp != self._stamp:
            self._files = _read(self._folder) if stamp else {}
            self._stamp = stamp


def _read(folder: Path) -> dict[str, File]:
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in _TYPES:
            continue
        name = path.relative_to(folder).as_posix()
        found[name] = _file(path, name)
    return found


def _file(path: Path, name: str) -> File:
    content = path.read_bytes()
    packed = path.with_name(f"{path.name}.gz")
    return File(
        content,
        packed.read_bytes() if packed.exists() else None,
        _TYPES[path.suffix],
        f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        _FOREVER if name.startswith(_HASHED) else _ASK_FIRST,
    )
