"""What a manifest lists, and whether the bytes behind it are still what they were."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from msgspec import Struct

from penstock.errors import Invalid, NotFound, PenstockError
from penstock.lots.manifests import Item, Manifest, PartLine, UriType, decode
from penstock.objects import Objects
from penstock.objects.uris import find_object
from penstock.states import ManifestState

T = TypeVar("T")
R = TypeVar("R")


class Listed(Struct, frozen=True):
    """An item, and the manifest that lists it: the lot's own, or that of a part."""

    item: Item
    manifest: Manifest

    @property
    def part(self) -> str | None:
        """The part that it belongs to."""
        return self.manifest.part or None


class Checked(Struct, frozen=True):
    """What was read of an item or a manifest, and what is wrong with it, if anything is."""

    where: str
    size: int
    fault: str | None


def read_manifest(objects: Objects, key: str, digest: str | None) -> Manifest:
    """A manifest, if it is the one that was noted; `digest` is what the database says of it."""
    content = objects.get(key)
    found = hashlib.sha256(content).hexdigest()
    if digest is not None and found != digest:
        raise Invalid(f"{key} has sha256 {found}, and {digest} was noted when it was published")
    return decode(content, f"{objects.url}/{key}")


def listed(objects: Objects, manifest: Manifest) -> Iterator[Listed]:
    """Everything that a manifest lists, with what its parts do; a part is read when it is due."""
    yield from (Listed(item, manifest) for item in manifest.uris)
    for line in manifest.parts:
        if line.state is ManifestState.EMPTY:
            continue
        of_part = read_manifest(objects, line.key, None)
        _check_part(line, of_part)
        yield from (Listed(item, of_part) for item in of_part.uris)


def _check_part(line: PartLine, of_part: Manifest) -> None:
    """A part's manifest has no digest anywhere; what the lot's says of it has to do."""
    told = f"{line.state}, {line.uris} objects, {line.bytes} bytes"
    found = f"{of_part.state}, {of_part.count} objects, {of_part.bytes} bytes"
    if told != found:
        raise Invalid(f"{line.key} says {found}, and the manifest of the lot says {told} of it")


def check_item(objects: Objects, entry: Listed) -> Checked:
    """Read an item to its end and compare; a folder or a prefix is only looked for."""
    item = entry.item
    try:
        store, key = find_object(objects, item.uri)
        if entry.manifest.uri_type is not UriType.IDENTIFIER:
            return Checked(item.uri, 0, None if _is_there(store, key) else "nothing is there")
        size, found = _digest(store, key, _algorithm(item.digest))
    except NotFound:
        return Checked(item.uri, 0, "it is not there")
    except PenstockError as error:
        return Checked(item.uri, 0, str(error))
    if item.size is not None and size != item.size:
        return Checked(item.uri, size, f"it has {size} bytes, and should have {item.size}")
    expected = (item.digest or "").rpartition(":")[2].lower()
    if expected and found != expected:
        return Checked(item.uri, size, f"its digest is {found}, and should be {item.digest}")
    return Checked(item.uri, size, None)


def _is_there(store: Objects, key: str) -> bool:
    folder = key.rstrip("/")
    return store.exists(folder) or any(
        entry.key.startswith(key) for entry in store.list(folder.rpartition("/")[0])
    )


def _algorithm(digest: str | None) -> str:
    name = (digest or "").rpartition(":")[0].lower().replace("-", "")
    if name and name not in hashlib.algorithms_guaranteed:
        raise Invalid(f"its digest {digest} is of an algorithm that is not known here")
    return name or "sha256"


def _digest(store: Objects, key: str, algorithm: str) -> tuple[int, str]:
    size, digest = 0, hashlib.new(algorithm)
    with store.get_stream(key) as chunks:
        for chunk in chunks:
            size += len(chunk)
            digest.update(chunk)
    return size, digest.hexdigest()


def side_by_side(
    pool: ThreadPoolExecutor, work: Callable[[T], R], items: Iterable[T], most: int
) -> Iterator[R]:
    """The results of work on items, in their order; a few at a time, however many there are."""
    under_way: deque[Future[R]] = deque()
    for item in items:
        under_way.append(pool.submit(work, item))
        if len(under_way) >= most:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()
