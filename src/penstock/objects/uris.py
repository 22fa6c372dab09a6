"""Full URIs of objects, in our own object store or another one, and their stores.

All writers and readers of URIs use this module. A URI in a foreign folder is quoted, as `file:`
URLs are. Keys in our own store and in buckets are written unchanged.
"""

from functools import lru_cache
from urllib.parse import quote, unquote

from msgspec import Struct

from penstock.errors import Invalid
from penstock.objects.keys import local_folder
from penstock.objects.store import Objects

_MACHINE = "file:///"
_PLAIN = "/=+,:@"  # no quoting needed, and patterns of parts such as `day={day}/` match them


@lru_cache(maxsize=16)
def open_store(url: str, *, is_marked: bool = False) -> Objects:
    """Open a store once, and keep it; `is_marked` if a folder must have the mark."""
    return Objects.open(url, is_marked=is_marked)


def find_object(objects: Objects, uri: str) -> tuple[Objects, str]:
    """Return the store and the key of a URI."""
    base = f"{objects.url}/"
    if uri.startswith(base):
        return objects, uri.removeprefix(base)
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme == "memory":
        raise Invalid(
            f"{uri[:200]!r} is not in the object store {objects.url}, nor a URL of another"
        )
    if scheme == "file":
        return open_store(_MACHINE), unquote(rest).lstrip("/")
    bucket, _, key = rest.partition("/")
    return open_store(f"{scheme}://{bucket}"), key


class KeyForm(Struct, frozen=True):
    """How keys at a location are written as full URIs."""

    base: str
    is_quoted: bool = False

    def uri(self, key: str) -> str:
        """Return the URI of a key."""
        return f"{self.base}/{quote(key, safe=_PLAIN) if self.is_quoted else key}"

    def key(self, uri: str) -> str | None:
        """Return the key of a URI; None if it is elsewhere."""
        if not uri.startswith(f"{self.base}/"):
            return None
        key = uri.removeprefix(f"{self.base}/")
        return unquote(key) if self.is_quoted else key


def find_key_form(objects: Objects, location: str) -> KeyForm:
    """Return the form of keys at a location; those inside our own store are unquoted."""
    folder = local_folder(location)
    if folder is None:
        return KeyForm(_bucket_prefix(objects, location))
    object_path = objects.path("x")
    root = object_path.parent if object_path is not None else None
    path = folder.absolute()
    if root is not None and path.is_relative_to(root):
        return KeyForm(f"{objects.url}/{path.relative_to(root).as_posix()}")
    return KeyForm(f"file://{quote(path.as_posix(), safe=_PLAIN)}", is_quoted=True)


def _bucket_prefix(objects: Objects, location: str) -> str:
    if f"{location}/".startswith(f"{objects.url}/"):
        return objects.url + unquote(location.removeprefix(objects.url)).rstrip("/")
    scheme, _, rest = location.partition("://")
    bucket, _, path = rest.partition("/")
    return "/".join(part for part in (f"{scheme}://{bucket}", unquote(path).strip("/")) if part)
