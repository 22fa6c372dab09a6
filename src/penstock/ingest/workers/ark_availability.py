"""Whether an ARK is free that was minted just now.

A database that was put back from a backup does not know what was stored since, and counts again
from there; the objects are still in the storage. Their ARKs are passed over.
"""

import logging
from collections.abc import Iterator

from penstock.clock import SECOND
from penstock.errors import Invalid, PenstockError
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.collections import all_collections
from penstock.ingest.context import IngestContext
from penstock.ingest.models import IngestJob
from penstock.schema.ingest import Collection

log = logging.getLogger(__name__)

_AWAY_SECONDS = 60  # until a storage that did not answer is asked again


def is_free(context: IngestContext, job: IngestJob, collection: Collection, ark: str) -> bool:
    """Whether no storage has an object under this ARK that this very deposit did not make."""
    key = job.configuration.key
    return _is_free_in(context.depository(collection), ark, key) and all(
        _is_free_elsewhere(context, other, ark, key) for other in _others(context, collection)
    )


def _others(context: IngestContext, collection: Collection) -> Iterator[Collection]:
    """One collection for each other storage that has ARKs of the same shoulder."""
    with context.catalog.read() as tx:
        alike = [each for each in all_collections(tx) if each.shoulder == collection.shoulder]
    by_storage = {each.kept_in: each for each in alike if each.kept_in != collection.kept_in}
    yield from by_storage.values()


def _is_free_elsewhere(context: IngestContext, other: Collection, ark: str, key: str) -> bool:
    """The same in another collection's storage; one that is away does not stop this collection."""
    if context.away.get(other.kept_in, 0) > context.clock():
        return True
    try:
        return _is_free_in(context.depository(other), ark, key)
    except PenstockError as error:
        context.away[other.kept_in] = context.clock() + _AWAY_SECONDS * SECOND
        log.warning("whether %s has objects of new ARKs is not known: %s", other.name, error)
        return True


def _is_free_in(depository: Depository, ark: str, key: str) -> bool:
    try:
        free = depository.is_free(ark, key)
    except Invalid as unreadable:
        log.warning("%s is passed over: %s", ark, unreadable)
        return False
    if not free:
        log.info("%s is passed over: %s has an object of it", ark, depository.url)
    return free
