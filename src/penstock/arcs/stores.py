"""Full URIs of objects, in our own object store or in another, and the stores they lead to."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

from penstock.errors import Invalid, Unavailable
from penstock.objects import Objects
from penstock.objects.keys import local_folder

_MACHINE = "file:///"
_PLAIN = "/=+,:@"  # they need no quotes, and patterns of parts such as `day={day}/` look for them


@lru_cache(maxsize=16)
def open_store(url: str) -> Objects:
    """A store that is opened once, and kept."""
    return Objects.open(url)


def open_location(url: str) -> Objects:
    """The store at a place that others write to; a folder has to be there already.

    One that was made here would look like a place where nothing arrives.
    """
    folder = local_folder(url)
    if folder is not None and not folder.is_dir():
        raise Unavailable(f"there is no folder {folder}; make it, or mount what is to be there")
    return open_store(url)


def find_object(own: Objects, uri: str) -> tuple[Objects, str]:
    """The store and the key that a URI names."""
    base = f"{own.url}/"
    if uri.startswith(base):
        return own, uri.removeprefix(base)
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme == "memory":
        raise Invalid(f"{uri[:200]!r} is not in the object store {own.url}, nor a URL of another")
    if scheme == "file":
        return open_store(_MACHINE), unquote(rest).lstrip("/")
    bucket, _, key = rest.partition("/")
    return open_store(f"{scheme}://{bucket}"), key


def uris_at(own: Objects, location: str) -> Callable[[str], str]:
    """What makes full URIs of the keys at a location.

    Those inside our own store are written as our own, which are not quoted.
    """
    folder = local_folder(location)
    if folder is None:
        scheme, _, rest = location.partition("://")
        bucket, _, path = rest.partition("/")
        base = "/".join(part for part in (f"{scheme}://{bucket}", unquote(path).strip("/")) if part)
        _check_apart(own, f"{own.url}/".startswith(f"{base}/"), location)
        return lambda key: f"{base}/{key}"
    mine = own.path("x")
    root = mine.parent if mine is not None else None
    place = folder.absolute()
    _check_apart(own, root is not None and root.is_relative_to(place), location)
    if root is not None and place.is_relative_to(root):
        base = _joined(own.url, place.relative_to(root))
        return lambda key: f"{base}/{key}"
    base = f"file://{quote(place.as_posix(), safe=_PLAIN)}"
    return lambda key: f"{base}/{quote(key, safe=_PLAIN)}"


def _joined(url: str, path: Path) -> str:
    return f"{url}/{path.as_posix()}"


def _check_apart(own: Objects, is_above: bool, location: str) -> None:
    if is_above:
        raise Invalid(
            f"nothing can arrive at {location}: our own object store {own.url} is in it, and "
            "would arrive as well; name a folder of its own"
        )
