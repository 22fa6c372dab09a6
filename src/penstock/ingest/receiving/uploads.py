"""Uploaded payloads: each is for one submission, and one that nobody submits goes after a day."""

from typing import ClassVar

from penstock.catalog.commands.lookup import Write
from penstock.catalog.world import World
from penstock.clock import DAY, Micros
from penstock.db import Transaction
from penstock.errors import Conflict

KEPT: Micros = DAY  # how long an upload waits to be submitted


class NoteUpload(Write, frozen=True):
    """Note that a payload is about to be uploaded, so that one that breaks off is found."""

    alone: ClassVar[bool] = True  # it writes by itself

    url: str

    def apply(self, world: World, now: Micros) -> None:
        """One row, without a submission."""
        world.tx.execute("put_upload", url=self.url, holder="", now=now)


class BindUpload(Write, frozen=True):
    """Let one submission have an upload; the same one may ask again."""

    alone: ClassVar[bool] = True  # it writes by itself

    url: str
    holder: str

    def apply(self, world: World, now: Micros) -> None:
        """A second submission is a Conflict: the first may delete what it has used."""
        row = world.tx.fetch_one("upload", url=self.url)
        if row is not None and row[0] not in ("", self.holder):
            raise Conflict(f"{self.url} was submitted already; upload it again to submit it again")
        world.tx.execute("put_upload", url=self.url, holder=self.holder, now=now)


class ForgetUpload(Write, frozen=True):
    """Forget an upload whose file is gone."""

    alone: ClassVar[bool] = True  # it writes by itself

    url: str

    def apply(self, world: World, now: Micros) -> None:
        """The row goes."""
        world.tx.execute("forget_upload", url=self.url)


def stale_uploads(tx: Transaction, now: Micros, most: int) -> list[str]:
    """Uploads that nobody has submitted for long."""
    return [url for (url,) in tx.fetch("stale_uploads", before=now - KEPT, most=most)]
