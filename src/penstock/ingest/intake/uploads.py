"""Uploaded payloads: each is for one batch, and one that is no batch's goes after a day.

An upload is bound to a submission before its batch is made, so that no other can have it meanwhile,
and spent when the batch is there. Between the two the same submission may ask again; nobody knows
of one that was cut off whether it was made, until the batches are looked through.
"""

from collections.abc import Collection
from typing import ClassVar

from penstock.catalog.commands.lookup import Write
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import DAY, Micros
from penstock.db import Transaction
from penstock.errors import Conflict
from penstock.ingest.queue.port import BatchFilter, IngestStore

KEPT: Micros = DAY  # how long an upload waits to be submitted
_PAGE = 250


class NoteUpload(Write, frozen=True):
    """Note that a payload is about to be uploaded, so that one that breaks off is found."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    url: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """One row, without a submission."""
        uow.tx.execute("put_upload", url=self.url, holder="", now=now)


class BindUpload(Write, frozen=True):
    """Let one submission have an upload; the same one may ask again, for ever if it has a key."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    url: str
    holder: str
    has_key: bool

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """A second submission is a Conflict: the first may delete what it has used."""
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
    """Let others have an upload that a submission was bound to and did not use."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    url: str
    holder: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Nothing happens if another has it by now."""
        if uow.tx.fetch_one("upload", url=self.url) == (self.holder, ""):
            uow.tx.execute("put_upload", url=self.url, holder="", now=now)


class SpendUpload(Write, frozen=True):
    """Note which batch an upload was submitted as."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    url: str
    batch_id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """From here on it goes with its batch."""
        uow.tx.execute("spend_upload", url=self.url, batch_id=self.batch_id)


class ForgetUpload(Write, frozen=True):
    """Forget an upload whose file is gone."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    url: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """The row goes."""
        uow.tx.execute("forget_upload", url=self.url)


def stale_uploads(tx: Transaction, now: Micros, most: int) -> list[tuple[str, str]]:
    """Uploads that have long been no batch's, as far as is known, each with who had it last."""
    return [
        (url, holder) for url, holder in tx.fetch("stale_uploads", before=now - KEPT, most=most)
    ]


def batches_of(store: IngestStore, urls: Collection[str]) -> dict[str, str]:
    """Which batches were made of these uploads; every batch may have to be looked at."""
    found: dict[str, str] = {}
    before: str | None = None
    while len(found) < len(urls) and (batches := store.batches(BatchFilter(), _PAGE, before)):
        found |= {
            batch.submission.payload_url: batch.id
            for batch in batches
            if batch.submission.payload_url in urls
        }
        before = batches[-1].id
    return found
