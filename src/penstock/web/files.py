"""The files of the page, read once and cached with their headers."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
# These names contain a digest of the content, so the content of a name never changes.
_HASHED = "assets/"
_PACKED = ".gz"
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
class PageFile:
    """A cached file, compressed or plain."""

    kept: bytes
    is_packed: bool
    content_type: str
    etag: str
    caching: str

    @cached_property
    def plain(self) -> bytes:
        """The plain file, for clients without decompression; decompressed once for all of them."""
        return gzip.decompress(self.kept) if self.is_packed else self.kept


class Files:
    """The files of the built page by path; read again after a new build."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._stamp = -1
        self._files: dict[str, PageFile] = {}

    def find(self, path: str) -> PageFile | None:
        """Return the file at a path below `/`; the page itself for an empty path."""
        self._look()
        return self._files.get(path or INDEX)

    def _look(self) -> None:
        try:
            stamp = (self._folder / INDEX).stat().st_mtime_ns
        except FileNotFoundError:
            stamp = 0
        if stamp != self._stamp:
            self._files = _read(self._folder) if stamp else {}
            self._stamp = stamp


def _read(folder: Path) -> dict[str, PageFile]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_packed = name.endswith(_PACKED)
        name = name.removesuffix(_PACKED)
        kind = _TYPES.get(Path(name).suffix)
        if kind is not None:
            kept = path.read_bytes()
            etag = f'"{hashlib.sha256(kept).hexdigest()[:32]}"'
            caching = _FOREVER if name.startswith(_HASHED) else _ASK_FIRST
            found[name] = PageFile(kept, is_packed, kind, etag, caching)
    return found
