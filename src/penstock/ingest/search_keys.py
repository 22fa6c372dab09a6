"""Search keys of deposits: ARKs, local ids, file names, digests and depositors.

They are in SQL wherever the queue is; the transaction that records a deposit writes them.
A version adds only the files that are new in it, so an inherited file has one key.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from penstock.catalog.rows import Row
from penstock.db import Transaction
from penstock.ingest.archive.arks import normalize_ark
from penstock.ingest.archive.ocfl.repository import StoredVersion
from penstock.ingest.models import IngestJob

KEY_CHARS_MAX = 200
QUERY_CHARS_MIN = 3  # shorter beginnings match too much
_LAST_CHARACTER = "\U0010ffff"


class SearchKeyKind(StrEnum):
    """The property of a deposit that a key was made from."""

    ARK = "ark"
    LOCAL_ID = "local-id"
    FILE = "file"
    DIGEST = "digest"
    DEPOSITOR = "depositor"


class SearchKeyRow(Row, frozen=True):
    """A search key. `reference` is an ARK, or a depositor's batch."""

    namespace: str
    key: str
    kind: SearchKeyKind
    name: str
    collection: str
    reference: str
    version: int


def keys_of_version(
    stored: StoredVersion, *, namespace: str, collection: str, folder: str
) -> Iterator[SearchKeyRow]:
    """Yield the ARK of a first version, and the files below `folder` that are new in this version.

    The ARK has keys without its label and without its authority too: `fk4rx9d523`.
    """
    ark, version = stored.ark, stored.version

    def row(kind: SearchKeyKind, key: str, name: str) -> SearchKeyRow:
        return SearchKeyRow(namespace, fold(key), kind, name, collection, ark, version)

    if version == 1:
        authority, _, name = ark.removeprefix("ark:/").partition("/")
        for key in (ark, f"{authority}/{name}", name):
            yield row(SearchKeyKind.ARK, key, ark)
    for path, digest in sorted(stored.changed.items()):
        if not path.startswith(folder):
            continue
        name = path.removeprefix(folder)
        yield row(SearchKeyKind.DIGEST, digest, name)
        for key in dict.fromkeys((PurePosixPath(name).name, name)):
            yield row(SearchKeyKind.FILE, key, name)


def keys_of_deposit(
    job: IngestJob, ark: str, version: int, *, namespace: str, collection: str
) -> Iterator[SearchKeyRow]:
    """Yield the keys of a deposit's local ids and depositor."""

    def row(kind: SearchKeyKind, name: str, reference: str, number: int) -> SearchKeyRow:
        return SearchKeyRow(namespace, fold(name), kind, name, collection, reference, number)

    for name in job.identifiers.local_id:
        yield row(SearchKeyKind.LOCAL_ID, name, ark, version)
    submitter = job.configuration.submitter
    if submitter:
        yield row(SearchKeyKind.DEPOSITOR, submitter, job.configuration.batch_id, 0)


def find_keys(tx: Transaction, text: str, namespace: str | None, limit: int) -> list[SearchKeyRow]:
    """Return the keys that begin with a text, exact matches first, in one namespace or in all."""
    sought = fold(normalize_ark(text) if text.startswith("ark:") else text)
    if len(sought) < QUERY_CHARS_MIN:
        return []
    namespaces = [namespace] if namespace is not None else _namespaces(tx)
    rows: list[SearchKeyRow] = []
    for each in namespaces:
        range_ = {"first": sought, "last": sought + _LAST_CHARACTER}
        rows += tx.rows(SearchKeyRow, "search_keys", namespace=each, limit=limit, **range_)
    rows.sort(key=lambda row: (row.key, row.kind, row.name, row.reference, row.version))
    return rows[:limit]


def fold(text: str) -> str:
    """Fold case and cut the text to the length of a key."""
    return text.strip().casefold()[:KEY_CHARS_MAX]


def _namespaces(tx: Transaction) -> Sequence[str]:
    return [name for (name,) in tx.fetch("namespaces_of_search_keys")]
