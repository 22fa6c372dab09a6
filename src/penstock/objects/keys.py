"""The keys and URLs that object stores accept, the same for every kind of store."""

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.errors import Invalid

_KEY_BYTES_MAX = 1024
_SEGMENT_BYTES_MAX = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# A local folder uses such names for unfinished files.
_UNFINISHED = re.compile(r"#[0-9]+$")
_REMOTE_SCHEMES = ("s3", "gs", "az")


def check_key(key: str) -> str:
    """Return the key, or raise Invalid if some store could not hold it."""
    if reason := refusal(key):
        raise Invalid(f"{key[:200]!r} cannot be the key of an object: {reason}")
    return key


def refusal(key: str) -> str | None:
    """Explain why no store may hold a key; None if it may."""
    segments = key.split("/")
    if "" in segments:
        return "it is empty, begins or ends with '/', or holds '//'"
    if "." in segments or ".." in segments:
        return "it holds a '.' or '..' segment"
    if _CONTROL.search(key):
        return "it holds a control character"
    if _UNFINISHED.search(key):
        return "it ends in '#' and digits"
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        return "it is not Unicode text"
    if length > _KEY_BYTES_MAX or (length > _SEGMENT_BYTES_MAX and _has_long(segments)):
        return f"it is longer than {_KEY_BYTES_MAX} bytes, or a segment of it than 255"
    return None


def _has_long(segments: Iterable[str]) -> bool:
    return any(len(segment.encode()) > _SEGMENT_BYTES_MAX for segment in segments)


def local_folder(url: str) -> Path | None:
    """Return the folder of a `file:` URL or a path; None for other kinds of store."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Invalid(f"{url!r} is no object store: {error}") from None
    if parts.scheme == "file":
        path = unquote(parts.path)
        if parts.netloc not in {"", "localhost"} or path[:1] != "/" or "\x00" in path:
            raise Invalid(f"{url!r} names no folder; write it like file:///srv/objects")
        return Path(path)
    if parts.scheme == "memory" or parts.scheme in _REMOTE_SCHEMES:
        return None
    if "://" in url or not url:
        schemes = ", ".join(f"{scheme}://" for scheme in ("file", *_REMOTE_SCHEMES, "memory"))
        raise Invalid(f"{url!r} is no object store; it begins with one of {schemes} or is a folder")
    return Path(url)
