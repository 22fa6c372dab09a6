"""Node ids: names of nodes in graphs, and their meaning.

`dataset:ns:name`, `datasetField:ns:name:field`, `job:ns:name` and `run:id`; all but the last may
end with `#version`. Namespaces and names contain colons and hashes themselves (`s3://bucket`,
`postgres://host:5432`), so no fixed split is right. Every possible reading is looked up, and the
one that exists is meant. Of several, one that is not deleted wins, then the one with the longest
namespace.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec import Struct

from penstock.catalog.events.child_jobs import child_of, find_children
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid, NotFound
from penstock.ids import dataset_id, job_id, run_id

COLONS_MAX = 64
_VERSION = re.compile(
    r"V?(?P<number>[0-9]{1,15})|(?P<id>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})", re.IGNORECASE
)


class PinnedVersion(Struct, frozen=True):
    """The dataset version that a node id names."""

    id: str
    number: int
    fields: str
    column_set_id: str | None
    created_at: Micros
    published_at: Micros | None

    @property
    def stood_at(self) -> Micros:
        """Return when this version became current, or, if it never did, when it began.

        An implied version is published at the beginning of time; its begin counts.
        """
        return self.published_at or self.created_at


class PinnedJobVersion(Struct, frozen=True):
    """The job version that a node id names; inputs and outputs are JSON lists of names."""

    id: str
    inputs: str
    outputs: str


class NamedDataset(Struct, frozen=True):
    """The dataset or field that a node id names."""

    id: str
    namespace: str
    name: str
    created_at: Micros
    field: str | None = None
    version: PinnedVersion | None = None


class NamedJob(Struct, frozen=True):
    """The job that a node id names."""

    id: str
    namespace: str
    name: str
    created_at: Micros
    version: PinnedJobVersion | None = None


class NamedRun(Struct, frozen=True):
    """The run that a node id names."""

    id: str
    job_id: str
    ended_at: Micros | None


Named = NamedDataset | NamedJob | NamedRun


def time_of(named: Named, as_of: Micros | None) -> Micros | None:
    """Return the time of the requested graph: the caller's, or that of the version or run."""
    if isinstance(named, NamedRun):
        return named.ended_at if as_of is None else as_of
    if isinstance(named, NamedDataset) and named.version is not None:
        if as_of is not None:
            raise Invalid("a dataset with #version has a time of its own; leave one of them out")
        return named.version.stood_at
    if as_of is not None and named.created_at > as_of:
        raise NotFound(
            f"{named.namespace}:{named.name} was not there at {format_time(as_of)}; "
            f"ask for a time from {format_time(named.created_at)} on"
        )
    return as_of


class _Reading(Struct, frozen=True):
    """One possible reading of a node id."""

    namespace: str
    name: str
    field: str | None
    version: str | None


def dataset_node(namespace: str, name: str) -> str:
    """Return the node id of a dataset."""
    return f"dataset:{namespace}:{name}"


def field_node(namespace: str, name: str, field: str) -> str:
    """Return the node id of a dataset field."""
    return f"datasetField:{namespace}:{name}:{field}"


def job_node(namespace: str, name: str) -> str:
    """Return the node id of a job."""
    return f"job:{namespace}:{name}"


def find_node(tx: Transaction, node_id: str) -> Named:
    """Return what a node id means among existing things."""
    kind, _, rest = node_id.partition(":")
    if kind not in ("dataset", "datasetField", "job", "run") or not rest or "\x00" in rest:
        raise _not_a_node_id(node_id)
    if rest.count(":") > COLONS_MAX:
        raise Invalid(f"node id {_short(node_id)} has more than {COLONS_MAX} colons; shorten it")
    if kind == "run":
        return find_run(tx, rest)
    readings = list(_readings(rest, has_field=kind == "datasetField"))
    if not readings:
        raise _not_a_node_id(node_id)
    return _find_job(tx, rest, readings) if kind == "job" else _find_dataset(tx, rest, readings)


def find_run(tx: Transaction, text: str) -> NamedRun:
    """Return the run with this id, which may be no UUID."""
    row = tx.fetch_one("lineage_run_named", id=run_id(text))
    if row is None:
        raise NotFound(f"there is no run {_short(text)}; list the runs of its job")
    return NamedRun(*row)


def _readings(rest: str, *, has_field: bool) -> Iterator[_Reading]:
    """Return every possible reading, the likeliest first.

    Any text can be the name of a field, so a version comes first there. Elsewhere a thing whose
    name ends like a version comes first.
    """
    head, _, tail = rest.rpartition("#")
    versions: list[tuple[str, str | None]] = [(rest, None)]
    if head and _VERSION.fullmatch(tail):
        versions.insert(0 if has_field else 1, (head, tail))
    for text, version in versions:
        for pieces in _splits(text, 3 if has_field else 2):
            field = pieces[2] if has_field else None
            yield _Reading(pieces[0], pieces[1], field, version)


