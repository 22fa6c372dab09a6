"""What people mean when they name a dataset or a job.

Who only looks may name it loosely (`find_…`). Who changes something changes what has exactly
this name (`exact_…`), and nothing that resembles it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from cyclopts import Parameter

from penstock.cli.times import read_moment
from penstock.client import ApiError, Client
from penstock.client.names import read_name
from penstock.errors import Conflict, Invalid, NotFound
from penstock.schema.catalog import EntityId

Kind = Literal["DATASET", "JOB"]

NODE_PREFIXES = ("dataset:", "datasetField:", "job:", "run:")
FOUND_MAX = 1000
_KINDS: tuple[Kind, ...] = ("DATASET", "JOB")
_SUGGESTED_MAX = 5
_FORBIDDEN = 403
_NOT_FOUND = 404


class _Thing(NamedTuple):
    """A dataset or a job, by its own name."""

    kind: str
    namespace: str
    name: str
    is_deleted: bool = False

    @property
    def node_id(self) -> str:
        return f"{self.kind.lower()}:{self.namespace}:{self.name}"


def find_node(client: Client, text: str) -> str:
    """The node id that a text means: itself, or that of the one thing that has this name.

    The last part of a dotted name will do where only one thing has it.
    """
    if text.startswith(NODE_PREFIXES):
        return text
    return _find(client, text, None).node_id


def find_entity(client: Client, text: str, kind: Kind, namespace: str | None) -> EntityId:
    """The dataset or job that a text means; with a namespace it is simply the name there."""
    if namespace is not None:
        return EntityId(namespace, text)
    if text.startswith(f"{kind.lower()}:"):
        return client.lineage(text, hops=0).graph[0].data.id
    found = _find(client, text, kind)
    return EntityId(found.namespace, found.name)


def find_dataset(client: Client, text: str, namespace: str | None) -> tuple[str, str]:
    """The namespace and the name of the dataset that a text means."""
    found = find_entity(client, text, "DATASET", namespace)
    return found.namespace, found.name


def find_job(client: Client, text: str, namespace: str | None) -> tuple[str, str]:
    """The namespace and the name of the job that a text means."""
    found = find_entity(client, text, "JOB", namespace)
    return found.namespace, found.name


def exact_dataset(client: Client, text: str, namespace: str | None) -> tuple[str, str]:
    """The namespace and the name of the dataset that is to be changed."""
    return _exact(client, text, "DATASET", namespace)


def exact_job(client: Client, text: str, namespace: str | None) -> tuple[str, str]:
    """The namespace and the name of the job that is to be changed."""
    return _exact(client, text, "JOB", namespace)


def deleted_dataset(client: Client, text: str, namespace: str | None) -> tuple[str, str]:
    """The namespace and the name of the dataset that is to be brought back."""
    return _deleted(client, text, "DATASET", namespace)


def deleted_job(client: Client, text: str, namespace: str | None) -> tuple[str, str]:
    """The namespace and the name of the job that is to be brought back."""
    return _deleted(client, text, "JOB", namespace)


def name_job(client: Client, text: str, namespace: str | None) -> EntityId:
    """The job that a text means, which need not be there yet: NAMESPACE/NAME is taken as it is.

    A plain name means the one job that has it, never one that only resembles it.
    """
    if namespace is None and "/" in text and not text.startswith("job:"):
        return read_name(text)
    try:
        return EntityId(*exact_job(client, text, namespace))
    except NotFound as error:
        raise NotFound(f"a new job is named NAMESPACE/NAME, and {error}") from None


def _find(client: Client, text: str, kind: Kind | None) -> _Thing:
    """The only thing of this name; else the only one whose name ends so; else the only hit."""
    if named := _named(client, text, kind):
        return _only([thing for thing in named if not thing.is_deleted] or named, text)
    found = _search(client, text, kind)[0]
    whole = [thing for thing in found if thing.name == text]
    ends = [thing for thing in found if _last_part(thing.name) == text]
    if candidates := whole or ends or found:
        return _only(candidates, text)
    raise _nothing(text, kind, ())


def _exact(client: Client, text: str, kind: Kind, namespace: str | None) -> tuple[str, str]:
    if namespace is not None:
        return namespace, text
    if named := _named(client, text, kind):
        return _name(_only(named, text))
    found, is_all = _search(client, text, kind)
    whole = [thing for thing in found if thing.name == text]
    if not is_all:
        raise Conflict(
            f"too many names are like {text!r} to know that only one {kind.lower()} has it; "
            "write NAMESPACE/NAME"
        )
    if not whole:
        raise _nothing(text, kind, found)
    return _name(_only(whole, text))


def _deleted(client: Client, text: str, kind: Kind, namespace: str | None) -> tuple[str, str]:
    if namespace is not None:
        return namespace, text
    what = kind.lower()
    # Search does not find what is deleted: a plain name could only mean something else.
    if "/" not in text and not text.startswith(f"{what}:"):
        raise Invalid(f"{text!r} says no namespace; write a deleted {what} as NAMESPACE/NAME")
    named = _named(client, text, kind)
    if not named:
        raise _nothing(text, kind, ())
    return _name(_only([thing for thing in named if thing.is_deleted] or named, text))


def _named(client: Client, text: str, kind: Kind | None) -> list[_Thing]:
    """What NAMESPACE/NAME or a node id names, deleted or not.

    Second names are the server's to know, so it is asked. A namespace may hold slashes and
    colons itself, so every reading is.
    """
    read = [
        _read(client, each, *reading)
        for each in (_KINDS if kind is None else (kind,))
        for reading in _readings(text, each)
    ]
    things = list(dict.fromkeys(thing for thing in read if isinstance(thing, _Thing)))
    forbidden = [error for error in read if isinstance(error, ApiError)]
    # Another reading than the one that was meant may well be in a namespace of others.
    if forbidden and len(forbidden) == len(read):
        raise forbidden[0]
    return things


def _readings(text: str, kind: Kind) -> Iterator[tuple[str, str]]:
    """Every way to read a text as a namespace and a name."""
    prefix = f"{kind.lower()}:"
    sign, rest = (":", text.removeprefix(prefix)) if text.startswith(prefix) else ("/", text)
    for at, letter in enumerate(rest):
        if letter == sign and rest[:at] and rest[at + 1 :]:
            yield rest[:at], rest[at + 1 :]


def _read(client: Client, kind: Kind, namespace: str, name: str) -> _Thing | ApiError | None:
    """What has this name, nothing, or that it may not be seen."""
    ask = client.dataset if kind == "DATASET" else client.job
    try:
        found = ask(namespace, name)
    except ApiError as error:
        if error.code == _FORBIDDEN:
            return error
        if error.code != _NOT_FOUND:
            raise
        return _read_deleted(client, _Thing(kind, namespace, name, is_deleted=True))
    return _Thing(kind, found.namespace, found.name)


def _read_deleted(client: Client, thing: _Thing) -> _Thing | None:
    """A thing if it is there after all; graphs can begin at what is deleted."""
    try:
        found = client.lineage(thing.node_id, hops=0).graph[0].data.id
    except ApiError as error:
        if error.code not in (_FORBIDDEN, _NOT_FOUND):
            raise
        return None
    return thing if (found.namespace, found.name) == (thing.namespace, thing.name) else None


def _search(client: Client, text: str, kind: Kind | None) -> tuple[list[_Thing], bool]:
    """What is found by a text as words, and whether that is all."""
    found = client.search(text, kind=kind, limit=FOUND_MAX)
    things = [_Thing(each.type, each.namespace, each.name) for each in found.results]
    return things, found.total_count == len(things)


def _only(candidates: Sequence[_Thing], text: str) -> _Thing:
    if len(candidates) == 1:
        return candidates[0]
    choices = [thing.node_id for thing in candidates[:_SUGGESTED_MAX]]
    if len(set(choices)) < len(choices):
        choices = [f"--namespace {each.namespace} {each.name}" for each in candidates]
    if len(candidates) > len(choices):
        choices.append(f"{len(candidates) - len(choices):,} others")
    raise Conflict(f"{text!r} may be {' or '.join(choices)}; say which")


def _nothing(text: str, kind: Kind | None, alike: Sequence[_Thing]) -> NotFound:
    what = kind.lower() if kind else "dataset or job"
    if alike:
        likely = " or ".join(f"{each.namespace}/{each.name}" for each in alike[:_SUGGESTED_MAX])
        return NotFound(f"there is no {what} {text!r}; did you mean {likely}?")
    return NotFound(
        f"there is no {what} {text!r}; `penstock search WORDS` finds names, "
        "dataset:NAMESPACE:NAME and job:NAMESPACE:NAME name one exactly"
    )


def _name(thing: _Thing) -> tuple[str, str]:
    return thing.namespace, thing.name


def _last_part(name: str) -> str:
    return re.split(r"[./]", name)[-1]


ArcName = Annotated[str, Parameter(help="the arc: NAME or NAMESPACE/NAME")]
LotId = Annotated[str, Parameter(help="the lot")]
From = Annotated[
    str | None,
    Parameter(name="--from", help="the first time or lot; 7d is that long ago", show_default=False),
]
To = Annotated[
    str | None,
    Parameter(name="--to", help="the time to end before, or the last lot", show_default=False),
]
_INTERVAL_LOT = re.compile(r"\d{8}PT\w+")


def find_arc(client: Client, text: str, namespace: str | None = None) -> EntityId:
    """The arc that a text means."""
    if namespace is not None:
        return EntityId(namespace, text)
    return choose_arc([EntityId(arc.namespace, arc.name) for arc in client.arcs().arcs], text)


def choose_arc(known: Sequence[EntityId], text: str) -> EntityId:
    """The one of these arcs that a text means."""
    found = [arc for arc in known if text in (arc.name, f"{arc.namespace}/{arc.name}")]
    if len(found) == 1:
        return found[0]
    if found:
        choices = " or ".join(f"{arc.namespace}/{arc.name}" for arc in found)
        raise Conflict(f"{text!r} may be {choices}; say which")
    if not known:
        raise NotFound("there are no arcs yet; declare one with `penstock arcs apply FILE`")
    raise NotFound(f"there is no arc {text!r}; `penstock arcs list` lists them")


def read_bound(text: str | None) -> str | None:
    """A lot as it is, or a time; a span such as 7d is that long ago."""
    if text is None or _INTERVAL_LOT.fullmatch(text):
        return text
    return read_moment(text)
