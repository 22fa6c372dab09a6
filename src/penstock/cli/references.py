"""What people mean when they name a dataset or a job."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from penstock.client import ApiError, Client
from penstock.client.documents import EntityId, SearchResult
from penstock.client.graphs import DatasetNode, JobNode
from penstock.client.names import read_name
from penstock.errors import Conflict, NotFound

Kind = Literal["DATASET", "JOB"]

NODE_PREFIXES = ("dataset:", "datasetField:", "job:", "run:")
_FOUND_MAX = 1000
_SUGGESTED_MAX = 5


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
        return _read_node(client, text).data.id
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


def name_job(client: Client, text: str, namespace: str | None) -> EntityId:
    """The job that a text means, which need not be there yet: NAMESPACE/NAME is taken as it is.

    A plain name means the one job that has it, never one that only resembles it.
    """
    if namespace is None and "/" in text and not text.startswith("job:"):
        return read_name(text)
    found = find_entity(client, text, "JOB", namespace)
    exact = (found.name, _last_part(found.name), f"job:{found.namespace}:{found.name}")
    if namespace is None and text not in exact:
        raise NotFound(
            f"there is no job {text!r}; did you mean {found.namespace}/{found.name}? "
            "A new job is named NAMESPACE/NAME"
        )
    return found


def _find(client: Client, text: str, kind: Kind | None) -> SearchResult:
    found = client.search(text, kind=kind, limit=_FOUND_MAX).results
    whole = [r for r in found if text in (r.name, f"{r.namespace}/{r.name}")]
    ends = [r for r in found if _last_part(r.name) == text]
    candidates = whole or ends or list(found) or list(_deleted(client, text, kind))
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise Conflict(f"{text!r} may be {_choices(candidates)}; say which")
    what = kind.lower() if kind else "dataset or job"
    raise NotFound(
        f"there is no {what} {text!r}; `penstock search WORDS` finds names, "
        "dataset:NAMESPACE:NAME and job:NAMESPACE:NAME name one exactly"
    )


def _last_part(name: str) -> str:
    return re.split(r"[./]", name)[-1]


def _deleted(client: Client, text: str, kind: Kind | None) -> Iterator[SearchResult]:
    """Things that search does not find because they are deleted, by NAMESPACE/NAME."""
    for at, letter in enumerate(text):
        if letter != "/" or not text[:at] or not text[at + 1 :]:
            continue
        for prefix in ("dataset", "job") if kind is None else (kind.lower(),):
            try:
                node = _read_node(client, f"{prefix}:{text[:at]}:{text[at + 1 :]}")
            except ApiError as error:
                if error.code != 404:
                    raise
                continue
            named = node.data.id
            if f"{named.namespace}/{named.name}" == text:
                yield SearchResult(
                    prefix.upper(), named.name, node.data.updated_at, named.namespace, node.id
                )


def _read_node(client: Client, node_id: str) -> JobNode | DatasetNode:
    graph = client.lineage(node_id, depth=0).graph
    return graph[0]


def _choices(candidates: Sequence[SearchResult]) -> str:
    shown = " or ".join(result.node_id for result in candidates[:_SUGGESTED_MAX])
    more = len(candidates) - _SUGGESTED_MAX
    return f"{shown} or {more} others" if more > 0 else shown