def _splits(text: str, count: int) -> Iterator[list[str]]:
    """Return every split at colons into this many pieces, longest leading pieces first."""
    colons = [at for at, letter in enumerate(text) if letter == ":"]
    for cut in sorted(combinations(colons, count - 1), reverse=True):
        ends = zip((-1, *cut), (*cut, len(text)), strict=True)
        pieces = [text[begin + 1 : end] for begin, end in ends]
        if all(pieces):
            yield pieces


def _find_dataset(tx: Transaction, rest: str, readings: list[_Reading]) -> NamedDataset:
    by_id = _by_id((dataset_id(reading.namespace, reading.name), reading) for reading in readings)
    rows = tx.fetch("lineage_datasets_named", ids=list(by_id))
    if not rows:
        raise NotFound(f"there is no dataset {_short(rest)}; search for a part of its name")
    row = min(rows, key=lambda row: (row[4], by_id[row[0]][0]))
    candidate, found, namespace, name, _, created_at = row
    reading = by_id[candidate][1]
    pinned = None
    if reading.version is not None:
        pinned = _dataset_version(tx, found, reading.version, f"{namespace}:{name}")
    return NamedDataset(found, namespace, name, created_at, reading.field, pinned)


def _find_job(tx: Transaction, rest: str, readings: list[_Reading]) -> NamedJob:
    by_id = _by_id((job_id(reading.namespace, reading.name), reading) for reading in readings)
    rows = tx.fetch("lineage_jobs_named", ids=list(by_id))
    if not rows and (child := _find_child_job(tx, readings)) is not None:
        return child
    if not rows:
        raise NotFound(f"there is no job {_short(rest)}; search for a part of its name")
    found, namespace, name, _, created_at = min(rows, key=lambda r: (r[3], by_id[r[0]][0]))
    pinned = None
    if (version := by_id[found][1].version) is not None:
        pinned = _job_version(tx, found, version, f"{namespace}:{name}")
    return NamedJob(found, namespace, name, created_at, pinned)


def _find_child_job(tx: Transaction, readings: list[_Reading]) -> NamedJob | None:
    """Return the child job that Marquez calls by the name in a node id."""
    names = [(reading.namespace, reading.name) for reading in readings]
    children = find_children(tx, names)
    for reading in readings:
        child = child_of(children, reading.namespace, reading.name)
        if child is not None:
            pinned = None
            if reading.version is not None:
                text = f"{child.namespace}:{child.name}"
                pinned = _job_version(tx, child.id, reading.version, text)
            return NamedJob(child.id, child.namespace, child.name, child.created_at, pinned)
    return None


def _by_id(readings: Iterable[tuple[str, _Reading]]) -> dict[str, tuple[int, _Reading]]:
    """Return each id with its first reading and the number of likelier readings."""
    found: dict[str, tuple[int, _Reading]] = {}
    for order, (candidate, reading) in enumerate(readings):
        found.setdefault(candidate, (order, reading))
    return found


def _dataset_version(tx: Transaction, dataset: str, text: str, name: str) -> PinnedVersion:
    match = _VERSION.fullmatch(text)
    if match is not None and match["number"]:
        number = int(match["number"])
        rows = tx.rows(PinnedVersion, "lineage_version_numbered", dataset=dataset, number=number)
    else:
        rows = tx.rows(PinnedVersion, "lineage_version_with_id", dataset=dataset, id=text.lower())
    if not rows:
        raise NotFound(f"dataset {_short(name)} has no version {text}; list its versions")
    return rows[0]


def _job_version(tx: Transaction, job: str, text: str, name: str) -> PinnedJobVersion:
    match = _VERSION.fullmatch(text)
    if match is None or match["id"] is None:
        raise Invalid(
            f"versions of a job have no numbers; name the version of job {_short(name)} by its id"
        )
    rows = tx.rows(PinnedJobVersion, "lineage_job_version_with_id", job=job, id=text.lower())
    if not rows:
        raise NotFound(f"job {_short(name)} has no version {text}; list its versions")
    return rows[0]


def _not_a_node_id(node_id: str) -> Invalid:
    return Invalid(
        f"{_short(node_id)} is not a node id; write dataset:NAMESPACE:NAME, "
        "datasetField:NAMESPACE:NAME:FIELD, job:NAMESPACE:NAME or run:ID, "
        "with #VERSION at the end to look at one version"
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")
