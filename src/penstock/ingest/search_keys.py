"""The texts by which deposits are found: ARKs, local ids, file names, digests, depositors.

They are kept in SQL wherever the queue is, and written in the transaction that records a deposit.
A version adds the files that are new in it, so a file that is inherited is found once.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from penstock.catalog.rows import Row
from penstock.db import Transaction
from penstock.ingest.archive.arks import plain
from penstock.ingest.archive.ocfl.repository import Stored
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
    """A text by which something is found. `reference` is an ARK, or a depositor's batch."""

    namespace: str
    key: str
    kind: SearchKeyKind
    name: str
    collection: str
    reference: str
    version: int


def keys_of_version(
    stored: Stored, *, namespace: str, collection: str, folder: str
) -> Iterator[SearchKeyRow]:
    """The ARK with the first version, and the files below `folder` that are new in this one.

    The ARK is also found without its label and without its authority: `fk4rx9d523`.
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
    """The local ids and the depositor of a deposit."""

    def row(kind: SearchKeyKind, name: str, reference: str, number: int) -> SearchKeyRow:
        return SearchKeyRow(namespace, fold(name), kind, name, collection, reference, number)

    for name in job.identifiers.local_id:
        yield row(SearchKeyKind.LOCAL_ID, name, ark, version)
    submitter = job.configuration.submitter
    if submitter:
        yield row(SearchKeyKind.DEPOSITOR, submitter, job.configuration.batch_id, 0)


def find_keys(tx: Transaction, text: str, namespace: str | None, limit: int) -> list[SearchKeyRow]:
    """The keys that are, or begin with, a text; whole keys first, in one namespace or in all."""
    sought = fold(plain(text) if text.startswith("ark:") else text)
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
    """A text as it is compared: upper and lower case are alike."""
    return text.strip().casefold()[:KEY_CHARS_MAX]


def _namespaces(tx: Transaction) -> Sequence[str]:
    return [name for (name,) in tx.fetch("namespaces_of_search_keys")]
