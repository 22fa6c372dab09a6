"""What the commands of ingest are about: the queue, a collection, a batch or an ingest job."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from penstock.errors import Invalid

_BATCH = re.compile(r"bid\d{10,}")
_JOB = re.compile(r"jid\d{10,}")


class Kind(StrEnum):
    """What something is done to."""

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
    """One of them."""

    kind: Kind
    name: str = ""


def read_target(words: Sequence[str], kinds: Sequence[Kind]) -> Target:
    """What the words name, if it is of one of these kinds; the id of a batch or job is enough."""
    target = _read(words)
    if target is not None and target.kind in kinds:
        return target
    written = ", ".join(_WRITTEN[kind] for kind in kinds)
    given = " ".join(words)
    said = f"{given!r} cannot be meant" if given else "what is meant is not said"
    raise Invalid(f"{said} here; write one of: {written}; the id of a batch or job is enough")


def _read(words: Sequence[str]) -> Target | None:
    match list(words):
        case [("queue" | "held") as word]:
            return Target(Kind(word))
        case [word] if kind := kind_of(word):
            return Target(kind, word)
        case [("collection" | "batch" | "job") as word, name]:
            return Target(Kind(word), _checked(Kind(word), name))
    return None


def kind_of(name: str) -> Kind | None:
    """What an id is the id of."""
    if _BATCH.fullmatch(name):
        return Kind.BATCH
    return Kind.JOB if _JOB.fullmatch(name) else None


def _checked(kind: Kind, name: str) -> str:
    found = kind_of(name)
    if kind is not Kind.COLLECTION and found is not None and found is not kind:
        raise Invalid(f"{name} is a {found}, not a {kind}; write {found} {name}")
    return name
