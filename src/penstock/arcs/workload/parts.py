"""Splitting of a lot into parts."""

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
REST = "rest"  # the part of URIs that a pattern does not match
Members = dict[int, list[Item]]  # by the position of their input


def split(how: Parts, inputs: Sequence[InputLot]) -> dict[str, tuple[InputLot, ...]]:
    """Return the inputs of each part; every URI is in exactly one."""
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
        raise Invalid(f"the lot splits into {len(parts)} parts; the limit is {PARTS_MAX}")
    return {
        name: tuple(
            replace(lot, uris=tuple(items.get(index, ()))) for index, lot in enumerate(inputs)
        )
        for name, items in sorted(parts.items())
    }


def part_digest(inputs: Sequence[InputLot], outputs: Sequence[DatasetRef]) -> str:
    """Return a digest of the inputs and outputs of a part, whatever its name.

    It covers the versions of the inputs and the URIs that the part reads of them.
    """
    read = [(lot.version, sorted(item.uri for item in lot.uris)) for lot in inputs]
    return hashlib.sha256(msgspec.json.encode((read, outputs))).hexdigest()


def _by_pattern(pattern: str, inputs: Sequence[InputLot]) -> dict[str, Members]:
    fitting = re.compile(_expression(PART_FIELD.split(pattern)[::2]))
    parts: dict[str, Members] = {}
    for index, item in _items(inputs):
        match = fitting.search(item.uri)
        name = match[0].strip("/") if match else REST
        parts.setdefault(name, {}).setdefault(index, []).append(item)
    return parts


def _expression(literals: Sequence[str]) -> str:
    """Return a pattern as a regular expression: each field is within one path segment.

    Each literal but the last is matched at its first place only, which leaves the most room for the
    others. Depositors choose the names, and trying all places would take too long.
    """
    first, *others = map(re.escape, literals)
    if not others:
        return first
    *others, last = others
    return first + "".join(f"(?>[^/]+?{text})" for text in others) + f"[^/]+{last}"


def _by_size(bytes_max: int, inputs: Sequence[InputLot]) -> dict[str, Members]:
    """Return parts up to a number of bytes, in the order of the manifests; a larger item is
    alone.
    """
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
    items = {item.uri: (index, item) for index, item in _items(inputs)}
    parts: dict[str, Members] = {}
    for part, uris in _call_splitter(name, inputs):
        members = parts.setdefault(part, {})
        for uri in uris:
            if uri not in items:
                raise Invalid(
                    f"{name} puts {uri} into part {part}, which is not in the lot, or twice"
                )
            index, item = items.pop(uri)
            members.setdefault(index, []).append(item)
    if items:
        raise Invalid(f"{name} leaves {len(items)} URIs out, the first is {next(iter(items))}")
    return parts


def _call_splitter(name: str, inputs: Sequence[InputLot]) -> list[tuple[str, tuple[str, ...]]]:
    try:
        answer = load_function(name)(tuple(inputs))
        if not isinstance(answer, Mapping):
            raise Invalid(f"{name} gives {type(answer).__name__}; let it give URIs by part")
        return [(str(part), tuple(uris)) for part, uris in answer.items()]
    except PenstockError:
        raise
    except BaseException as error:  # the function must not end the engine's thread
        raise Invalid(f"{name} cannot split the lot: {type(error).__name__}: {error}") from error


def _items(inputs: Sequence[InputLot]) -> Iterable[tuple[int, Item]]:
    return ((index, item) for index, lot in enumerate(inputs) for item in lot.uris)
