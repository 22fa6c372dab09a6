"""Uploaded payloads: each is for one batch, and is deleted after a day without one.

An upload is bound to a submission before its batch is made, so that no other submission can use
it, and spent when the batch exists. Between the two the same submission may be repeated. After a
crash between the two, only a search through the batches shows whether the batch was made.
"""

from collections.abc import Collection
from typing import ClassVar

from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import DAY, Micros
from penstock.db import Transaction
from penstock.errors import Conflict
from penstock.ingest.queue.port import BatchFilter, IngestStore

UPLOAD_LIFETIME: Micros = DAY  # of an upload without a batch
_PAGE = 250


class RegisterUpload(Write, frozen=True):
    """Register a payload before its upload, so that an interrupted upload is deleted later."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    url: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute("put_upload", url=self.url, holder="", now=now)


class BindUpload(Write, frozen=True):
    """Bind an upload to a submission; the same submission may repeat it, for ever with a key."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    url: str
    holder: str
    has_key: bool

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Raise Conflict for a second submission: the first deletes the upload with its batch."""
        holder, batch_id = uow.tx.fetch_one("upload", url=self.url) or ("", "")
        if batch_id and (holder != self.holder or not self.has_key):
            raise Conflict(
                f"{self.url} was submitted already, as batch {batch_id}; "
                "upload it again to submit it again"
            )
        if holder not in ("", self.holder):
            raise Conflict(
                f"{self.url} was submitted otherwise, and may be a batch already; "
                "submit it as before, or upload it again"
            )
        uow.tx.execute("put_upload", url=self.url, holder=self.holder, now=now)


class FreeUpload(Write, frozen=True):
    """Unbind an upload from a submission that did not use it."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    url: str
    holder: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Do nothing if another submission has it now."""
        if uow.tx.fetch_one("upload", url=self.url) == (self.holder, ""):
            uow.tx.execute("put_upload", url=self.url, holder="", now=now)


class SpendUpload(Write, frozen=True):
    """Record the batch that an upload was submitted as."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    url: str
    batch_id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute("spend_upload", url=self.url, batch_id=self.batch_id)


class DeleteUpload(Write, frozen=True):
    """Delete the row of an upload whose file is deleted."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    url: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute("forget_upload", url=self.url)


def stale_uploads(tx: Transaction, now: Micros, most: int) -> list[tuple[str, str]]:
    """Return old uploads without a known batch, each with the submission it was bound to."""
    return [
        (url, holder)
        for url, holder in tx.fetch("stale_uploads", before=now - UPLOAD_LIFETIME, most=most)
    ]


def find_batches(store: IngestStore, urls: Collection[str]) -> dict[str, str]:
    """Find the batches of these uploads; this may read every batch."""
    batch_ids: dict[str, str] = {}
    before: str | None = None
    while len(batch_ids) < len(urls) and (batches := store.batches(BatchFilter(), _PAGE, before)):
        batch_ids |= {
            batch.submission.payload_url: batch.id
            for batch in batches
            if batch.submission.payload_url in urls
        }
        before = batches[-1].id
    return batch_ids
