"""Splitting a lot into parts."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from penstock.arcs.spec import PART_FIELD, Parts
from penstock.arcs.workload.functions import load_function
from penstock.arcs.workload.task import InputLot
from penstock.errors import Invalid, PenstockError
from penstock.lots.manifests import DatasetRef, Item

PARTS_MAX = 10_000
# Half a surrogate pair cannot be written as UTF-8, so no database or store takes it.
_UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
REST = "rest"  # what a pattern does not fit


def split(how: Parts, inputs: Sequence[InputLot]) -> dict[str, tuple[InputLot, ...]]:
    """The inputs of each part; every URI is in exactly one."""
    if how.pattern is not None:
        parts = _by_pattern(how.pattern, inputs)
    elif how.bytes_max is not None:
        parts = _by_size(how.bytes_max, inputs)
    else:
        parts = _by_function(str(how.function), inputs)
    for name in parts:
        if not name or _UNSAFE.search(name):
            raise Invalid(
                f"the lot splits into parts, and {name[:100]!r} cannot be the name of one; use "
                "some text without control characters"
            )
    if len(parts) > PARTS_MAX:
        raise Invalid(f"the lot splits into {len(parts)} parts; {PARTS_MAX} are the most")
    return {
        name: tuple(
            replace(lot, uris=tuple(items.get(index, ()))) for index, lot in enumerate(inputs)
        )
        for name, items in sorted(parts.items())
    }


def made_of(inputs: Sequence[InputLot], outputs: Sequence[DatasetRef]) -> str:
    """What a part reads and writes, as a short text: one that has another is another part.

    The versions of its inputs and which of their URIs are its own, whatever it is called.
    """
    read = [(lot.version, sorted(item.uri for item in lot.uris)) for lot in inputs]
    return hashlib.sha256(msgspec.json.encode((read, outputs))).hexdigest()


Members = dict[int, list[Item]]  # by the place of their input


def _by_pattern(pattern: str, inputs: Sequence[InputLot]) -> dict[str, Members]:
    """One part for each way in which the pattern fits."""
    fitting = re.compile(_expression(PART_FIELD.split(pattern)[::2]))
    parts: dict[str, Members] = {}
    for index, item in _items(inputs):
        found = fitting.search(item.uri)
        name = found[0].strip("/") if found else REST
        parts.setdefault(name, {}).setdefault(index, []).append(item)
    return parts


def _expression(literals: Sequence[str]) -> str:
    """What fits a pattern: fields within one segment each, between literals.

    Each literal but the last is taken where it comes first, and nowhere else: that leaves the most
    room for the others. To try all places would take too long for a name that another has chosen.
    """
    first, *others = map(re.escape, literals)
    if not others:
        return first
    *others, last = others
    return first + "".join(f"(?>[^/]+?{text})" for text in others) + f"[^/]+{last}"


def _by_size(bytes_max: int, inputs: Sequence[InputLot]) -> dict[str, Members]:
    """Parts of at most so many bytes, in the order of the manifests; a larger item is alone."""
    parts: dict[str, Members] = {}
    filled = 0
    for index, item in _items(inputs):
        size = item.size or 0
        if not parts or (filled and filled + size > bytes_max):
            parts[f"{len(parts):05d}"] = {}
            filled = 0
        filled += size
        parts[f"{len(parts) - 1:05d}"].setdefault(index, []).append(item)
    return parts


def _by_function(name: str, inputs: Sequence[InputLot]) -> dict[str, Members]:
    """Parts as a function says: it is given the inputs, and gives URIs by part."""
    known = {item.uri: (index, item) for index, item in _items(inputs)}
    parts: dict[str, Members] = {}
    for part, uris in _said_by(name, inputs):
        members = parts.setdefault(part, {})
        for uri in uris:
            if uri not in known:
                raise Invalid(
                    f"{name} puts {uri} into part {part}, which is not in the lot, or twice"
                )
            index, item = known.pop(uri)
            members.setdefault(index, []).append(item)
    if known:
        raise Invalid(f"{name} leaves {len(known)} URIs out, the first is {next(iter(known))}")
    return parts


def _said_by(name: str, inputs: Sequence[InputLot]) -> list[tuple[str, tuple[str, ...]]]:
    """What a function gives, if it gives URIs by part."""
    try:
        answer = load_function(name)(tuple(inputs))
        if not isinstance(answer, Mapping):
            raise Invalid(f"{name} gives {type(answer).__name__}; let it give URIs by part")
        return [(str(part), tuple(uris)) for part, uris in answer.items()]
    except PenstockError:
        raise
    except BaseException as error:  # the thread is the engine's: nothing else may end it
        raise Invalid(f"{name} cannot split the lot: {type(error).__name__}: {error}") from error


def _items(inputs: Sequence[InputLot]) -> Iterable[tuple[int, Item]]:
    return ((index, item) for index, lot in enumerate(inputs) for item in lot.uris)
