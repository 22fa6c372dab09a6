"""The server's URL from the settings, and names of datasets and jobs as people write them."""

from collections.abc import Iterable

from penstock.config import load
from penstock.errors import Invalid
from penstock.schema.catalog import EntityId


def endpoint(url: str | None, api_key: str | None) -> tuple[str, str | None]:
    """Return the URL and the key: the arguments, or else the settings.

    The key of the settings belongs to their URL, and is sent to no other.
    """
    if url is not None:
        return url, api_key
    settings = load({}).settings
    return settings.url, api_key or settings.api_key


Name = str | tuple[str, str]


def read_name(name: Name, namespace: str | None = None) -> EntityId:
    """Read NAMESPACE/NAME, or a plain name in a namespace.

    A namespace that is a URL goes up to the path: `s3://lake/raw/orders` is raw/orders in
    s3://lake. A pair of namespace and name is always exact.
    """
    if not isinstance(name, str):
        return EntityId(*name)
    scheme = name.find("://")
    slash = name.find("/", scheme + 3 if scheme > 0 else 0)
    if slash > 0 and name[slash + 1 :]:
        return EntityId(name[:slash], name[slash + 1 :])
    if namespace is None or not name:
        raise Invalid(f"{name!r} says no namespace; write it as NAMESPACE/NAME")
    return EntityId(namespace, name)


def names(name: Iterable[Name] | None, namespace: str) -> list[EntityId] | None:
    """Read several names; a single text counts as one name."""
    if isinstance(name, str):
        name = [name]
    return None if name is None else [read_name(name, namespace) for name in name]
