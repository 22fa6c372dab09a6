"""Read the target of an ingest command: the queue, a collection, a batch or an ingest job."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from penstock.errors import Invalid

_BATCH = re.compile(r"bid\d{10,}")
_JOB = re.compile(r"jid\d{10,}")


class Kind(StrEnum):
    """The kinds of targets."""

    QUEUE = "queue"
    HELD = "held"
    COLLECTION = "collection"
    BATCH = "batch"
    JOB = "job"


_WRITTEN = {
    Kind.QUEUE: "queue",
    Kind.HELD: "held",
    Kind.COLLECTION: "collection NAME",
    Kind.BATCH: "batch BATCH",
    Kind.JOB: "job JOB",
}


class Target(NamedTuple):
    """The target of a command."""

    kind: Kind
    name: str = ""


def read_target(words: Sequence[str], kinds: Sequence[Kind]) -> Target:
    """Read a target of one of these kinds; the id of a batch or job is enough."""
    target = _read(words)
    if target is not None and target.kind in kinds:
        return target
    written = ", ".join(_WRITTEN[kind] for kind in kinds)
    text = " ".join(words)
    fault = f"{text!r} is no target of this command" if text else "the target is missing"
    raise Invalid(f"{fault}; write one of: {written}; the id of a batch or job is enough")


def _read(words: Sequence[str]) -> Target | None:
    match list(words):
        case [("queue" | "held") as word]:
            return Target(Kind(word))
        case [word] if kind := kind_of(word):
            return Target(kind, word)
        case [("collection" | "batch" | "job") as word, name]:
            return Target(Kind(word), _check(Kind(word), name))
    return None


def kind_of(name: str) -> Kind | None:
    """Return the kind of an id."""
    if _BATCH.fullmatch(name):
        return Kind.BATCH
    return Kind.JOB if _JOB.fullmatch(name) else None


def _check(kind: Kind, name: str) -> str:
    actual = kind_of(name)
    if kind is not Kind.COLLECTION and actual is not None and actual is not kind:
        raise Invalid(f"{name} is a {actual}, not a {kind}; write {actual} {name}")
    return name
