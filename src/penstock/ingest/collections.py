"""Collections: the targets of submissions, and their settings."""

import re
from collections.abc import Callable
from typing import ClassVar

import msgspec

from penstock.access import audit
from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import Micros
from penstock.db import Transaction
from penstock.errors import Conflict, Invalid, NotFound
from penstock.ingest.archive.arks import ark_of
from penstock.ingest.intake.places import Places, check_url
from penstock.ingest.notifications.mail import check_address
from penstock.schema.ingest import BY_BATCH, MASK, Collection, Minting
from penstock.schema.lot_ids import Interval

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_decode = msgspec.json.Decoder

OWNER_BYTES_MAX = 500


def check_collection(collection: Collection) -> Collection:
    """Return the profile, or raise Invalid if its settings cannot work."""
    if not _NAME.fullmatch(collection.name):
        raise Invalid(
            f"{collection.name[:100]!r} cannot name a collection; use letters, digits, . _ and -"
        )
    if not collection.dataset.strip() or not collection.namespace.strip():
        raise Invalid(f"collection {collection.name} needs a namespace and a dataset")
    if len(collection.owner.encode()) > OWNER_BYTES_MAX:
        raise Invalid(
            f"the owner of collection {collection.name} has more than {OWNER_BYTES_MAX} bytes; "
            "give a shorter one"
        )
    if collection.lots not in (BY_BATCH, *Interval):
        raise Invalid(
            f"{collection.lots[:100]!r} does not define the lots of collection {collection.name}"
            f"; write {BY_BATCH}, {', '.join(Interval)}"
        )
    if collection.minting is Minting.LOCAL:
        ark_of(collection.shoulder, 0)
    for address in collection.mail:
        check_address(address)
    places = Places(collection.places)
    if collection.callback is not None:
        if not collection.callback.startswith(("http://", "https://")):
            raise Invalid(
                f"the callback {collection.callback!r} is not called over http or https; give such "
                "a URL, or none"
            )
        check_url(collection.callback, places)
    return collection


class PutCollection(Write, frozen=True):
    """Create a collection or change its profile; a masked secret stays as it is.

    The secret is already encrypted.
    """

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    collection: Collection

    def execute(self, uow: UnitOfWork, now: Micros) -> Collection:
        collection = check_collection(self.collection)
        _check_storage(uow.tx, collection)
        before = _find(uow.tx, collection.name)
        if collection.callback_secret == MASK and before is not None:
            secret = before.callback_secret
            collection = msgspec.structs.replace(collection, callback_secret=secret)
        profile = msgspec.json.encode(collection.masked).decode()
        audit.append(uow.tx, now, self.who, "put collection", collection.name, profile)
        uow.tx.execute(
            "put_collection",
            name=collection.name,
            profile=msgspec.json.encode(collection).decode(),
            now=now,
        )
        return collection


def _check_storage(tx: Transaction, collection: Collection) -> None:
    """Refuse another storage once the collection has objects: they would not be found."""
    row = tx.fetch_one("storage_of_collection", collection=collection.name)
    if row is not None and row[0] != collection.storage_url:
        raise Conflict(
            f"collection {collection.name} has objects in {row[0] or 'the storage of the server'}, "
            f"which would not be found in {collection.storage_url or 'that of the server'}; "
            "make another collection for another storage"
        )


class DeleteCollection(Write, frozen=True):
    """Delete a collection without open batches; its stored objects stay."""

    exclusive: ClassVar[bool] = True  # it writes to the audit log

    who: str
    name: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        tx = uow.tx
        if _find(tx, self.name) is None:
            raise _unknown(self.name)
        audit.append(tx, now, self.who, "delete collection", self.name)
        tx.execute("forget_collection", name=self.name)


def find_collection(tx: Transaction, name: str) -> Collection:
    """Return a collection, or raise NotFound."""
    collection = _find(tx, name)
    if collection is None:
        raise _unknown(name)
    return collection


def all_collections(tx: Transaction) -> list[Collection]:
    """Return every collection, by name."""
    return [_profile(profile) for (profile,) in tx.fetch("all_collections")]


def stored_secrets(tx: Transaction) -> dict[str, str]:
    """Return the stored secrets of collections, by owner."""
    return {
        f"the callback secret of collection {each.name}": each.callback_secret
        for each in all_collections(tx)
        if each.callback_secret is not None
    }


def _find(tx: Transaction, name: str) -> Collection | None:
    row = tx.fetch_one("collection", name=name)
    return None if row is None else _profile(row[0])


_profile: Callable[[str], Collection] = _decode(Collection).decode


def _unknown(name: str) -> NotFound:
    return NotFound(
        f"there is no collection {name[:100]!r}; make it with `penstock ingest collections set`"
    )


def ingest_job_name(collection: Collection) -> str:
    """Return the name of the catalog job whose runs are the deposits of a collection."""
    return f"ingest.{collection.name}"
