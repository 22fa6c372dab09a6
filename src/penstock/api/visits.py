"""One call at the ingest desk: who makes it, and what they may touch."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from penstock.access.keys import Key
from penstock.catalog.openlineage import Limits, check_name, check_text
from penstock.catalog.reading import get_dataset
from penstock.catalog.writer import Command
from penstock.errors import NotFound
from penstock.ingest.collections import Collection, all_collections, find_collection
from penstock.ingest.desk import Act, Desk
from penstock.ingest.store import IngestStore
from penstock.ingest.values import Batch, Hold, HoldKind, IngestJob
from penstock.ingest.workshop import Workshop
from penstock.plane import Plane


@dataclass
class Visit:
    """A call that works on the queue; it may wait, so it has one of ingest's own threads.

    A key that is for one namespace touches the collections of that namespace, their batches,
    jobs and objects, and nothing else. `status` replaces the route's.
    """

    plane: Plane
    key: Key
    limits: Limits
    status: int | None = None

    @property
    def desk(self) -> Desk:
        """What depositors and administrators can ask for."""
        return self.plane.desk

    @property
    def shop(self) -> Workshop:
        """Where objects are kept."""
        return self.plane.shop

    @property
    def store(self) -> IngestStore:
        """The queue."""
        return self.plane.shop.store

    def act(self, why: str) -> Act:
        """Something done by hand, for the audit log."""
        return Act(self.key.name, why)

    def write(self, command: Command[Collection] | Command[None]) -> None:
        """Write to the catalog, and go on once it is committed."""
        self.plane.catalog.submit(command).result()

    def batch(self, batch_id: str) -> Batch:
        """A batch that the key may touch."""
        batch = self.store.batch(batch_id)
        self.require(batch.collection)
        return batch

    def job(self, job_id: str) -> IngestJob:
        """An ingest job that the key may touch."""
        job = self.store.job(job_id)
        self.require(job.configuration.profile_name)
        return job

    def collection(self, name: str) -> Collection:
        """A collection that the key may touch, as it is now."""
        with self.plane.catalog.read() as tx:
            found = find_collection(tx, name)
        self.key.require_own(found.namespace)
        return found

    def require_dataset(self, namespace: str, dataset: str) -> None:
        """Refuse a key that is for one namespace a second name of a dataset of another."""
        if self.key.namespace is None:
            return
        with suppress(NotFound), self.plane.catalog.read() as tx:
            found = get_dataset(tx, namespace, dataset, include_deleted=True)
            self.key.require_own(found.namespace)

    def collections(self) -> list[Collection]:
        """Every collection that the key may touch, by name."""
        with self.plane.catalog.read() as tx:
            found = all_collections(tx)
        own = self.key.namespace
        return [each for each in found if own is None or each.namespace == own]

    def require(self, collection: str) -> None:
        """Refuse a key that is for one namespace a collection of another."""
        if self.key.namespace is not None:
            self.collection(collection)

    def narrowed(self, collection: str | None) -> frozenset[str] | None:
        """The collections that a list is about; None is all, even those that are gone."""
        if collection is not None:
            self.require(collection)
            return frozenset({collection})
        if self.key.namespace is None:
            return None
        return frozenset(each.name for each in self.collections())

    def held_collections(self) -> Mapping[str, Hold]:
        """The collections that somebody has stopped."""
        return {h.name: h for h in self.store.holds() if h.kind is HoldKind.COLLECTION}

    def check_names(self, **names: str | None) -> None:
        """Refuse names in a body that nothing can have."""
        for what, name in names.items():
            if name is not None:
                check_name(name, what, self.limits.name_length_max)

    def check_texts(self, **texts: str | None) -> None:
        """Refuse texts in a body that are empty, too long or hold a NUL."""
        for what, text in texts.items():
            if text is not None:
                check_text(text, what, self.limits.name_length_max)
