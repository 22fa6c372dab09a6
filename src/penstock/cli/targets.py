"""Resolve the names of datasets, jobs and arcs on the command line.

A command that only reads accepts similar names (`find_…`). A command that changes something
accepts only the exact name (`exact_…`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from cyclopts import Parameter

from penstock.cli.formats import read_moment
from penstock.client import ApiError, Client
from penstock.client.names import read_name
from penstock.errors import Conflict, Invalid, NotFound
from penstock.schema.catalog import EntityId

Kind = Literal["DATASET", "JOB"]
Name = tuple[str, str]  # namespace and name

Dataset = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or dataset:NAMESPACE:NAME")]
Job = Annotated[str, Parameter(help="NAME, NAMESPACE/NAME or job:NAMESPACE:NAME")]
ArcName = Annotated[str, Parameter(help="the arc: NAME or NAMESPACE/NAME")]
LotId = Annotated[str, Parameter(help="the lot")]
From = Annotated[
    str | None,
    Parameter(name="--from", help="the first time or lot; 7d is 7 days ago", show_default=False),
]
To = Annotated[
    str | None,
    Parameter(name="--to", help="the time to end before, or the last lot", show_default=False),
]

NODE_PREFIXES = ("dataset:", "datasetField:", "job:", "run:")
SEARCH_MAX = 1000
_KINDS: tuple[Kind, ...] = ("DATASET", "JOB")
_SUGGESTIONS_MAX = 5
_FORBIDDEN = 403
_NOT_FOUND = 404
_INTERVAL_LOT = re.compile(r"\d{8}PT\w+")


class _Entity(NamedTuple):
    """A dataset or a job, by its own name."""

    kind: str
    namespace: str
    name: str
    is_deleted: bool = False

    @property
    def node_id(self) -> str:
        return f"{self.kind.lower()}:{self.namespace}:{self.name}"


def find_node(client: Client, text: str) -> str:
    """Find the node id of a dataset or job; the last part of a dotted name is enough if unique."""
    return text if text.startswith(NODE_PREFIXES) else _find(client, text, None).node_id


def find_dataset(client: Client, text: str, namespace: str | None) -> Name:
    """Find the namespace and the name of a dataset."""
    return _find_name(client, text, "DATASET", namespace)


def find_job(client: Client, text: str, namespace: str | None) -> Name:
    """Find the namespace and the name of a job."""
    return _find_name(client, text, "JOB", namespace)


def _find_name(client: Client, text: str, kind: Kind, namespace: str | None) -> Name:
    if namespace is not None:
        return namespace, text
    if text.startswith(f"{kind.lower()}:"):
        node = client.lineage(text, hops=0).graph[0].data.id
        return node.namespace, node.name
    entity = _find(client, text, kind)
    return entity.namespace, entity.name


def exact_dataset(client: Client, text: str, namespace: str | None) -> Name:
    """Find the dataset with exactly this name, to change it."""
    return _find_exact(client, text, "DATASET", namespace)


def exact_job(client: Client, text: str, namespace: str | None) -> Name:
    """Find the job with exactly this name, to change it."""
    return _find_exact(client, text, "JOB", namespace)


def deleted_dataset(client: Client, text: str, namespace: str | None) -> Name:
    """Find the deleted dataset with this name."""
    return _find_deleted(client, text, "DATASET", namespace)


def deleted_job(client: Client, text: str, namespace: str | None) -> Name:
    """Find the deleted job with this name."""
    return _find_deleted(client, text, "JOB", namespace)


def job_or_new(client: Client, text: str, namespace: str | None) -> EntityId:
    """Find a job, or take NAMESPACE/NAME as the name of a new one.

    A plain name means the only job with exactly this name.
    """
    if namespace is None and "/" in text and not text.startswith("job:"):
        return read_name(text)
    try:
        return EntityId(*exact_job(client, text, namespace))
    except NotFound as error:
        raise NotFound(f"a new job is named NAMESPACE/NAME, and {error}") from None


def _find(client: Client, text: str, kind: Kind | None) -> _Entity:
    """Find the only entity of this name, else the only name with this end, else the only hit."""
    if entities := _read_names(client, text, kind):
        return _only([each for each in entities if not each.is_deleted] or entities, text)
    hits = _search(client, text, kind)[0]
    equal = [each for each in hits if each.name == text]
    ends = [each for each in hits if re.split(r"[./]", each.name)[-1] == text]
    if candidates := equal or ends or hits:
        return _only(candidates, text)
    raise _not_found(text, kind, ())


def _find_exact(client: Client, text: str, kind: Kind, namespace: str | None) -> Name:
    if namespace is not None:
        return namespace, text
    if entities := _read_names(client, text, kind):
        return _name(_only(entities, text))
    hits, is_complete = _search(client, text, kind)
    equal = [each for each in hits if each.name == text]
    if not is_complete:
        raise Conflict(
            f"too many names are similar to {text!r} to find the only {kind.lower()} with it; "
            "write NAMESPACE/NAME"
        )
    if not equal:
        raise _not_found(text, kind, hits)
    return _name(_only(equal, text))


def _find_deleted(client: Client, text: str, kind: Kind, namespace: str | None) -> Name:
    if namespace is not None:
        return namespace, text
    noun = kind.lower()
    # Search skips deleted entities, so a plain name could only find another one.
    if "/" not in text and not text.startswith(f"{noun}:"):
        raise Invalid(f"{text!r} has no namespace; write a deleted {noun} as NAMESPACE/NAME")
    entities = _read_names(client, text, kind)
    if not entities:
        raise _not_found(text, kind, ())
    return _name(_only([each for each in entities if each.is_deleted] or entities, text))


def _read_names(client: Client, text: str, kind: Kind | None) -> list[_Entity]:
    """Look up NAMESPACE/NAME or a node id, deleted entities included.

    The server knows aliases, so it resolves the names. A namespace may contain slashes and
    colons, so every division of the text is tried.
    """
    results = [
        _look_up(client, each, *division)
        for each in (_KINDS if kind is None else (kind,))
        for division in _divisions(text, each)
    ]
    entities = list(dict.fromkeys(each for each in results if isinstance(each, _Entity)))
    refusals = [error for error in results if isinstance(error, ApiError)]
    # Another division may fall into a namespace that the key may not see.
    if refusals and len(refusals) == len(results):
        raise refusals[0]
    return entities


def _divisions(text: str, kind: Kind) -> Iterator[Name]:
    """Divide a text into a namespace and a name, in every way."""
    prefix = f"{kind.lower()}:"
    sign, rest = (":", text.removeprefix(prefix)) if text.startswith(prefix) else ("/", text)
    for index, letter in enumerate(rest):
        if letter == sign and rest[:index] and rest[index + 1 :]:
            yield rest[:index], rest[index + 1 :]


def _look_up(client: Client, kind: Kind, namespace: str, name: str) -> _Entity | ApiError | None:
    """Look up an entity; the result is None if it is missing, an error if it is forbidden."""
    get = client.dataset if kind == "DATASET" else client.job
    try:
        entity = get(namespace, name)
    except ApiError as error:
        if error.code == _FORBIDDEN:
            return error
        if error.code != _NOT_FOUND:
            raise
        return _look_up_deleted(client, _Entity(kind, namespace, name, is_deleted=True))
    return _Entity(kind, entity.namespace, entity.name)


def _look_up_deleted(client: Client, entity: _Entity) -> _Entity | None:
    # Lineage graphs may begin at deleted nodes, other calls do not return them.
    try:
        node = client.lineage(entity.node_id, hops=0).graph[0].data.id
    except ApiError as error:
        if error.code not in (_FORBIDDEN, _NOT_FOUND):
            raise
        return None
    return entity if (node.namespace, node.name) == _name(entity) else None


def _search(client: Client, text: str, kind: Kind | None) -> tuple[list[_Entity], bool]:
    """Search for a text; the flag is whether the result is complete."""
    page = client.search(text, kind=kind, limit=SEARCH_MAX)
    entities = [_Entity(each.type, each.namespace, each.name) for each in page.results]
    return entities, page.total_count == len(entities)


def _only(candidates: Sequence[_Entity], text: str) -> _Entity:
    if len(candidates) == 1:
        return candidates[0]
    choices = [each.node_id for each in candidates[:_SUGGESTIONS_MAX]]
    if len(set(choices)) < len(choices):
        choices = [f"--namespace {each.namespace} {each.name}" for each in candidates]
    if len(candidates) > len(choices):
        choices.append(f"{len(candidates) - len(choices):,} others")
    raise Conflict(f"{text!r} is ambiguous; write {' or '.join(choices)}")


def _not_found(text: str, kind: Kind | None, similar: Sequence[_Entity]) -> NotFound:
    noun = kind.lower() if kind else "dataset or job"
    if similar:
        names = " or ".join(f"{each.namespace}/{each.name}" for each in similar[:_SUGGESTIONS_MAX])
        return NotFound(f"there is no {noun} {text!r}; did you mean {names}?")
    return NotFound(
        f"there is no {noun} {text!r}; `penstock search WORDS` finds names, "
        "dataset:NAMESPACE:NAME and job:NAMESPACE:NAME are exact"
    )


def _name(entity: _Entity) -> Name:
    return entity.namespace, entity.name


def find_arc(client: Client, text: str, namespace: str | None = None) -> Name:
    """Find the namespace and the name of an arc."""
    if namespace is not None:
        return namespace, text
    return choose_arc([(arc.namespace, arc.name) for arc in client.arcs().arcs], text)


def choose_arc(arcs: Sequence[Name], text: str) -> Name:
    """Choose the arc that a text names."""
    matches = [arc for arc in arcs if text in (arc[1], "/".join(arc))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise Conflict(f"{text!r} is ambiguous; write {' or '.join(map('/'.join, matches))}")
    if not arcs:
        raise NotFound("there are no arcs yet; declare one with `penstock arcs apply FILE`")
    raise NotFound(f"there is no arc {text!r}; `penstock arcs list` lists them")


def read_bound(text: str | None) -> str | None:
    """Read a lot or a time; a span such as 7d is that long ago."""
    if text is None or _INTERVAL_LOT.fullmatch(text):
        return text
    return read_moment(text)
